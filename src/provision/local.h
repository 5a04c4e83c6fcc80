#pragma once
// The local provisioner: keeps an agent process up for each node this machine should have.
//
// Agents outlive the service. Those found running are adopted (their lock names their pid),
// those that end are started again, those no longer wanted are kept up just until the service has notified
// them to end what they run and quit.
//
// The nodes of a machine divide its cores among them: each has a list of its own in its folder, which its
// keeper reads. Lists overlap only where the nodes together have more cores than the machine.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/cores.h"
#include "base/file.h"
#include "domain/records.h"
#include "net/loop.h"

namespace slipway::provision {

struct LocalOptions {
  std::string program;     // our own executable
  std::string data;        // the service's data folder
  std::string url;         // where agents dial
  std::string token_file;  // a join token
};

class LocalProvisioner {
 public:
  LocalProvisioner(net::Loop& loop, LocalOptions options);
  ~LocalProvisioner();

  // The nodes that should be up, all of them; called again whenever that changes.
  void want(const std::vector<NodeRecord>& nodes);
  // An agent that does not answer is killed and started again; its keeper and what runs are not touched.
  void restart(const std::string& workspace, const std::string& node);
  // From now on an agent that ends stays ended.
  void start_no_more();
  // `done` is called when all have ended. Those that have not after `limit` are ended, with their keepers.
  void wait_until_gone(Duration limit, std::function<void()> done);

 private:
  struct Agent {
    NodeRecord node;
    bool wanted = true;
    int pid = 0;
    bool child = false;
    Fd pidfd;
    std::shared_ptr<net::Loop::Watch> watch;
    std::shared_ptr<net::Loop::Timer> again;
    Duration wait{0};
    TimePoint started_at{};
    CoreList cores;  // those its processes are held to, where no cgroup limits them
  };
  std::string folder_of(const NodeRecord& node) const;
  void bring_up(const std::string& key);
  void spawn(Agent& agent);
  void choose_cores(Agent& agent, const std::string& folder);
  void follow(const std::string& key);
  void ended(const std::string& key);
  void adopt_strays();
  void check_gone();
  void end_agents(int signal);
  void leave();

  net::Loop& loop_;
  LocalOptions options_;
  SystemClock clock_;
  CorePool cores_;
  std::map<std::string, Agent> agents_;  // by "workspace.name"
  bool leaving_ = false;
  std::function<void()> gone_;
  std::shared_ptr<net::Loop::Timer> gone_limit_;
};

}  // namespace slipway::provision
