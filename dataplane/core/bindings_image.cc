// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/bindings_image.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "common/check.h"
#include "dataplane/core/site_change.h"

namespace margay::dp {
namespace {

constexpr uint64_t kMagic = 0x31424759414752;
constexpr uint32_t kVersion = 1;
constexpr size_t kPage = 4096;
constexpr size_t kBootIdBytes = 36;
constexpr uint32_t kEntriesMax = uint32_t{1} << 31;
constexpr uint32_t kFrontendsMax = shared_table::kScisMax * shared_table::kEndpointsMax;

enum class State : uint32_t { kBuilding = 0, kWhole = 0x57484f4c };

struct Header {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t layout = 0;
  std::array<char, kBootIdBytes> boot_id{};
  uint32_t process = 0;
  HashSecret secret;
  uint64_t table_bytes = 0;
  uint32_t workers = 0;
  uint32_t entries = 0;
  uint64_t checksum = 0;  // of all before it
  // Changes while the image is in use.
  Tick clock = 0;
  uint32_t table = 0;  // 1 or 2: the saved table that holds; 0: none
  State state = State::kBuilding;
  uint32_t spare = 0;
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) <= kPage);

struct TableHeader {
  uint64_t bytes = 0;  // behind this header
  uint64_t checksum = 0;
};

struct FrontendRecord {
  IpAddress address;
  FrontendIndex index = 0;
  uint16_t port = 0;
  Protocol protocol{};
  uint8_t spare = 0;
};
static_assert(sizeof(FrontendRecord) == 24 && std::is_trivially_copyable_v<FrontendRecord>);

// Of everything that the bytes of a binding mean.
constexpr uint32_t layout_hash() {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const size_t value : {sizeof(Header),
                             sizeof(FlowEntry),
                             offsetof(FlowEntry, client),
                             offsetof(FlowEntry, client_port),
                             offsetof(FlowEntry, protocol),
                             offsetof(FlowEntry, state),
                             offsetof(FlowEntry, frontend),
                             offsetof(FlowEntry, instance),
                             offsetof(FlowEntry, instance_generation),
                             offsetof(FlowEntry, snat_port),
                             offsetof(FlowEntry, client_next),
                             offsetof(FlowEntry, instance_next),
                             offsetof(FlowEntry, client_acked),
                             offsetof(FlowEntry, instance_acked),
                             offsetof(FlowEntry, last_seen),
                             offsetof(FlowEntry, flags),
                             offsetof(FlowEntry, snat_address),
                             offsetof(FlowEntry, adoption),
                             kFlowStates,
                             size_t{kResetByInstance},
                             size_t{kTickLength},
                             sizeof(FrontendRecord)}) {
    hash = (hash ^ static_cast<uint32_t>(value)) * 16777619;
  }
  return hash;
}

uint64_t checksum_of(const Header& header) {
  return shared_table::checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

// By memcpy: the image may hold anything.
template <class T>
T load(std::span<const std::byte> from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

// What is stored before it is in the file before it (see make_whole() in flow_entry.h).
template <class T, class Value>
void store_last(std::span<std::byte> bytes, size_t offset, Value value) {
  const T stored = static_cast<T>(value);
  std::atomic_signal_fence(std::memory_order_release);
  std::memcpy(bytes.data() + offset, &stored, sizeof stored);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

size_t table_offset(const ImageShape& shape, uint32_t which) {  // 1 or 2
  return kPage + (which - 1) * (sizeof(TableHeader) + shape.table_bytes);
}
size_t entries_offset(const ImageShape& shape) { return (table_offset(shape, 3) + kPage - 1) / kPage * kPage; }

std::vector<std::byte> encode(const SiteTable& table) {
  std::vector<FrontendRecord> frontends;
  for (FrontendIndex f = 0; f < table.frontends.size(); ++f) {
    const auto& [endpoint, sci] = table.frontends[f];
    if (sci != kNoIndex) frontends.push_back({endpoint.address, f, endpoint.port, endpoint.protocol});
  }
  shared_table::Snapshot snapshot = snapshot_of(table);
  snapshot.generation = std::max<uint64_t>(snapshot.generation, 1);  // a static table has none
  if (table.waiting) snapshot.scis.clear();
  const std::vector<std::byte> sent = shared_table::encode(snapshot);
  const uint64_t count = frontends.size();
  std::vector<std::byte> bytes(sizeof count);
  std::memcpy(bytes.data(), &count, sizeof count);
  const auto records = std::as_bytes(std::span(frontends));
  bytes.insert(bytes.end(), records.begin(), records.end());
  bytes.insert(bytes.end(), sent.begin(), sent.end());
  return bytes;
}

Result<SavedTable> decode(std::span<const std::byte> bytes) {
  SavedTable table;
  if (bytes.size() < sizeof(uint64_t)) return Error{"saved table ends early"};
  const auto count = load<uint64_t>(bytes);
  bytes = bytes.subspan(sizeof count);
  if (count > kFrontendsMax || count * sizeof(FrontendRecord) > bytes.size()) return Error{"saved table ends early"};
  for (uint64_t k = 0; k < count; ++k, bytes = bytes.subspan(sizeof(FrontendRecord))) {
    const auto record = load<FrontendRecord>(bytes);
    table.frontends.insert_or_assign(record.index, Endpoint{record.address, record.port, record.protocol});
  }
  auto snapshot = shared_table::decode(bytes);
  if (!snapshot) return in("saved table", snapshot.error());
  table.snapshot = std::move(*snapshot);
  return table;
}

Result<void> check_header(const Header& header, std::string_view boot_id) {
  const auto differs = [](const char* what, uint64_t found, uint64_t expected) {
    return Error{"has " + std::string(what) + " " + std::to_string(found) + ", expected " + std::to_string(expected)};
  };
  if (header.magic != kMagic) return Error{"is no image of bindings"};
  if (header.version != kVersion) return differs("version", header.version, kVersion);
  if (header.layout != layout_hash()) return differs("the layout of another build:", header.layout, layout_hash());
  if (header.state == State::kBuilding) return Error{"was never finished"};
  if (header.state != State::kWhole) return differs("state", static_cast<uint32_t>(header.state), uint32_t{0x57484f4c});
  if (std::string_view(header.boot_id.data(), kBootIdBytes) != boot_id) {
    return Error{"is of another boot, whose clock is not this one's"};
  }
  if (header.checksum != checksum_of(header)) return Error{"has a header with a wrong checksum"};
  return {};
}

Result<ImageShape> check_shape(const Header& header, size_t bytes) {
  if (header.workers < 1 || header.workers > kWorkersMax) {
    return Error{"has " + std::to_string(header.workers) + " workers, expected 1 to " + std::to_string(kWorkersMax)};
  }
  if (header.entries >= kEntriesMax || header.table_bytes > 2 * shared_table::kSnapshotBytesMax) {
    return Error{"names sizes that none has"};
  }
  const ImageShape shape{header.workers, header.entries, header.table_bytes};
  if (bytes < shape.bytes()) {
    return Error{"has " + std::to_string(bytes) + " bytes, expected " + std::to_string(shape.bytes())};
  }
  return shape;
}

Result<SavedTable> open_table(std::span<const std::byte> image, const ImageShape& shape, uint32_t which) {
  if (which == 0) return Error{"holds no saved table"};
  if (which > 2) return Error{"names saved table " + std::to_string(which) + ", expected 1 or 2"};
  const auto bytes = image.subspan(table_offset(shape, which), sizeof(TableHeader) + shape.table_bytes);
  const auto header = load<TableHeader>(bytes);
  if (header.bytes > shape.table_bytes) {
    return Error{"has a saved table of " + std::to_string(header.bytes) + " bytes, expected at most " +
                 std::to_string(shape.table_bytes)};
  }
  const auto table = bytes.subspan(sizeof(TableHeader), header.bytes);
  if (shared_table::checksum(table) != header.checksum) return Error{"has a saved table with a wrong checksum"};
  return decode(table);
}

}  // namespace

size_t ImageShape::bytes() const { return entries_offset(*this) + size_t{workers} * entries * sizeof(FlowEntry); }

uint64_t table_bytes_for(size_t scis, size_t instances) {
  const size_t bytes = 65536 + scis * 4096 + instances * 512;
  return std::min(bytes, 2 * shared_table::kSnapshotBytesMax) / kCacheLine * kCacheLine;
}

BindingsImage::BindingsImage(std::span<std::byte> bytes, const ImageShape& shape, std::string_view boot_id,
                             const HashSecret& secret, uint32_t process)
    : bytes_(bytes), shape_(shape) {
  MARGAY_CHECK(bytes.size() >= shape.bytes() && boot_id.size() == kBootIdBytes);
  Header header;
  header.layout = layout_hash();
  std::copy(boot_id.begin(), boot_id.end(), header.boot_id.begin());
  header.process = process;
  header.secret = secret;
  header.table_bytes = shape.table_bytes;
  header.workers = shape.workers;
  header.entries = shape.entries;
  header.checksum = checksum_of(header);
  std::memcpy(bytes_.data(), &header, sizeof header);
}

std::span<FlowEntry> BindingsImage::entries(WorkerIndex w) const {
  auto* first = reinterpret_cast<FlowEntry*>(bytes_.data() + entries_offset(shape_));
  return {first + size_t{w} * shape_.entries, shape_.entries};
}

Result<void> BindingsImage::save(const SiteTable& table) {
  const std::vector<std::byte> encoded = encode(table);
  if (encoded.size() > shape_.table_bytes) {
    store_last<uint32_t>(bytes_, offsetof(Header, table), 0);
    return Error{"table of " + std::to_string(encoded.size()) + " bytes, expected at most " +
                 std::to_string(shape_.table_bytes)};
  }
  const uint32_t which = load<Header>(bytes_).table == 1 ? 2 : 1;
  const auto to = bytes_.subspan(table_offset(shape_, which));
  const TableHeader header{encoded.size(), shared_table::checksum(encoded)};
  std::memcpy(to.data(), &header, sizeof header);
  std::memcpy(to.data() + sizeof header, encoded.data(), encoded.size());
  store_last<uint32_t>(bytes_, offsetof(Header, table), which);
  return {};
}

void BindingsImage::set_clock(Tick now) { store_last<Tick>(bytes_, offsetof(Header, clock), now); }

void BindingsImage::finish() { store_last<State>(bytes_, offsetof(Header, state), State::kWhole); }

Result<OpenedImage> open_image(std::span<const std::byte> bytes, std::string_view boot_id) {
  if (bytes.size() < kPage) {
    return Error{"has " + std::to_string(bytes.size()) + " bytes, expected at least " + std::to_string(kPage)};
  }
  const auto header = load<Header>(bytes);
  if (auto done = check_header(header, boot_id); !done) return done.error();
  auto shape = check_shape(header, bytes.size());
  if (!shape) return shape.error();
  auto table = open_table(bytes, *shape, header.table);
  if (!table) return table.error();
  const auto* first = reinterpret_cast<const FlowEntry*>(bytes.data() + entries_offset(*shape));
  return OpenedImage{
      header.secret, header.process, header.clock, std::move(*table), {first, size_t{shape->workers} * shape->entries}};
}

}  // namespace margay::dp
