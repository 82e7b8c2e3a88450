// SPDX-License-Identifier: Apache-2.0
#include "control/agent/collection_port.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <utility>

#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "control/watch.h"

namespace margay::control {
namespace {

v1::ReportVerdict wire_of(c_sma::Verdict verdict) { return enum_to_wire<v1::ReportVerdict>(verdict); }

constexpr int kScanned = 2048;  // bytes of a report; its trigger stands before all that may be long

}  // namespace

// A look at the bytes, in gRPC's threads: nothing is unfolded there.
bool is_urgent(std::string_view report) {
  using google::protobuf::internal::WireFormatLite;
  const int size = static_cast<int>(std::min<size_t>(report.size(), kScanned));
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(report.data()), size);
  constexpr uint32_t kTrigger =
      WireFormatLite::MakeTag(v1::Report::kTriggerFieldNumber, WireFormatLite::WIRETYPE_VARINT);
  for (uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    uint32_t trigger = 0;
    if (tag == kTrigger)
      return in.ReadVarint32(&trigger) && trigger >= v1::TRIGGER_HEALTH && trigger != v1::TRIGGER_START;
    if (!WireFormatLite::SkipField(&in, tag)) return false;
  }
  return false;
}

static_assert(enum_to_wire<v1::ReportVerdict>(c_sma::Verdict::kRefused) == v1::REPORT_VERDICT_REFUSED);

std::shared_ptr<const c_sma::Peer> reporter_of(const security::Peer& peer) {
  auto as = std::make_shared<c_sma::Peer>();
  as->identity = peer.subject;
  for (const security::Name& name : peer.names) {
    if (name.kind == security::Kind::kSci) as->names.insert({name.identity, name.cs_id});
  }
  return as;
}

// With a quarter to spare for streams that end while the next ones begin.
rpc::Limits CollectionPort::limits_for(size_t scis) {
  rpc::Limits limits;
  const size_t streams = std::max(limits.streams, scis + scis / 4);
  limits.memory = std::max(limits.memory, limits.memory / limits.streams * streams);
  limits.streams = streams;
  return limits;
}

Result<std::unique_ptr<CollectionPort>> CollectionPort::open(const std::string& listen, size_t scis,
                                                             std::shared_ptr<security::Credentials> credentials,
                                                             int epoll) {
  const auto address = AddressPort::parse(listen);
  if (!address) return address.error();
  const rpc::Limits limits = limits_for(scis);
  rpc::ServerConfig config{.method = "/margay.v1.Collection/Push",
                           .single = false,
                           .listen = *address,
                           .credentials = std::move(credentials),
                           .peers = {.kind = security::Kind::kSci},
                           .limits = limits};
  config.urgent = is_urgent;
  auto server = rpc::Server::open(std::move(config));
  if (!server) return server.error();
  (void)watch(epoll, (*server)->fd());
  return std::unique_ptr<CollectionPort>(new CollectionPort(std::move(*server)));
}

bool CollectionPort::poll(const Told& told) {
  for (size_t n = 0; n < kEventsMax; ++n) {
    const auto event = server_->next();
    if (!event) return false;
    std::visit([&](const auto& e) { on(e, told); }, *event);
  }
  return true;
}

void CollectionPort::on(const rpc::Opened& e, const Told&) {
  streams_[e.id] = {.as = reporter_of(*e.peer), .address = e.address};
}

void CollectionPort::on(const rpc::Received<std::string>& e, const Told& told) {
  const auto found = streams_.find(e.id);
  if (found == streams_.end()) return;
  v1::Report message;
  if (!message.ParseFromString(e.message)) {
    told.event(c_sma::ReportUnreadable{found->second.as->identity, "", "no message of this protocol", e.id});
    return server_->malformed(e.id, "expected a margay.v1.Report");
  }
  auto report = report_of(message);
  if (!report) {
    told.event(c_sma::ReportUnreadable{found->second.as->identity, message.csci_id(), report.error().message, e.id});
    return;
  }
  told.event(c_sma::ReportReceived{std::move(*report), found->second.as, e.id, false});
}

void CollectionPort::on(const rpc::WriteDone& e, const Told&) {
  const auto found = streams_.find(e.id);
  if (found == streams_.end()) return;
  found->second.writing = false;
  write(e.id, found->second);
}

void CollectionPort::on(const rpc::Closed& e, const Told& told) {
  const auto found = streams_.find(e.id);
  if (found == streams_.end()) return;
  const std::string identity = found->second.as->identity;
  const bool known = found->second.revoked;
  streams_.erase(found);
  told.event(c_sma::StreamClosed{e.id});
  if (e.refusal != security::Refusal::kRevoked || known) return;
  for (auto& [id, stream] : streams_) {
    if (stream.as->identity == identity) stream.revoked = true;  // it ends too, and this is told once
  }
  told.event(c_sma::Revoked{identity});
}

void CollectionPort::answer(const c_sma::Judged& judged) {
  const auto found = streams_.find(judged.stream);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (stream.replies.size() >= kRepliesMax) {
    return server_->close(judged.stream, rpc::Code::kExhausted, "answers are not read");
  }
  v1::ReportAck& ack = *stream.replies.emplace_back().mutable_ack();
  ack.set_epoch(judged.epoch);
  ack.set_sequence(judged.sequence);
  ack.set_verdict(wire_of(judged.verdict));
  ack.set_reason(std::string(judged.reason));
  put_unix_ms(judged.received_ms, *ack.mutable_received_at());
  write(judged.stream, stream);
}

bool CollectionPort::pull(c_sma::StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  found->second.pull = true;
  write(id, found->second);
  return true;
}

void CollectionPort::write(rpc::StreamId id, Stream& stream) {
  if (stream.writing) return;
  v1::CollectionReply reply;
  if (stream.pull) {
    reply.mutable_pull();
    stream.pull = false;
  } else if (!stream.replies.empty()) {
    reply = std::move(stream.replies.front());
    stream.replies.pop_front();
  } else {
    return;
  }
  stream.writing = server_->send(id, reply.SerializeAsString());
}

void CollectionPort::close(c_sma::StreamId stream, const std::string& why) {
  server_->close(stream, rpc::Code::kDenied, why);
}

}  // namespace margay::control
