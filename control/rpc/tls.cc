// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/tls.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <time.h>

#include <array>
#include <charconv>
#include <mutex>
#include <utility>

namespace margay::rpc {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

std::string_view view(const grpc::string_ref& text) { return {text.data(), text.size()}; }

class PeerCheck final : public ExternalCertificateVerifier {
 public:
  PeerCheck(std::shared_ptr<Shared> shared, std::shared_ptr<LastRefusal> told)
      : shared_(std::move(shared)), told_(std::move(told)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const auto verdict = shared_->judge(view(request->peer_cert()), view(request->peer_cert_full_chain()));
    if (!verdict.refusal) return true;
    const std::string name(security::name_of(*verdict.refusal));
    *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, name);
    if (told_) told_->set(name);
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<LastRefusal> told_;
};

std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider(const security::Trust& own) {
  return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      own.ca_pem(), std::vector{grpc::experimental::IdentityKeyCertPair{own.key_pem(), own.certificate_pem()}});
}

constexpr std::array kCodes{
    std::pair{Code::kOk, grpc::StatusCode::OK},
    std::pair{Code::kCancelled, grpc::StatusCode::CANCELLED},
    std::pair{Code::kInvalid, grpc::StatusCode::INVALID_ARGUMENT},
    std::pair{Code::kDeadline, grpc::StatusCode::DEADLINE_EXCEEDED},
    std::pair{Code::kDenied, grpc::StatusCode::PERMISSION_DENIED},
    std::pair{Code::kExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
    std::pair{Code::kUnimplemented, grpc::StatusCode::UNIMPLEMENTED},
    std::pair{Code::kInternal, grpc::StatusCode::INTERNAL},
    std::pair{Code::kUnavailable, grpc::StatusCode::UNAVAILABLE},
    std::pair{Code::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED},
};

std::string property(const grpc::AuthContext& context, const char* name) {
  const auto values = context.FindPropertyValues(name);
  return values.empty() ? "" : std::string(view(values.front()));
}

}  // namespace

void set_up_grpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Whoever reaches the port could fill the log with it.
    if (getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

// A certificate is asked for and not demanded, and gRPC checks none, so that our check sees, names and counts every
// peer that comes: the one without a certificate too.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::shared_ptr<Shared>& shared,
                                                            const security::Trust& own) {
  grpc::experimental::TlsServerCredentialsOptions options(provider(own));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<PeerCheck>(shared, nullptr));
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> client_credentials(const std::shared_ptr<Shared>& shared,
                                                             const security::Trust& own,
                                                             std::shared_ptr<LastRefusal> told) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider(own));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<PeerCheck>(shared, std::move(told)));
  return grpc::experimental::TlsCredentials(options);
}

Peers::Known Peers::of(const grpc::AuthContext& context) {
  const std::string certificate = property(context, "x509_pem_cert");
  const auto trust = shared_->credentials->current();
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(certificate);
  if (found != known_.end() && found->second.trust == trust) {
    auto peer = found->second.peer.lock();
    if (peer && peer->not_after >= time(nullptr)) return {std::move(peer), trust, {}};
  }
  auto verdict = shared_->judge(certificate, property(context, "x509_pem_cert_chain"));
  if (verdict.refusal) return {{}, trust, std::string(security::name_of(*verdict.refusal))};
  auto peer = std::make_shared<const security::Peer>(std::move(verdict.peer));
  if (known_.size() >= prune_at_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.peer.expired(); });
    prune_at_ = 2 * known_.size() + 64;
  }
  known_[certificate] = {peer, trust};
  return {std::move(peer), trust, {}};
}

grpc::Status to_status(Code code, const std::string& why) {
  for (const auto& [ours, theirs] : kCodes) {
    if (ours == code) return code == Code::kOk ? grpc::Status::OK : grpc::Status(theirs, why);
  }
  return {grpc::StatusCode::INTERNAL, why};
}

Code to_code(grpc::StatusCode code) {
  for (const auto& [ours, theirs] : kCodes) {
    if (theirs == code) return ours;
  }
  return Code::kInternal;
}

grpc::ByteBuffer to_buffer(const std::string& message) {
  const grpc::Slice slice(message);
  return grpc::ByteBuffer(&slice, 1);
}

std::string to_string(const grpc::ByteBuffer& buffer) {
  std::string message;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return message;
  message.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) message.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return message;
}

std::string address_of(const std::string& peer) {
  std::string out;
  for (size_t i = peer.find(':') + 1; i < peer.size(); ++i) {
    unsigned byte = 0;
    if (peer[i] == '%' && i + 2 < peer.size() &&
        std::from_chars(&peer[i + 1], &peer[i + 3], byte, 16).ptr == &peer[i + 3]) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += peer[i];
    }
  }
  return out;
}

}  // namespace margay::rpc
