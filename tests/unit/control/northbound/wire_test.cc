// SPDX-License-Identifier: Apache-2.0
// Messages as Advertisements and back.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "control/northbound/wire/advertisement.h"
#include "margay/v1/advertisement.pb.h"
#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::kStart;
using test::kUnixMs;
using test::sci_row;
using test::site_row;

Header header() { return {Direction::kToCPs, "c-sma.a", "cps.b", std::string(16, 'c'), 3, 2, 17, kUnixMs}; }

Row full_row() {
  Row row = sci_row("ARS", "192.0.2.10:80");
  row.version = {7, 9};
  row.metrics = {400, 5, 4, 9, 10, 8, 5};
  row.health = {3, 2, 1, 1};
  row.sci_health = HealthState::kDegraded;
  row.admin = Admin::kDraining;
  row.source = SourceState::kStale;
  row.restored = true;
  row.measured_at = kStart - 1500 * kMillisecond;
  return row;
}

Row bare_row() {
  Row row = site_row("ARS");
  row.version = {7, 9};
  row.metrics = {};
  row.scis = 2;
  row.measured_at = kStart;
  return row;
}

std::vector<Body> bodies() {
  Hello c_ps{{1, 2}, 1 << 16, {"ARS", "LLMS"}, std::string(16, 'p'), true, true, {{"ARS", {7, 1}}}};
  Hello c_sma{{1}, 1 << 20, {"ARS"}, std::string(64, 's')};
  c_sma.epoch = 7;
  c_sma.heartbeat = 60 * kSecond;
  const Change change{"ARS", {full_row(), bare_row()}, {{RowKey{"ARS", "x"}, {7, 9}, WithdrawReason::kScope}}};
  return {c_ps,
          c_sma,
          Batch{{Delta{change, {7, 8}, {7, 9}}}},
          SnapshotBegin{4, {7, 9}, 12, {"ARS", "LLMS"}},
          SnapshotChunk{4, {full_row(), bare_row()}},
          SnapshotEnd{4, {1, 2}},
          Keepalive{{{{"ARS", {7, 9}}, View::Check{2, {3, ~uint64_t{0}}}}, {{"LLMS", {7, 9}}, {}}}},
          Ack{5},
          Nack{3, NackCode::kTableFull, "no room", {{RowKey{"ARS", "x"}, {7, 9}}, {RowKey{"ARS"}, {7, 9}}}},
          SyncRequest{{"ARS"}, SyncReason::kOperator}};
}

TEST(AdvertisementWire, EveryMessageComesBackAsItWas) {
  for (const Body& body : bodies()) {
    const Message message{header(), body};
    v1::Advertisement wire;
    to_wire(message, kStart, wire);
    v1::Advertisement read;
    ASSERT_TRUE(read.ParseFromString(wire.SerializeAsString()));
    const auto back = message_of(read, kStart);
    ASSERT_TRUE(back) << name_of(body) << ": " << back.error().message;
    EXPECT_EQ(*back, message) << name_of(body);
  }
}

// CSMA-144..147: an age travels, not a time of somebody's clock.
TEST(AdvertisementWire, MeasurementIsAnAge) {
  v1::Row wire;
  to_wire(full_row(), kStart + 500 * kMillisecond, wire);
  EXPECT_EQ(wire.age().seconds(), 2);
  EXPECT_EQ(wire.age().nanos(), 0);
  const auto early = row_of(wire, kSecond);  // the receiver's clock began a second ago
  ASSERT_TRUE(early);
  EXPECT_EQ(kSecond - early->measured_at, 2 * kSecond);
}

TEST(AdvertisementWire, WhatIsAbsentIsNotZero) {
  v1::Row wire;
  to_wire(bare_row(), kStart, wire);
  EXPECT_FALSE(wire.has_gas());
  EXPECT_FALSE(wire.has_computing_time_milliseconds());
  EXPECT_FALSE(wire.has_source());
  EXPECT_TRUE(wire.key().has_site());
}

// What is not known of a later version is taken for the worst.
TEST(AdvertisementWire, UnknownWords) {
  const auto row = [](auto change) {
    v1::Row wire;
    to_wire(full_row(), kStart, wire);
    change(wire);
    return row_of(wire, kStart).value();
  };
  for (const int word : {0, 99}) {
    EXPECT_EQ(row([&](v1::Row& r) { r.set_health(static_cast<v1::HealthState>(word)); }).sci_health,
              HealthState::kUnhealthy);
    EXPECT_EQ(row([&](v1::Row& r) { r.set_admin(static_cast<v1::Admin>(word)); }).admin, Admin::kDisabled);
    EXPECT_EQ(row([&](v1::Row& r) { r.set_source(static_cast<v1::SourceState>(word)); }).source, SourceState::kFailed);
  }
}

std::string error_of(const std::string& text) {
  v1::Advertisement wire;
  const std::string good =
      "header { direction: DIRECTION_TO_C_PS sender: 'a' receiver: 'b' sequence: 1 sent { seconds: 1 } } ";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(good + text, &wire)) << text;
  const auto message = message_of(wire, kStart);
  return message ? "" : message.error().message;
}

TEST(AdvertisementWire, ErrorsNameTheField) {
  const std::string key = "key { cs_id: 'ARS' csci_id: 'x' } ", version = "version { epoch: 7 commit: 1 } ",
                    rest = "source: SOURCE_STATE_ACTIVE valid_for { seconds: 1 } ";
  const auto chunk = [](const std::string& row) { return error_of("snapshot_chunk { id: 1 rows { " + row + "} }"); };
  EXPECT_EQ(error_of("ack { sequence: 1 }"), "");
  EXPECT_EQ(error_of(""), "body: expected one that is known");
  EXPECT_EQ(chunk(key + version + rest), "");
  EXPECT_EQ(chunk("key { csci_id: 'x' } " + version + rest), "key.cs_id: expected 1 to 255 bytes");
  EXPECT_EQ(chunk("key { cs_id: 'ARS' } " + version + rest), "key: expected a csci_id or the site");
  EXPECT_EQ(chunk("key { cs_id: 'ARS' csci_id: '' } " + version + rest), "key.csci_id: expected 1 to 255 bytes");
  EXPECT_EQ(chunk("key { cs_id: 'ARS' csci_id: '" + std::string(256, 'x') + "' } " + version + rest),
            "key.csci_id: expected 1 to 255 bytes");
  EXPECT_EQ(chunk(key + rest), "version: expected an epoch above 0");
  EXPECT_EQ(chunk(key + version + "valid_for { seconds: 1 }"), "source: expected one, in an SCI's row");
  EXPECT_EQ(chunk("key { cs_id: 'ARS' site {} } " + version + rest), "source: expected none, in a site row");
  EXPECT_EQ(chunk(key + version + "source: SOURCE_STATE_ACTIVE"),
            "valid_for: expected a time of more than 0s to 1000000000s");
  EXPECT_EQ(chunk(key + version + rest + "age { seconds: -1 }"), "age: expected a time of 0s to 1000000000s");
  EXPECT_EQ(chunk(key + version + rest + "health_summary { unknown: 1 }"),
            "health_summary.unknown: expected at most as many as unhealthy");
  EXPECT_EQ(error_of("batch { deltas { cs_id: 'LLMS' after { epoch: 7 } through { epoch: 7 } rows { " + key + version +
                     rest + "} } }"),
            "delta.rows.key.cs_id: expected the delta's");
  EXPECT_EQ(error_of("snapshot_end { id: 1 digest: 'short' }"), "digest: expected 16 bytes");
  EXPECT_EQ(error_of("nack { sequence: 1 }"), "nack.code: expected one of its words");
}

TEST(AdvertisementWire, HeadersAreCheckedToo) {
  v1::Advertisement wire;
  to_wire({header(), Ack{1}}, kStart, wire);
  const auto error = [&](auto change) {
    v1::Advertisement copy = wire;
    change(*copy.mutable_header());
    const auto message = message_of(copy, kStart);
    return message ? "" : message.error().message;
  };
  EXPECT_EQ(error([](v1::Header& h) { h.clear_direction(); }), "header.direction: expected one of its words");
  EXPECT_EQ(error([](v1::Header& h) { h.clear_sender(); }), "header.sender: expected 1 to 255 bytes");
  EXPECT_EQ(error([](v1::Header& h) { h.clear_receiver(); }), "header.receiver: expected 1 to 255 bytes");
  EXPECT_EQ(error([](v1::Header& h) { h.clear_sequence(); }), "header.sequence: expected 1 or more");
  EXPECT_EQ(error([](v1::Header& h) { h.clear_sent(); }), "header.sent: expected a time");
  EXPECT_EQ(error([](v1::Header& h) { h.set_challenge(std::string(65, 'x')); }),
            "header.challenge: expected at most 64 bytes");
}

// What keeps messages below their limit is not less than what the wire takes.
TEST(AdvertisementWire, SizesAreNotUnderestimated) {
  const std::string longest(255, 'x');
  constexpr uint32_t kAll = ~0u;
  constexpr uint64_t kMost = ~uint64_t{0};
  Row row{
      RowKey{longest, longest}, {kMost, kMost}, {kAll, kAll, kAll, kAll, kAll, kAll, kAll}, {kAll, kAll, kAll, kAll}};
  row.sci_health = HealthState::kUnhealthy;
  row.admin = Admin::kDisabled;
  row.source = SourceState::kFailed;
  row.scis = kAll;
  row.restored = true;
  row.measured_at = kStart - 999'999'999 * kSecond - 999'999'999;
  row.valid_for = 999'999'999 * kSecond + 999'999'999;
  const auto size = [](const Body& body) {
    v1::Advertisement wire;
    to_wire({{}, body}, kStart, wire);
    return wire.ByteSizeLong();
  };
  EXPECT_LE(size(SnapshotChunk{1, {row}}) - size(SnapshotChunk{1}), size_of(row));
  const Withdrawal withdrawal{row.key, row.version, WithdrawReason::kScope};
  const RowVersion most{kMost, kMost};
  EXPECT_LE(size(Batch{{Delta{{longest, {}, {}}, most, most}}}), kDeltaSize);
  EXPECT_LE(size(Batch{{Delta{{longest, {row}, {withdrawal}}, most, most}}}),
            kDeltaSize + size_of(row) + size_of(withdrawal) + 8);
  const View view{{longest, most}, View::Check{kMost, {}}};
  EXPECT_LE(size(Keepalive{{view, view}}), 2 * size_of(view) + 8);
  EXPECT_LE(size(SnapshotBegin{kMost, most, kMost, {longest}}), size_of(RowKey{longest}) + 64);
  v1::Advertisement wire;
  to_wire({{Direction::kToCPs, longest, longest, std::string(64, 'x'), kMost, kMost, kMost, kUnixMs}, Ack{kMost}},
          kStart, wire);
  EXPECT_LE(wire.ByteSizeLong() + 64, kEnvelopeSize);
}

}  // namespace
}  // namespace margay::northbound
