// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/capture.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include <pcap/pcap.h>

namespace margay::dp {

void CaptureReader::Close::operator()(pcap* p) const { pcap_close(p); }

Result<CaptureReader> CaptureReader::open(const std::string& file, PortIndex port) {
  CaptureReader reader(file, port);
  std::FILE* stream = std::fopen(file.c_str(), "rbe");
  if (stream == nullptr) return Error{file + ": cannot open: " + std::strerror(errno)};
  char why[PCAP_ERRBUF_SIZE] = "";
  reader.pcap_.reset(pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, why));
  if (!reader.pcap_) {
    std::fclose(stream);
    return Error{file + ": not a pcap or pcapng capture: " + why};
  }
  const int link_type = pcap_datalink(reader.pcap_.get());
  if (link_type != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(link_type);
    return Error{file + ": link type " + (name != nullptr ? name : std::to_string(link_type)) +
                 ", expected EN10MB (Ethernet)"};
  }
  if (auto first = reader.advance(); !first) return first.error();
  return reader;
}

Result<void> CaptureReader::advance() {
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  const int got = pcap_next_ex(pcap_.get(), &header, &bytes);
  if (got == PCAP_ERROR_BREAK) {
    at_end_ = true;
    return {};
  }
  ++count_;
  if (got != 1) return Error{file_ + ": packet " + std::to_string(count_) + ": " + pcap_geterr(pcap_.get())};
  frame_.bytes = {bytes, header->caplen};
  frame_.wire_length = header->len > header->caplen ? header->len : header->caplen;
  take_time(header->ts.tv_sec, header->ts.tv_usec);  // tv_usec holds nanoseconds: the precision asked for
  return {};
}

void CaptureReader::take_time(int64_t seconds, int64_t nanoseconds) {
  constexpr int64_t kSecondsMax = std::numeric_limits<uint32_t>::max();  // what the output captures can hold
  const bool valid =
      seconds >= 0 && seconds <= kSecondsMax && nanoseconds >= 0 && nanoseconds < static_cast<int64_t>(kSecond);
  const Nanoseconds time =
      valid ? static_cast<Nanoseconds>(seconds) * kSecond + static_cast<Nanoseconds>(nanoseconds) : 0;
  if (valid && time >= frame_.time) {
    frame_.time = time;
  } else {
    ++clamped_;
  }
}

Result<void> CaptureMerge::advance() {
  if (auto moved = next_->advance(); !moved) return moved;
  choose();
  return {};
}

void CaptureMerge::choose() {
  next_ = nullptr;
  for (CaptureReader& reader : readers_) {
    if (reader.at_end()) continue;
    if (next_ == nullptr || reader.frame().time < next_->frame().time) next_ = &reader;
  }
}

void CaptureWriter::Close::operator()(pcap* p) const { pcap_close(p); }
void CaptureWriter::Close::operator()(pcap_dumper* d) const { pcap_dump_close(d); }

Result<CaptureWriter> CaptureWriter::create(const std::string& file) {
  constexpr int kSnapLength = 65535;
  CaptureWriter writer(file);
  writer.pcap_.reset(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO));
  if (!writer.pcap_) return Error{file + ": out of memory"};
  writer.dumper_.reset(pcap_dump_open(writer.pcap_.get(), file.c_str()));
  if (!writer.dumper_) return Error{file + ": cannot write: " + std::strerror(errno)};
  return writer;
}

void CaptureWriter::write(Nanoseconds time, std::span<const uint8_t> frame) {
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<time_t>(time / kSecond);
  header.ts.tv_usec = static_cast<suseconds_t>(time % kSecond);  // nanoseconds: the precision of the file
  header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
  pcap_dump(reinterpret_cast<u_char*>(dumper_.get()), &header, frame.data());
}

Result<void> CaptureWriter::close() {
  // pcap_dump() tells of no error: the stream's own flag does.
  if (pcap_dump_flush(dumper_.get()) != 0 || std::ferror(pcap_dump_file(dumper_.get())) != 0) {
    return Error{file_ + ": cannot write all of it: " + std::strerror(errno)};
  }
  dumper_.reset();
  return {};
}

}  // namespace margay::dp
