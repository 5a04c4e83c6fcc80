#pragma once
// What another site's page can make a browser send, refused whoever is asked for.
//
// Host: a name that somebody else's DNS may point here (DNS rebinding) is answered 421. An IP address cannot
// be pointed elsewhere, so that any is good. Origin: another site's is answered 403 where something is
// changed or upgraded; clients that are not browsers send none. Content-Type: what a form of another site can
// send without being asked (text/plain and the form types) is answered 415, as is what no route reads.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace slipway::api {

struct RequestRefusal {
  int status = 0;
  Error error;
};

class RequestGuard {
 public:
  // Names by which the service is reached, beside localhost.
  explicit RequestGuard(std::vector<std::string> host_names);

  std::optional<RequestRefusal> check_origin(const net::Request& head) const;  // Host and Origin
  // Of a request whose token is a cookie, which browsers send by themselves: what changes something has to
  // say from which page it comes.
  static std::optional<RequestRefusal> check_cookie(const net::Request& head);
  // `takes_any`: the body is a file of a user, of any type but those of forms.
  struct Body {
    bool takes_any = false;
  };
  std::optional<RequestRefusal> check_body(const net::Request& head, Body body) const;

 private:
  bool is_own(std::string_view host) const;
  std::vector<std::string> host_names_;  // in lower case
};

}  // namespace slipway::api
