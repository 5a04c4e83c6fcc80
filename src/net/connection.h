#pragma once
// One client's connection: reads requests, hands them to the server's handler one after the other, writes the
// answers. Owned by what it waits for and by the exchange or stream given out; a closed one is an empty
// shell.
//
// No callback of the user is ever called from inside a call the user makes: they are posted.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/head.h"
#include "net/parser.h"
#include "net/server_core.h"
#include "net/transport.h"

namespace slipway::net {

class WebSocketSession;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> server, TcpSocket socket, tcp::endpoint peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void close();  // at once; an exchange or stream still out learns that its client is gone

  // Answers to the request handed out; each does nothing once the client is gone.
  void answer(Response response);
  void answer_file(int status, const Headers& headers, Fd file, std::uint64_t offset, std::uint64_t length);
  void start_stream(int status, const Headers& headers);
  void write_piece(std::string piece, std::function<void()> written);
  void finish_stream();
  void cut();  // ends the connection so that the client sees that the answer is not whole
  std::shared_ptr<WebSocket> upgrade(const Request& request, WebSocketCallbacks callbacks);
  void on_closed(std::function<void()> gone);
  void set_opened_with(std::string token) { opened_with_ = std::move(token); }
  void cut_if_opened_with(const std::string& token);
  bool is_streaming() const { return phase_ == Phase::streaming; }
  bool loop_is_closing() const { return server_->loop.closing; }

 private:
  enum class Phase : std::uint8_t {
    idle,       // between requests
    head,       // some of a head is here
    body,       // the head is here, the body not all
    handling,   // the handler has it
    answering,  // an answer is being written
    streaming,  // a stream is being written by its owner
    lingering,  // all is written; the client may still be sending
    upgraded,   // the socket belongs to a WebSocket now
    closed,
  };
  struct Incoming {  // a request whose head is read and whose body may not be
    explicit Incoming(ServerCore& server) : memory(server) {}
    MessageParser<true> parser;
    Request request;
    std::uint64_t size_max = 0;
    BodyMemory memory;
    bool is_memory_full = false;
    Fd spool;
    std::string spool_error;
    SteadyClock::time_point body_started{};
  };
  struct Outgoing {  // what is left to write
    std::vector<std::string> parts;
    std::size_t part = 0;    // the first that is not written
    std::size_t offset = 0;  // within it
    Fd file;
    std::uint64_t file_offset = 0;
    std::uint64_t file_left = 0;
    std::function<void()> written;  // of a stream's piece
    bool is_last = true;            // a stream's are not, until it is finished
  };

  // connection.cpp: reading
  void watch_readable();
  void on_readable();
  void read_request();
  void take(std::string_view bytes, std::size_t searched);
  bool take_head(std::string_view& bytes, std::size_t searched);
  bool begin_request(std::string_view head);
  bool begin_body(std::string_view began);
  bool open_body_sink(const BodyPolicy& policy);
  SteadyClock::time_point body_deadline() const;
  void take_body(std::string_view bytes);
  void refuse_body(const error_code& error);
  void dispatch();
  void notice_end();
  void drain();
  void refuse(int status, std::string_view why);
  void set_deadline(SteadyClock::time_point deadline);
  void set_deadline_in(Duration delay) { set_deadline(SteadyClock::now() + delay); }
  void arm_timer();
  void on_deadline();

  // connection_answer.cpp: writing
  AnswerHead answer_head(int status, const Headers& headers);
  void write(std::vector<std::string> parts);
  void pump();
  bool pump_parts(error_code& error);
  bool pump_file(error_code& error);
  void on_all_written();
  void finish_answer();
  void notify_gone();

  std::shared_ptr<ServerCore> server_;
  Transport transport_;
  SteadyTimer timer_;
  SteadyClock::time_point head_started_{};
  SteadyClock::time_point deadline_ = SteadyClock::time_point::max();
  tcp::endpoint peer_;
  std::string pending_;      // read, and not parsed yet
  std::string opened_with_;  // of the request being answered
  std::unique_ptr<Incoming> incoming_;
  std::unique_ptr<Outgoing> outgoing_;
  std::function<void()> gone_;
  std::weak_ptr<WebSocketSession> session_;
  Phase phase_ = Phase::idle;
  bool waiting_readable_ : 1 = false;
  bool waiting_writable_ : 1 = false;
  bool timer_armed_ : 1 = false;
  bool keep_alive_ : 1 = false;
  bool is_http_1_1_ : 1 = true;
  bool is_head_request_ : 1 = false;
  bool only_reads_ : 1 = false;
  bool peer_ended_ : 1 = false;  // it sends no more, but may still read
  bool is_chunked_ : 1 = false;
};

}  // namespace slipway::net
