// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/server.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "common/monotonic.h"
#include "control/rpc/acceptor.h"
#include "control/rpc/table.h"
#include "control/rpc/tls.h"

namespace margay::rpc {
namespace {

constexpr int kSyncThreads = 4;        // of reflection
constexpr size_t kGenerationsMax = 3;  // servers of older certificates that still have connections
constexpr Nanoseconds kRotate = 250 * kMillisecond;
constexpr int kMetadataMax = 8192;  // bytes
constexpr int kPingSpacing = 1000;  // milliseconds; who pings more often is cut off

using ServerReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

}  // namespace

// What gRPC's threads need of the server.
struct Door {
  std::shared_ptr<Shared> shared;
  Peers peers;
  size_t streams_max;
  std::function<bool(std::string_view)> urgent;
  std::atomic<StreamId> next{1};
  Acceptor* acceptor = nullptr;  // outlives every stream
};

class ServerStream final : public ServerReactor, public Stream {
 public:
  ServerStream(grpc::CallbackServerContext* context, Door& door, StreamId id, std::string address)
      : context_(context),
        door_(door),
        shared_(door.shared),
        id_(id),
        address_(std::move(address)),
        meter_(door.acceptor->stream_opened(address_)) {}

  // The loop's.
  void read() override {
    incoming_.Clear();
    StartRead(&incoming_);
  }
  void write(std::string message) override {
    outgoing_ = to_buffer(message);
    StartWrite(&outgoing_, grpc::WriteOptions().set_write_through());
  }
  void finish(Code code, const std::string& why) override { Finish(to_status(code, why)); }
  void let_go() override {}
  void cancel() override {
    const std::lock_guard lock(mutex_);
    if (!done_) context_->TryCancel();
  }

  // gRPC's.
  void OnReadDone(bool ok) override {
    if (!ok) return put({.kind = Signal::Kind::kReadEnd, .id = id_});
    std::string message = to_string(incoming_);
    incoming_.Clear();
    if (meter_) meter_->message(message.size());
    const bool urgent = door_.urgent && door_.urgent(message);
    put({.kind = Signal::Kind::kRead, .id = id_, .urgent = urgent, .text = std::move(message)});
  }
  void OnWriteDone(bool ok) override { put({.kind = Signal::Kind::kWritten, .id = id_, .ok = ok}); }
  void OnCancel() override { put({.kind = Signal::Kind::kBroken, .id = id_}); }
  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    door_.acceptor->stream_closed(address_);
    const std::shared_ptr<Shared> shared = shared_;
    shared->streams.fetch_sub(1);
    shared->signals->put({.kind = Signal::Kind::kDone, .id = id_});  // the loop deletes us
  }

 private:
  void put(Signal signal) { shared_->signals->put(std::move(signal)); }

  grpc::CallbackServerContext* const context_;  // gone after OnDone
  Door& door_;
  const std::shared_ptr<Shared> shared_;
  const StreamId id_;
  const std::string address_;
  const std::shared_ptr<Meter> meter_;  // of its connection, if that is known
  grpc::ByteBuffer incoming_, outgoing_;
  std::mutex mutex_;
  bool done_ = false;
};

class RefusedStream final : public ServerReactor {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

static ServerReactor* open_stream(Door& door, grpc::CallbackServerContext* context) {
  Shared& shared = *door.shared;
  const auto refuse = [](Code code, const std::string& why) { return new RefusedStream(to_status(code, why)); };
  auto known = door.peers.of(*context->auth_context());
  if (!known.peer) return refuse(Code::kUnauthenticated, known.why);
  if (shared.streams.fetch_add(1) >= door.streams_max) {
    shared.streams.fetch_sub(1);
    shared.too_many_streams.fetch_add(1, std::memory_order_relaxed);
    shared.signals->put_refused("too_many_streams", known.peer->subject);
    return refuse(Code::kExhausted, "too many streams");
  }
  if (shared.stopping) {
    shared.streams.fetch_sub(1);
    shared.signals->put({.kind = Signal::Kind::kRefused, .text = {}, .reason = "stopping"});  // who waits looks again
    return refuse(Code::kUnavailable, "the server ends");
  }
  shared.opened.fetch_add(1, std::memory_order_relaxed);
  std::string address = address_of(context->peer());
  const StreamId id = door.next.fetch_add(1);
  auto stream = std::make_unique<ServerStream>(context, door, id, address);
  ServerStream* const raw = stream.get();
  raw->StartSendInitialMetadata();
  shared.signals->put({.kind = Signal::Kind::kOpened,
                       .id = id,
                       .text = std::move(address),
                       .peer = std::move(known.peer),
                       .trust = std::move(known.trust),
                       .stream = std::move(stream)});
  return raw;
}

// Any method, its messages as bytes. One of one message each way is, on the wire, a stream that carries one.
class RawService final : public grpc::Service {
 public:
  RawService(const std::string& method, Door& door) : method_(method) {
    using grpc::internal::RpcServiceMethod;
    AddMethod(new RpcServiceMethod(method_.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodRawCallback(0, new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                                 [&door](grpc::CallbackServerContext* context) { return open_stream(door, context); }));
  }

 private:
  const std::string method_;
};

struct Server::State {
  // One of gRPC's servers, which has one certificate for ever.
  struct Generation {
    uint64_t number = 0;
    std::shared_ptr<const security::Trust> own;
    std::unique_ptr<RawService> service;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
    std::unique_ptr<grpc::Server> server;
  };

  State(ServerConfig c, const std::shared_ptr<Shared>& s)
      : config(std::move(c)),
        shared(s),
        door{.shared = s, .peers = Peers(s), .streams_max = config.limits.streams, .urgent = config.urgent},
        table(s, {.server = true,
                  .single = config.single,
                  .open = 0,
                  .close = static_cast<Nanoseconds>(config.limits.close.count()) * kMillisecond}) {}
  ~State() {
    acceptor_stop();
    table.shut_down();
    for (auto& generation : generations) generation.server->Shutdown(std::chrono::system_clock::now());
    for (auto& generation : generations) generation.server->Wait();
  }
  void acceptor_stop() {
    const std::lock_guard lock(mutex);
    taking = false;
  }

  Result<void> add_generation();
  void rotate();
  uint64_t take(int fd);

  ServerConfig config;
  std::shared_ptr<Shared> shared;
  Door door;
  Table table;
  bool serving = true;
  uint64_t malformed = 0;
  std::shared_ptr<const security::Trust> seen;  // by rotate()
  Nanoseconds rotated = 0;
  std::mutex mutex;  // of the three below: the loop changes them, the acceptor reads
  bool taking = true;
  uint64_t next_generation = 1;
  std::list<Generation> generations;  // the newest takes connections
  std::unique_ptr<Acceptor> acceptor;
};

Result<void> Server::State::add_generation() {
  const Limits& limits = config.limits;
  Generation generation;
  generation.own = shared->credentials->current();
  generation.service = std::make_unique<RawService>(config.method, door);
  grpc::ServerBuilder builder;
  generation.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      server_credentials(shared, *generation.own));
  builder.RegisterService(generation.service.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message));
  // Nothing but "identity": who announces another encoding is refused, and nothing is ever inflated.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams_per_connection));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataMax);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, ms(limits.handshake));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, ms(limits.idle));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ms(limits.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ms(limits.keepalive_answer));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingSpacing);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(limits.window));
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.SetResourceQuota(grpc::ResourceQuota("margay").Resize(limits.memory).SetMaxThreads(kSyncThreads));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  generation.server = builder.BuildAndStart();
  if (!generation.server) return Error{"gRPC cannot start a server with " + config.credentials->files().certificate};
  generation.server->GetHealthCheckService()->SetServingStatus(serving);
  seen = generation.own;
  const std::lock_guard lock(mutex);
  generation.number = next_generation++;
  generations.push_back(std::move(generation));
  return {};
}

// A new certificate takes a new server of gRPC's, for connections to come; those that stand keep theirs, which goes
// with the last of them.
void Server::State::rotate() {
  if (monotonic_now() - rotated < kRotate) return;
  rotated = monotonic_now();
  const auto now = shared->credentials->current();
  if (now != seen) {
    seen = now;
    const security::Trust& last = *generations.back().own;
    const bool other = now->certificate_pem() != last.certificate_pem() || now->key_pem() != last.key_pem();
    const auto added = other ? add_generation() : Result<void>();
    if (!added) shared->signals->put_refused("own_certificate", added.error().message);  // the last one goes on
  }
  if (generations.size() < 2) return;
  Generation& oldest = generations.front();
  if (acceptor->connections(oldest.number) > 0) {
    if (generations.size() > kGenerationsMax) acceptor->cut(oldest.number);
    return;
  }
  std::list<Generation> gone;
  {
    const std::lock_guard lock(mutex);
    gone.splice(gone.begin(), generations, generations.begin());
  }
  gone.front().server->Shutdown(std::chrono::system_clock::now());
}

uint64_t Server::State::take(int fd) {
  const std::lock_guard lock(mutex);
  if (!taking) {
    ::close(fd);
    return 0;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  generations.back().acceptor->HandleNewConnection(&connection);
  return generations.back().number;
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(ServerConfig config) {
  set_up_grpc();
  auto signals = Signals::open();
  if (!signals) return signals.error();
  auto shared = std::make_shared<Shared>();
  shared->signals = std::move(*signals);
  shared->credentials = config.credentials;
  shared->expected = config.peers;
  shared->side = security::Side::kClient;
  auto state = std::make_unique<State>(std::move(config), std::move(shared));
  State& s = *state;
  if (const auto added = s.add_generation(); !added) return added.error();
  auto acceptor = Acceptor::open(s.config.listen,
                                 {.connections = s.config.limits.connections,
                                  .unfinished = std::max(s.config.limits.unfinished, 2 * s.config.limits.message),
                                  .window = s.config.limits.window,
                                  .answer = static_cast<unsigned>(s.config.limits.keepalive_answer.count())},
                                 [&s](int fd) { return s.take(fd); });
  if (!acceptor) return acceptor.error();
  s.acceptor = std::move(*acceptor);
  s.door.acceptor = s.acceptor.get();
  s.acceptor->start();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

uint16_t Server::port() const { return state_->acceptor->port(); }
int Server::fd() const { return state_->shared->signals->fd(); }

std::optional<RawEvent> Server::next() {
  state_->rotate();
  return state_->table.next();
}

bool Server::send(StreamId id, std::string message) { return state_->table.send(id, std::move(message)); }
void Server::close(StreamId id, Code code, const std::string& why) { state_->table.close(id, code, why); }

void Server::malformed(StreamId id, const std::string& why) {
  ++state_->malformed;
  close(id, Code::kInvalid, why);
}

void Server::set_serving(bool serving) {
  state_->serving = serving;
  for (auto& generation : state_->generations) generation.server->GetHealthCheckService()->SetServingStatus(serving);
}

Counters Server::counters() const {
  const Shared& shared = *state_->shared;
  Counters counters{.connections = state_->acceptor->connections(),
                    .streams = shared.streams,
                    .accepted = state_->acceptor->accepted(),
                    .evicted = state_->acceptor->evicted(),
                    .flooded = state_->acceptor->flooded(),
                    .opened = shared.opened,
                    .too_many_streams = shared.too_many_streams,
                    .malformed = state_->malformed,
                    .cancelled = state_->table.cancelled()};
  std::ranges::copy(shared.refused, counters.refused.begin());
  return counters;
}

}  // namespace margay::rpc
