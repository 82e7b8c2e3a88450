// SPDX-License-Identifier: Apache-2.0
#pragma once

// The audit log's form: one JSON object a line, each with the SHA-256 of the line before it, so that a line that was
// changed, removed or put in shows. Lines cut off at the end show by the head alone, which `show audit` tells. Pure but
// for `verify_file` and `resume`; one thread.

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "common/result.h"

namespace margay {

// What is worth an audit line (CSMA-193). All texts may come from a peer.
struct AuditEntry {
  std::string kind;    // "REFUSED", "QUARANTINED", "WITHDRAWN", ...
  std::string who;     // an authenticated identity, or an address where there is none
  std::string what;    // a CSCI-ID, a stream, a command
  std::string detail;  // why
  int64_t unix_ms = 0;
  uint64_t times = 1;  // the same so often since `unix_ms`
};

class AuditChain {
 public:
  // The line of an entry, without its end.
  std::string add(const AuditEntry& entry);

  uint64_t lines() const { return lines_; }
  // SHA-256 of the last line, in hexadecimal; 64 zeros before the first.
  const std::string& head() const { return head_; }

  // Takes the next line of a log that exists. The error says what is wrong with it.
  Result<void> follow(std::string_view line);
  // What goes on behind a line, whatever stood before it.
  static Result<AuditChain> after(std::string_view line);

 private:
  uint64_t lines_ = 0;
  std::string head_ = std::string(64, '0');
};

// The chain of a whole log; the error is "PATH:LINE: what is wrong, what was expected".
Result<AuditChain> verify_audit(std::istream& log, const std::string& path);

// From the last line on, without looking at those before it. A file that does not exist: from the beginning. An error:
// its last line is none.
Result<AuditChain> resume_audit(const std::string& path);

}  // namespace margay
