#pragma once
// The disk quotas of users and workspaces: who is refused at the door, and when what is counted. On the
// network's thread.
//
// Only workspaces where disk has a limit are counted. A job is counted when it ends, its code when it is
// submitted, an upload when it is there. Passes put right what that leaves out: every ten minutes what runs
// and datastores that were changed; everything at the start, when a workspace gets its first limit, and once
// a day.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/blobs.h"
#include "api/disk_counter.h"
#include "api/read_pool.h"
#include "control/loop.h"
#include "domain/quota.h"

namespace slipway::api {

class DiskQuotas {
 public:
  DiskQuotas(net::Loop& loop, control::Loop& control, ReadPool& reads, const BlobStore& blobs,
             std::string data);

  void change(const QuotaRecord& quota);  // without limits: gone
  void set_used(const QuotaKey& key, std::uint64_t bytes) { used_[key] = bytes; }
  // Why so many bytes more are not taken: of the user, or of the workspace.
  std::optional<Error> refuse(const std::string& workspace, const std::string& user,
                              std::uint64_t more) const;

  void job_submitted(const std::string& workspace, const std::string& user, const std::string& source);
  void jobs_ended(const std::vector<std::pair<std::string, JobId>>& jobs);
  void jobs_removed();  // some, and code with them
  void uploaded(const std::string& workspace, const std::string& datastore, std::uint64_t bytes);
  void changed(const std::string& workspace, const std::string& datastore);

 private:
  std::optional<std::uint64_t> limit_of(const QuotaKey& key) const;
  bool is_counted(const std::string& workspace) const;
  void add_job(const JobRecord& job);
  void add_code(const std::string& workspace, const std::string& user, const std::string& source);
  void add_datastore(const std::string& workspace, const std::string& name);
  void save(std::vector<DiskUse> uses);
  void begin_pass(bool is_full);
  void next_page();
  void take_page(const std::vector<JobRecord>& jobs, const std::vector<DatastoreRecord>& datastores);

  struct Pass {
    int number = 0;
    bool is_full = false;
    std::vector<std::string> workspaces;  // yet to look at, the last first
    std::optional<JobId> after;
  };
  net::Loop& loop_;
  control::Loop& control_;
  ReadPool& reads_;
  const BlobStore& blobs_;
  std::string data_;
  std::map<QuotaKey, std::uint64_t> limits_, used_;
  std::set<std::pair<std::string, std::string>> changed_;  // datastores, by workspace
  std::optional<Pass> pass_;
  bool is_reading_ = false;  // a page
  bool wants_full_pass_ = false;
  int passes_ = 0;  // that were begun
  std::shared_ptr<net::Loop::Timer> timer_;
  DiskCounter counter_;
};

}  // namespace slipway::api
