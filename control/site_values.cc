// SPDX-License-Identifier: Apache-2.0
#include "control/site_values.h"

#include <charconv>
#include <string>
#include <string_view>

namespace margay::control {
namespace {

constexpr size_t kUrlBytesMax = 2047;

// What is wrong with a URL template; empty: nothing.
std::string url_fault(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const bool has_host = url.starts_with(kScheme) && url.size() > kScheme.size() &&
                        url.find_first_of("/:?#", kScheme.size()) != kScheme.size();
  if (!has_host || url.find(' ') != std::string_view::npos) {
    return "a URL such as http://{address}:{port}/health";
  }
  for (size_t at = url.find_first_of("{}"); at != std::string_view::npos; at = url.find_first_of("{}", at)) {
    const size_t end = url.find('}', at);
    const std::string_view field = url.substr(at, end == std::string_view::npos ? end : end - at + 1);
    if (field != "{address}" && field != "{port}") return "no fields but {address} and {port}";
    at = end + 1;
  }
  return {};
}

}  // namespace

void read_interval(const Field& field, Nanoseconds& out) { read_duration(field, kIntervalMin, kIntervalMax, out); }

void read_share(const Field& field, double max_percent, Share& out) {
  double share = 0;
  if (read_percentage(field, 0, max_percent, share)) out = Share{share};
}

void read_factor(const Field& field, Share& out) {
  double factor = 0;
  if (read_number(field, 0, 1, factor)) out = Share{factor};
}

void read_bucket(const Field& field, TokenRate& bucket) {
  constexpr uint64_t kRateMax = 1'000'000, kBurstMax = 1'000'000;
  uint64_t per_second = 0;
  if (read_rate(field["rate"], per_second)) {
    if (per_second > kRateMax) field["rate"].fail_expected("a rate of at most " + std::to_string(kRateMax) + "/s");
    bucket.spacing = kSecond / per_second;
  }
  read_integer(field["burst"], 1, kBurstMax, bucket.burst);
}

void read_url(const Field& field, std::string& out) {
  std::string url;
  if (!read_text(field, kUrlBytesMax, url)) return;
  const std::string expected = url_fault(url);
  if (expected.empty()) {
    out = url;
  } else {
    field.fail_expected(expected);
  }
}

void read_listen(const Field& field, const char* address, const char* port, std::optional<AddressPort>& out) {
  std::string text;
  if (!read_text(field, kUrlBytesMax, text)) return;
  const auto listen = AddressPort::parse(text);
  if (listen) {
    out = *listen;
  } else {
    field.fail_expected(std::string("an address with port such as ") + address + ":" + port + " or [::1]:" + port);
  }
}

void read_host_port(const Field& field, std::string& out) {
  std::string text;
  if (!read_text(field, kUrlBytesMax, text)) return;
  const size_t colon = text.rfind(':');
  uint64_t port = 0;
  const std::string_view digits = colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_port = error == std::errc() && end == digits.data() + digits.size() && port >= 1 && port <= 65535;
  const std::string_view host = std::string_view(text).substr(0, is_port ? colon : 0);
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !(host.front() == '[' && host.back() == ']');
  if (host.empty() || bare_ipv6 || host.find_first_of(" /?#@") != std::string_view::npos) {
    field.fail_expected("a host with port such as cps.example.net:7444, 192.0.2.1:7444 or [2001:db8::1]:7444");
  } else {
    out = text;
  }
}

}  // namespace margay::control
