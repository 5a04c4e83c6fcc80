// The one place where Boost's own sources are compiled.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
