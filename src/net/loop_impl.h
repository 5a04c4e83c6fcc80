#pragma once
#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <list>
#include <memory>

#include "net/asio.h"
#include "net/loop.h"

namespace slipway::net {

struct SignalWatch;

struct Loop::Impl {
  Impl();
  ~Impl();

  // Set before the io_context goes: what its pending handlers own is destroyed with it and must not start
  // anything new.
  bool closing = false;
  asio::io_context io{1};  // one thread calls run()
  asio::executor_work_guard<Executor> work{io.get_executor()};
  std::list<std::unique_ptr<SignalWatch>> signals;

  void post(std::function<void()> call) {
    if (!closing && call) asio::post(io, std::move(call));
  }
};

}  // namespace slipway::net
