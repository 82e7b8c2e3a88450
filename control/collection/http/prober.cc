// SPDX-License-Identifier: Apache-2.0
#include "control/collection/http/prober.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <curl/curl.h>
#include <strings.h>

#include "common/check.h"
#include "common/monotonic.h"

namespace margay::control {
namespace {

constexpr Nanoseconds kLateMin = 100 * kMillisecond;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

struct Asked {
  uint64_t ticket = 0;
  bool connect_only = false;
  bool keep_body = true;
  bool encoded = false;
  size_t received = 0;
  Nanoseconds timeout = 0;
  std::shared_ptr<security::Handshake> handshake;
  std::unique_ptr<CURL, EasyDeleter> easy;
  Prober::Answer answer;
};

bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Of an SCI nothing is inflated: we offer no encoding, and whoever uses one is cut off before its body.
size_t look_at_header(char* data, size_t, size_t bytes, void* to) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::string_view line(data, bytes);
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (!is_same(name, "content-encoding") && !is_same(name, "transfer-encoding")) return bytes;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(kBlank), value.size()));
  value = value.substr(0, value.find_last_not_of(kBlank) + 1);
  if (is_same(value, "chunked") || is_same(value, "identity")) return bytes;
  static_cast<Asked*>(to)->encoded = true;
  return 0;
}

size_t take_body(char* data, size_t, size_t bytes, void* to) {
  Asked& asked = *static_cast<Asked*>(to);
  if (bytes > Prober::kBodyMax - asked.received) return 0;  // libcurl ends the transfer
  asked.received += bytes;
  if (asked.keep_body) asked.answer.body.append(data, bytes);
  return bytes;
}

// "http://10.1.0.11:8080", "http://[2001:db8::1]:80": libcurl only connects there.
std::string connect_url(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  MARGAY_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

CURLcode set_up_context(CURL*, void* context, void* handshake) {
  return static_cast<security::Handshake*>(handshake)->set_up(context) ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
}

// Names are those of control/security, never a host's; no CA of the system's is read.
void secure(Asked& asked, std::shared_ptr<security::Handshake> handshake) {
  CURL* easy = asked.easy.get();
  asked.handshake = std::move(handshake);
  set(easy, CURLOPT_CAINFO, static_cast<const char*>(nullptr));
  set(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  set(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  set(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  set(easy, CURLOPT_SSL_CTX_FUNCTION, &set_up_context);
  set(easy, CURLOPT_SSL_CTX_DATA, static_cast<void*>(asked.handshake.get()));
  set(easy, CURLOPT_HEADERFUNCTION, &look_at_header);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&asked));
}

// Errors of a connect(2) that are this host's and not the other's.
bool is_own(long os_error) {
  switch (os_error) {
    case 0:  // libcurl got no socket at all
    case ENETUNREACH:
    case EADDRNOTAVAIL:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EACCES:
    case EPERM:
      return true;
    default:
      return false;
  }
}

bool is_failure(CURLcode code) {
  switch (static_cast<int>(code)) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WRITE_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_HTTP2:
    case CURLE_BAD_CONTENT_ENCODING:
      return true;
    default:
      return false;
  }
}

// libcurl calls it a lack of memory when a line of the header, or a status line, is longer than it takes (100 KB).
bool is_long_header(CURL* easy, CURLcode code) {
  curl_off_t answered_after = 0;
  curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &answered_after);
  return code == CURLE_OUT_OF_MEMORY && answered_after > 0;
}

// What was not the instance's doing. `late`: how much later than we wanted we looked (SIGSTOP, a long turn), so that
// the answer may lie there (D-51).
bool is_own(const Asked& asked, CURLcode code, long os_error, Nanoseconds late) {
  CURL* easy = asked.easy.get();
  if (is_long_header(easy, code)) return false;
  if (!is_failure(code)) return true;
  if (code == CURLE_COULDNT_CONNECT) return is_own(os_error);
  if (code == CURLE_OPERATION_TIMEDOUT) return late > std::max(asked.timeout / 2, kLateMin);
  long connections = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connections);
  return code == CURLE_UNSUPPORTED_PROTOCOL && connections == 0;  // else: what answered is no HTTP
}

std::string words_of(const Asked& asked, CURLcode code, long os_error) {
  if (asked.handshake) {
    const auto& peer = asked.handshake->peer();
    const bool judged = peer.refusal && peer.refusal != security::Refusal::kNoCertificate;
    if (judged) return std::string(security::name_of(*peer.refusal)) + ": " + peer.detail;
  }
  if (asked.encoded) return "the answer is compressed, expected it as it is";
  if (code == CURLE_WRITE_ERROR) return "body above " + std::to_string(Prober::kBodyMax) + " bytes";
  if (is_long_header(asked.easy.get(), code)) return "a line of the header is too long";
  const std::string words = curl_easy_strerror(code);
  return os_error == 0 ? words : words + ": " + std::strerror(static_cast<int>(os_error));
}

// Of what an SCI says to its error.
std::string first_line(const std::string& body) {
  constexpr size_t kBytesMax = 200;
  const std::string line = body.substr(0, std::min(body.find('\n'), kBytesMax));
  return line.empty() ? line : ": " + line;
}

void judge(Asked& asked, CURLcode code, Nanoseconds late) {
  Prober::Answer& answer = asked.answer;
  CURL* easy = asked.easy.get();
  curl_off_t microseconds = 0;
  long status = 0, os_error = 0;
  curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &microseconds);
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
  answer.took = static_cast<Nanoseconds>(microseconds) * 1000;
  if (code == CURLE_OK && (asked.connect_only || (status >= 200 && status < 300))) {
    answer.verdict = Prober::Verdict::kOk;
  } else if (code == CURLE_OK) {
    answer.verdict = Prober::Verdict::kFailed;
    answer.detail = "status " + std::to_string(status);
    if (asked.handshake) answer.detail += first_line(answer.body);
  } else {
    const bool own = is_own(asked, code, os_error, late);
    answer.verdict = own ? Prober::Verdict::kOwnError : Prober::Verdict::kFailed;
    answer.silent = !own && code == CURLE_OPERATION_TIMEDOUT;
    answer.detail = words_of(asked, code, os_error);
  }
}

}  // namespace

struct Prober::State {
  std::unique_ptr<CURLM, MultiDeleter> multi{curl_multi_init()};
  std::unordered_map<CURL*, Asked> asked;
  Nanoseconds look_again_at = kNever;  // at the latest, if nobody holds us up
};

Prober::Prober() : state_(std::make_unique<State>()) { MARGAY_CHECK(state_->multi != nullptr); }

Prober::~Prober() {
  for (auto& [easy, asked] : state_->asked) curl_multi_remove_handle(state_->multi.get(), easy);
}

size_t Prober::asking() const { return state_->asked.size(); }

void Prober::ask(const Question& q) {
  CURL* easy = curl_easy_init();
  MARGAY_CHECK(easy != nullptr);
  Asked& asked = state_->asked[easy];
  asked.easy.reset(easy);
  asked.ticket = q.ticket;
  asked.timeout = q.timeout;
  asked.answer.ticket = q.ticket;
  asked.connect_only = q.url.empty();
  asked.keep_body = q.keep_body;
  const std::string url = asked.connect_only ? connect_url(q.address, q.port) : q.url;
  set(easy, CURLOPT_URL, url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, q.handshake ? "https" : "http");
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(kMillisecond, q.timeout) / kMillisecond));
  set(easy, CURLOPT_FRESH_CONNECT, 1L);
  set(easy, CURLOPT_FORBID_REUSE, 1L);
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_USERAGENT, "margay");
  set(easy, CURLOPT_WRITEFUNCTION, &take_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&asked));
  if (asked.connect_only) set(easy, CURLOPT_CONNECT_ONLY, 1L);
  if (q.handshake) secure(asked, q.handshake);
  MARGAY_CHECK(curl_multi_add_handle(state_->multi.get(), easy) == CURLM_OK);
}

std::vector<Prober::Answer> Prober::poll(std::chrono::milliseconds timeout, int wake) {
  CURLM* multi = state_->multi.get();
  std::vector<Answer> answers;
  for (bool waited = false;; waited = true) {
    int running = 0, left = 0;
    const Nanoseconds now = monotonic_now();
    const Nanoseconds late = now > state_->look_again_at ? now - state_->look_again_at : 0;
    curl_multi_perform(multi, &running);
    state_->look_again_at = monotonic_now();
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto found = state_->asked.find(message->easy_handle);
      judge(found->second, message->data.result, late);
      answers.push_back(std::move(found->second.answer));
      curl_multi_remove_handle(multi, found->first);
      state_->asked.erase(found);
    }
    if (!answers.empty() || waited) return answers;
    state_->look_again_at += static_cast<Nanoseconds>(std::chrono::nanoseconds(timeout).count());
    curl_waitfd extra{wake, CURL_WAIT_POLLIN, 0};
    curl_multi_poll(multi, &extra, wake >= 0 ? 1 : 0, static_cast<int>(timeout.count()), nullptr);
  }
}

}  // namespace margay::control
