// SPDX-License-Identifier: Apache-2.0

// Many SCIs that report to one collection port: so many TLS connections, so many streams on each. A stream sends its
// next report when the one before is answered. See bench/collection.

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/sci_certificates.h"
#include "common/command_line.h"
#include "margay/v1/collection.grpc.pb.h"

namespace margay::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Reactor = grpc::ClientBidiReactor<v1::Report, v1::CollectionReply>;

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "collection_load: " << what << std::endl;
  std::_Exit(1);  // gRPC's threads still run
}

struct Shared {
  std::atomic<bool> running{false}, ending{false};
  std::atomic<uint64_t> answered{0}, first_answers{0}, not_accepted{0}, ended{0};
};

class Sci final : public Reactor {
 public:
  Sci(Shared& shared, const security::Name& name) : shared_(shared) {
    report_.set_cs_id(name.cs_id);
    report_.set_csci_id(name.identity);
    report_.set_kind(v1::REPORT_KIND_FULL);
    report_.set_admin(v1::ADMIN_ENABLED);
    report_.set_epoch(1);
    report_.set_trigger(v1::TRIGGER_PERIODIC);
    report_.mutable_reporting_interval()->set_seconds(60);
    report_.mutable_gas_breakdown()->set_healthy_free(100);
    report_.set_gas(100);
    report_.set_computing_time_milliseconds(12);
    report_.mutable_health_summary()->set_healthy(1);
  }

  void start(v1::Collection::Stub& stub) {
    stub.async()->Push(&context_, this);
    AddHold();  // writes come from outside of the reactions too
    StartCall();
    StartRead(&reply_);
    send();
  }
  void send() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    halves_ = 2;
    report_.set_sequence(++sequence_);
    report_.mutable_timestamp()->set_seconds(ms / 1000);
    report_.mutable_timestamp()->set_nanos(static_cast<int32_t>(ms % 1000 * 1'000'000));
    StartWrite(&report_);
  }
  void end() {
    context_.TryCancel();
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const bool answer = reply_.has_ack();
    if (answer && reply_.ack().verdict() != v1::REPORT_VERDICT_ACCEPTED) ++shared_.not_accepted;
    StartRead(&reply_);
    if (answer) half_done();
  }
  void OnWriteDone(bool ok) override {
    if (ok) half_done();
  }
  void OnDone(const grpc::Status& status) override {
    ++shared_.ended;
    if (!shared_.ending) fail(report_.csci_id() + ": " + status.error_message());
  }

 private:
  // A report is written, and is answered, in either order.
  void half_done() {
    if (--halves_ > 0) return;
    shared_.first_answers += sequence_ == 1;
    if (!shared_.running) return;
    shared_.answered += sequence_ > 1;
    send();
  }

  Shared& shared_;
  std::atomic<int> halves_{0};
  grpc::ClientContext context_;
  v1::Report report_;
  v1::CollectionReply reply_;
  uint64_t sequence_ = 0;
};

// Whom it calls is not what is measured here.
class AnyServer final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest*, std::function<void(grpc::Status)>,
              grpc::Status*) override {
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}
};

struct Options {
  std::string server, pki;
  uint64_t connections = 1, streams = 1, seconds = 5;
};

// The SCIs of one connection.
std::vector<security::Name> names_of(uint64_t connection, uint64_t streams) {
  std::vector<security::Name> names;
  for (uint64_t s = 0; s < streams; ++s) {
    const std::string address = "10.9." + std::to_string(s / 250) + "." + std::to_string(s % 250);
    names.push_back({security::Kind::kSci, address + ":" + std::to_string(1 + connection), "LOAD"});
  }
  return names;
}

std::shared_ptr<grpc::Channel> connection(const std::string& server, const SciCertificates& certificates,
                                          const std::vector<security::Name>& names) {
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      certificates.ca(),
      std::vector{grpc::experimental::IdentityKeyCertPair{certificates.key(), certificates.issue(names)}}));
  tls.watch_root_certs();
  tls.watch_identity_key_cert_pairs();
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<AnyServer>());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else all would share one connection
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, grpc::experimental::TlsCredentials(tls), arguments);
}

// Until the count is reached, or nothing moves any more.
void await(const std::atomic<uint64_t>& count, uint64_t wanted, const char* what) {
  uint64_t last = 0;
  auto moved_at = Clock::now();
  while (count < wanted) {
    std::this_thread::sleep_for(1ms);
    if (count != last) last = count, moved_at = Clock::now();
    if (Clock::now() - moved_at > 30s) fail(std::to_string(last) + " of " + std::to_string(wanted) + " " + what);
  }
}

int run(const Options& options) {
  const auto certificates = SciCertificates::open(options.pki);
  if (!certificates) fail(certificates.error().message);
  Shared shared;
  std::vector<std::unique_ptr<v1::Collection::Stub>> stubs;
  std::vector<std::unique_ptr<Sci>> scis;
  const auto began = Clock::now();
  for (uint64_t c = 0; c < options.connections; ++c) {
    const auto names = names_of(c, options.streams);
    stubs.push_back(v1::Collection::NewStub(connection(options.server, *certificates, names)));
    for (const security::Name& name : names) {
      scis.push_back(std::make_unique<Sci>(shared, name));
      scis.back()->start(*stubs.back());
    }
    // A connection's handshake costs both ends some 10 ms of a core: so many at a time that nobody's time runs out.
    if (c % 20 == 19) await(shared.first_answers, scis.size(), "streams were answered");
  }
  await(shared.first_answers, scis.size(), "streams were answered");
  std::cout << "connected " << seconds(Clock::now() - began) << std::endl;
  std::string line;
  std::getline(std::cin, line);  // whoever started us looks at memory now

  shared.running = true;
  for (const auto& sci : scis) sci->send();
  const auto from = Clock::now();  // all are busy
  const uint64_t before = shared.answered;
  std::cout << "busy" << std::endl;
  std::this_thread::sleep_for(std::chrono::seconds(options.seconds));
  const uint64_t answered = shared.answered - before;
  const double lasted = seconds(Clock::now() - from);
  shared.running = false;
  std::cout << "answered " << answered << " in " << lasted << " not accepted " << shared.not_accepted << std::endl;
  shared.ending = true;
  for (const auto& sci : scis) sci->end();
  await(shared.ended, scis.size(), "streams ended");
  return 0;
}

}  // namespace
}  // namespace margay::bench

int main(int argc, char** argv) {
  margay::bench::Options options;
  margay::CommandLine line("collection_load", "Many SCIs that report to one collection port");
  line.text("--server", options.server, "HOST:PORT", margay::CommandLine::Need::kRequired);
  line.text("--pki", options.pki, "folder of scripts/pki, with its ca.key", margay::CommandLine::Need::kRequired);
  line.whole("--connections", options.connections, "to the server", 1, 1'000'000);
  line.whole("--streams", options.streams, "on each connection", 1, 1'000'000);
  line.whole("--seconds", options.seconds, "of reporting, once all streams stand", 1, 86'400);
  if (const auto status = line.read(argc, argv)) return *status;
  return margay::bench::run(options);
}
