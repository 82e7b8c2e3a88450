// SPDX-License-Identifier: Apache-2.0

// The peer of a C-SMA's collection port: gRPC and Protobuf alone, mutual TLS, each report answered with an ack that
// nobody thought about.

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "margay/v1/collection.grpc.pb.h"
#include "tests/support/file_text.h"

namespace margay::bench {
namespace {

class Answers final : public grpc::ServerBidiReactor<v1::Report, v1::CollectionReply> {
 public:
  Answers() { StartRead(&report_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    reply_.mutable_ack()->set_epoch(report_.epoch());
    reply_.mutable_ack()->set_sequence(report_.sequence());
    reply_.mutable_ack()->set_verdict(v1::REPORT_VERDICT_ACCEPTED);
    StartWrite(&reply_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&report_);
  }
  void OnDone() override { delete this; }

 private:
  v1::Report report_;
  v1::CollectionReply reply_;
};

class Collection final : public v1::Collection::CallbackService {
  grpc::ServerBidiReactor<v1::Report, v1::CollectionReply>* Push(grpc::CallbackServerContext*) override {
    return new Answers;
  }
};

}  // namespace
}  // namespace margay::bench

// peer_collection ADDRESS CA CERTIFICATE KEY
int main(int argc, char** argv) {
  using namespace margay::bench;
  using namespace margay;
  if (argc != 5) {
    std::cerr << "peer_collection: expected ADDRESS CA CERTIFICATE KEY\n";
    return 2;
  }
  gpr_set_log_function([](gpr_log_func_args*) {});  // tells of each caller that its certificate has no host name
  grpc::experimental::TlsServerCredentialsOptions tls(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          test::file_text(argv[2]),
          std::vector{grpc::experimental::IdentityKeyCertPair{test::file_text(argv[4]), test::file_text(argv[3])}}));
  tls.watch_root_certs();
  tls.watch_identity_key_cert_pairs();
  tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  Collection collection;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], grpc::experimental::TlsServerCredentials(tls));
  builder.RegisterService(&collection);
  const auto server = builder.BuildAndStart();
  if (!server) {
    std::cerr << "peer_collection: " << argv[1] << " cannot be listened on\n";
    return 1;
  }
  std::cout << "listens" << std::endl;
  server->Wait();
}
