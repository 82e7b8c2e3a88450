// SPDX-License-Identifier: Apache-2.0
// Against gRPC's own clients, and what only they can send.
#include <grpc/byte_buffer.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "control/rpc/tls.h"
#include "control/rpc/typed.h"
#include "margay/v1/collection.grpc.pb.h"
#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::rpc {
namespace {

// gRPC as it comes, with the credentials of our SCI.
std::shared_ptr<grpc::Channel> plain_channel(uint16_t port, const std::string& name = "a") {
  set_up_grpc();
  auto shared = std::make_shared<Shared>();
  shared->signals = *Signals::open();
  shared->credentials = pkis().ours.credentials(name);
  shared->expected = {.kind = security::Kind::kCSma};
  shared->side = security::Side::kServer;
  return grpc::CreateChannel("ipv4:127.0.0.1:" + std::to_string(port),
                             client_credentials(shared, *shared->credentials->current(), nullptr));
}

struct Answer {
  grpc::Status status;
  std::string bytes;
};

// One call, of one message each way; the rig is served meanwhile.
Answer ask(Rig& rig, grpc::GenericStub& stub, const std::string& method, const grpc::ByteBuffer& question,
           grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 60s);
  context.set_compression_algorithm(compression);
  grpc::ByteBuffer answer;
  Answer result;
  std::atomic<bool> done{false};
  stub.UnaryCall(&context, method, {}, &question, &answer, [&](grpc::Status status) {
    result.status = std::move(status);
    done = true;
  });
  EXPECT_TRUE(rig.until([&] { return done.load(); }));
  result.bytes = to_string(answer);
  return result;
}

TEST(Interop, HealthServiceAndReflectionAnswer) {
  Rig rig;
  grpc::GenericStub stub(plain_channel(rig.server->port()));
  const std::string check = "/grpc.health.v1.Health/Check";
  // HealthCheckResponse{status: SERVING}, which is field 1, varint, 1; NOT_SERVING is 2.
  EXPECT_EQ(ask(rig, stub, check, to_buffer("")).bytes, "\x08\x01");
  rig.server->set_serving(false);
  EXPECT_EQ(ask(rig, stub, check, to_buffer("")).bytes, "\x08\x02");
  // ServerReflectionRequest{list_services: "*"}, field 7.
  const auto services =
      ask(rig, stub, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", to_buffer("\x3a\x01*"));
  EXPECT_NE(services.bytes.find("margay.v1.Collection"), std::string::npos) << services.status.error_message();
  EXPECT_EQ(ask(rig, stub, "/margay.v1.Collection/Other", to_buffer("")).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST(Interop, APeerWithoutACertificateIsRefusedByName) {
  Rig rig;
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pkis().ours.text("ca.pem");
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride("x");
  grpc::experimental::TlsChannelCredentialsOptions tls;
  auto shared = std::make_shared<Shared>();
  shared->signals = *Signals::open();
  shared->credentials = pkis().ours.credentials("a");
  shared->expected = {.kind = security::Kind::kCSma};
  shared->side = security::Side::kServer;
  tls.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(pkis().ours.text("ca.pem")));
  tls.watch_root_certs();
  tls.set_verify_server_certs(false);
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  grpc::GenericStub stub(grpc::CreateChannel("ipv4:127.0.0.1:" + std::to_string(rig.server->port()),
                                             grpc::experimental::TlsCredentials(tls)));
  EXPECT_EQ(ask(rig, stub, kMethod, to_buffer("x")).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(rig.until([&] { return !rig.seen.refused.empty(); }));
  EXPECT_TRUE(rig.seen.was_refused("no_certificate"));
  EXPECT_TRUE(rig.seen.opened.empty());
}

// 512 MiB of zeros in half a megabyte. gRPC inflates a message before it looks at its size.
grpc::ByteBuffer bomb() {
  const std::string file = pkis().ours.file("bomb.gz");
  EXPECT_EQ(std::system(("head -c 536870912 /dev/zero | gzip >" + file).c_str()), 0);
  const std::string packed = pkis().ours.text("bomb.gz");
  grpc_slice slice = grpc_slice_from_copied_buffer(packed.data(), packed.size());
  grpc::ByteBuffer buffer;
  *reinterpret_cast<grpc_byte_buffer**>(&buffer) =
      grpc_raw_compressed_byte_buffer_create(&slice, 1, GRPC_COMPRESS_GZIP);
  grpc_slice_unref(slice);
  return buffer;
}

TEST(Interop, ACompressedMessageIsRefusedAndNeverInflated) {
  Rig rig;
  grpc::GenericStub stub(plain_channel(rig.server->port()));
  const grpc::ByteBuffer message = bomb();
  ASSERT_LT(message.Length(), 1'000'000u);
  const size_t before = memory("VmHWM:");
  const auto answer = ask(rig, stub, kMethod, message, GRPC_COMPRESS_GZIP);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << answer.status.error_message();
  EXPECT_LE(memory("VmHWM:") - before, 20u << 10);
  printf("bomb: %zu KiB\n", memory("VmHWM:") - before);
  EXPECT_TRUE(rig.seen.received.empty());
}

// The C-SMA's side: a Source that answers a pull with the same.
class BombSource final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    struct Reactor final : grpc::ServerGenericBidiReactor {
      Reactor() : message(bomb()) { StartWrite(&message); }
      void OnWriteDone(bool) override { Finish(grpc::Status::OK); }
      void OnDone() override { delete this; }
      grpc::ByteBuffer message;
    };
    return new Reactor;
  }
};

TEST(Interop, ACompressedAnswerIsNeverInflated) {
  auto shared = std::make_shared<Shared>();
  shared->signals = *Signals::open();
  shared->credentials = pkis().ours.credentials("site-1");
  shared->expected = {.kind = security::Kind::kSci};
  shared->side = security::Side::kClient;
  set_up_grpc();
  BombSource source;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", server_credentials(shared, *shared->credentials->current()), &port);
  builder.RegisterCallbackGenericService(&source);
  const auto server = builder.BuildAndStart();
  Rig rig;
  rig.add(client_config(static_cast<uint16_t>(port)));
  const size_t before = memory("VmHWM:");
  const StreamId id = rig.clients[0]->open();
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].end(id) != nullptr; }));
  EXPECT_LE(memory("VmHWM:") - before, 20u << 10);
  printf("answer: %s %s\n", std::string(name_of(rig.client_seen[0].end(id)->code)).c_str(),
         rig.client_seen[0].end(id)->why.c_str());
  rig.clients.clear();
  server->Shutdown();
}

using PushServer = StreamServer<v1::Report, v1::CollectionReply>;
using PushClient = StreamClient<v1::CollectionReply, v1::Report>;

template <class Side, class Holds>
bool serve(Side& side, const Holds& holds) {
  const auto end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    while (auto event = side.next()) {
      if (holds(*event)) return true;
    }
    pollfd in{.fd = side.fd(), .events = POLLIN, .revents = 0};
    poll(&in, 1, 10);
  }
  return false;
}

TEST(Interop, TheGeneratedClientSpeaksToOurServer) {
  ServerConfig config = server_config();
  config.method = kCollectionPush;
  auto server = PushServer::open(std::move(config));
  ASSERT_TRUE(server) << server.error().message;
  std::thread client([port = (*server)->core().port()] {
    const auto stub = v1::Collection::NewStub(plain_channel(port));
    grpc::ClientContext context;
    const auto stream = stub->Push(&context);
    v1::Report report;
    report.set_csci_id("1");
    report.set_sequence(7);
    EXPECT_TRUE(stream->Write(report));
    v1::CollectionReply reply;
    EXPECT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.ack().sequence(), 7u);
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_TRUE(stream->Finish().ok());
  });
  EXPECT_TRUE(serve(**server, [&](const Event<v1::Report>& event) {
    if (const auto* const got = std::get_if<Received<v1::Report>>(&event)) {
      v1::CollectionReply reply;
      reply.mutable_ack()->set_sequence(got->message.sequence());
      (*server)->send(got->id, reply);
    }
    return std::holds_alternative<Closed>(event);
  }));
  client.join();
}

TEST(Interop, TheGeneratedClientPullsFromOurServer) {
  ServerConfig config = server_config();
  config.method = kSourcePull;
  config.single = true;
  auto server = StreamServer<v1::PullRequest, v1::Report>::open(std::move(config));
  ASSERT_TRUE(server) << server.error().message;
  std::thread client([port = (*server)->core().port()] {
    const auto stub = v1::Source::NewStub(plain_channel(port));
    grpc::ClientContext context;
    v1::PullRequest request;
    request.set_csci_id("1");
    v1::Report report;
    EXPECT_TRUE(stub->Pull(&context, request, &report).ok());
    EXPECT_EQ(report.csci_id(), "1");
  });
  EXPECT_TRUE(serve(**server, [&](const Event<v1::PullRequest>& event) {
    if (const auto* const got = std::get_if<Received<v1::PullRequest>>(&event)) {
      v1::Report report;
      report.set_csci_id(got->message.csci_id());
      (*server)->send(got->id, report);
    }
    return std::holds_alternative<Closed>(event);
  }));
  client.join();
}

// One that opens its side with its answer, as gRPC's own unary servers do.
TEST(Interop, OurClientPullsFromTheGeneratedServer) {
  struct Source final : v1::Source::Service {
    grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request, v1::Report* report) override {
      report->set_csci_id(request->csci_id());
      return grpc::Status::OK;
    }
  } source;
  auto shared = std::make_shared<Shared>();
  shared->signals = *Signals::open();
  shared->credentials = pkis().ours.credentials("a");
  shared->expected = {.kind = security::Kind::kCSma};
  shared->side = security::Side::kClient;
  set_up_grpc();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", server_credentials(shared, *shared->credentials->current()), &port);
  builder.RegisterService(&source);
  const auto server = builder.BuildAndStart();
  ClientConfig config = client_config(static_cast<uint16_t>(port), "site-1");
  config.method = kSourcePull;
  config.single = true;
  config.peer = {.kind = security::Kind::kSci};
  auto client = StreamClient<v1::Report, v1::PullRequest>::open(std::move(config));
  ASSERT_TRUE(client) << client.error().message;
  v1::PullRequest request;
  request.set_csci_id("1");
  (*client)->ask(request);
  std::string answer;
  EXPECT_TRUE(serve(**client, [&](const Event<v1::Report>& event) {
    if (const auto* const got = std::get_if<Received<v1::Report>>(&event)) answer = got->message.csci_id();
    const auto* const closed = std::get_if<Closed>(&event);
    if (closed == nullptr) return false;
    EXPECT_EQ(closed->code, Code::kOk) << closed->why;
    return true;
  }));
  EXPECT_EQ(answer, "1");
  client->reset();
  server->Shutdown();
}

TEST(Interop, WhatIsNoMessageEndsItsStream) {
  ServerConfig config = server_config();
  config.method = kCollectionPush;
  auto server = PushServer::open(std::move(config));
  ASSERT_TRUE(server) << server.error().message;
  auto client = Client::open(client_config((*server)->core().port()));
  ASSERT_TRUE(client) << client.error().message;
  const StreamId id = (*client)->open();
  std::thread sender([&] {
    EXPECT_TRUE(serve(**client, [&](const RawEvent& event) {
      if (std::holds_alternative<Opened>(event)) (*client)->send(id, "\xff\xff\xff");
      const auto* const closed = std::get_if<Closed>(&event);
      if (closed == nullptr) return false;
      EXPECT_EQ(closed->code, Code::kInvalid);
      EXPECT_EQ(closed->why, "expected margay.v1.Report");
      return true;
    }));
  });
  EXPECT_TRUE(serve(**server, [&](const Event<v1::Report>& event) {
    EXPECT_FALSE(std::holds_alternative<Received<v1::Report>>(event));
    return std::holds_alternative<Closed>(event);
  }));
  sender.join();
  EXPECT_EQ((*server)->core().counters().malformed, 1u);
}

}  // namespace
}  // namespace margay::rpc
