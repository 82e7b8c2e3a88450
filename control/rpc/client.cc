// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/net.h"
#include "control/rpc/table.h"
#include "control/rpc/tls.h"

namespace margay::rpc {
namespace {

constexpr size_t kOwnMemory = size_t{4} << 20;  // bytes of gRPC's, of a connection whose messages are small

using ClientReactor = grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

}  // namespace

struct Channel {
  std::shared_ptr<LastRefusal> refusal = std::make_shared<LastRefusal>();
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
};

class ClientStream final : public ClientReactor, public Stream {
 public:
  ClientStream(std::shared_ptr<Shared> shared, std::shared_ptr<Peers> peers, std::shared_ptr<Channel> connection,
               StreamId id)
      : shared_(std::move(shared)), peers_(std::move(peers)), connection_(std::move(connection)), id_(id) {}

  void start(const std::string& method, std::chrono::milliseconds deadline, std::optional<std::string> message) {
    if (deadline.count() > 0) context_.set_deadline(std::chrono::system_clock::now() + deadline);
    connection_->stub->PrepareBidiStreamingCall(&context_, method, {}, this);
    AddHold();  // until let_go()
    if (message) write(std::move(*message));
    StartCall();
  }

  // The loop's.
  void read() override {
    incoming_.Clear();
    StartRead(&incoming_);
  }
  void write(std::string message) override {
    outgoing_ = to_buffer(message);
    StartWrite(&outgoing_, grpc::WriteOptions().set_write_through());
  }
  void finish(Code, const std::string&) override { StartWritesDone(); }
  void let_go() override { RemoveHold(); }
  void cancel() override { context_.TryCancel(); }

  // gRPC's.
  void OnReadInitialMetadataDone(bool ok) override {
    Signal signal{.kind = Signal::Kind::kOpened, .id = id_};
    if (ok) {
      auto known = peers_->of(*context_.auth_context());
      signal.code = known.peer ? Code::kOk : Code::kUnauthenticated;
      signal.text = known.peer ? address_of(context_.peer()) : known.why;
      signal.peer = std::move(known.peer);
      signal.trust = std::move(known.trust);
    }
    shared_->signals->put(std::move(signal));
  }
  void OnReadDone(bool ok) override {
    if (!ok) return shared_->signals->put({.kind = Signal::Kind::kReadEnd, .id = id_});
    std::string message = to_string(incoming_);
    incoming_.Clear();
    shared_->signals->put({.kind = Signal::Kind::kRead, .id = id_, .text = std::move(message)});
  }
  void OnWriteDone(bool ok) override { shared_->signals->put({.kind = Signal::Kind::kWritten, .id = id_, .ok = ok}); }
  void OnDone(const grpc::Status& status) override {
    Signal signal{.kind = Signal::Kind::kDone, .id = id_, .code = to_code(status.error_code())};
    signal.text = status.error_message();
    std::ranges::replace(signal.text, '\n', ' ');
    // What our check said in the handshake, gRPC tells as a connection that failed.
    if (const std::string refusal = connection_->refusal->get();
        !refusal.empty() && signal.code == Code::kUnavailable) {
      signal.code = Code::kUnauthenticated;
      signal.text = refusal;
    }
    const std::shared_ptr<Shared> shared = shared_;
    shared->streams.fetch_sub(1);
    shared->signals->put(std::move(signal));  // the loop deletes us
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<Channel> connection_;
  const StreamId id_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_, outgoing_;
};

namespace {

// Addresses are told as such, so that nobody asks DNS for them.
std::string target_of(const std::string& server) {
  const auto address = AddressPort::parse(server);
  if (!address) return "dns:///" + server;
  return (address->address.is_v4() ? "ipv4:" : "ipv6:") + address->format();
}

}  // namespace

struct Client::State {
  State(ClientConfig c, const std::shared_ptr<Shared>& s)
      : config(std::move(c)),
        shared(s),
        peers(std::make_shared<Peers>(s)),
        table(s, {.server = false,
                  .single = config.single,
                  .open = static_cast<Nanoseconds>(config.limits.open.count()) * kMillisecond,
                  .close = static_cast<Nanoseconds>(config.limits.close.count()) * kMillisecond}) {}
  ~State() { table.shut_down(); }
  std::shared_ptr<Channel> connect() const;

  ClientConfig config;
  std::shared_ptr<Shared> shared;
  std::shared_ptr<Peers> peers;
  std::shared_ptr<Channel> connection;  // of the streams that live
  Table table;
  StreamId next = 1;
  uint64_t malformed = 0;
};

std::shared_ptr<Channel> Client::State::connect() const {
  const Limits& limits = config.limits;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits.message));
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);  // "identity" alone, as in server.cc
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection that failed is not found again
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(limits.window));
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  // gRPC takes memory for a whole message before it looks at its size: at most so much for this connection.
  arguments.SetResourceQuota(
      grpc::ResourceQuota("margay").Resize(std::max(limits.unfinished, 2 * limits.message) + kOwnMemory));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, ms(limits.open));  // how long connecting may take
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, ms(limits.keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ms(limits.keepalive_answer));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  auto made = std::make_shared<Channel>();
  made->channel = grpc::CreateCustomChannel(
      target_of(config.server), client_credentials(shared, *shared->credentials->current(), made->refusal), arguments);
  made->stub = std::make_unique<grpc::GenericStub>(made->channel);
  return made;
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::open(ClientConfig config) {
  set_up_grpc();
  auto signals = Signals::open();
  if (!signals) return signals.error();
  auto shared = std::make_shared<Shared>();
  shared->signals = std::move(*signals);
  shared->credentials = config.credentials;
  shared->expected = config.peer;
  shared->side = security::Side::kServer;
  return std::unique_ptr<Client>(new Client(std::make_unique<State>(std::move(config), shared)));
}

StreamId Client::open() { return begin(std::nullopt); }

StreamId Client::ask(std::string message) {
  MARGAY_CHECK(state_->config.single);
  return begin(std::move(message));
}

StreamId Client::begin(std::optional<std::string> message) {
  State& s = *state_;
  if (s.table.empty()) s.connection = s.connect();
  const StreamId id = s.next++;
  s.shared->streams.fetch_add(1);
  s.shared->opened.fetch_add(1, std::memory_order_relaxed);
  auto stream = std::make_unique<ClientStream>(s.shared, s.peers, s.connection, id);
  ClientStream& started = *stream;
  s.table.add(id, std::move(stream), message.has_value());
  started.start(s.config.method, s.config.deadline, std::move(message));
  return id;
}

int Client::fd() const { return state_->shared->signals->fd(); }
std::optional<RawEvent> Client::next() { return state_->table.next(); }
bool Client::send(StreamId id, std::string message) { return state_->table.send(id, std::move(message)); }
void Client::close(StreamId id, Code code, const std::string& why) { state_->table.close(id, code, why); }

void Client::malformed(StreamId id, const std::string& why) {
  ++state_->malformed;
  close(id, Code::kInvalid, why);
}

Counters Client::counters() const {
  const Shared& shared = *state_->shared;
  Counters counters{.streams = shared.streams,
                    .opened = shared.opened,
                    .malformed = state_->malformed,
                    .cancelled = state_->table.cancelled()};
  std::ranges::copy(shared.refused, counters.refused.begin());
  return counters;
}

}  // namespace margay::rpc
