// SPDX-License-Identifier: Apache-2.0
// Which addresses a site file may give to ports, gateways, SCIs and instances: one host's, each in its place
// (RFC 1122 §3.2.1.3, RFC 6890, RFC 4291, RFC 3021).
#include <gtest/gtest.h>

#include <string>

#include "common/site/site_reader.h"
#include "tests/support/site_text.h"

namespace margay {
namespace {

using namespace margay::test;

constexpr const char* kNoHosts[] = {"0.0.0.0",   "0.1.2.3",         "127.0.0.1", "127.255.255.254", "224.0.0.1",
                                    "240.0.0.1", "255.255.255.255", "\"::\"",    "\"::1\"",         "\"ff02::1\""};
constexpr const char* kLinkLocal[] = {"169.254.1.1", "\"fe80::1\"", "\"febf::1\""};

std::string unquoted(const std::string& text) { return text[0] == '"' ? text.substr(1, text.size() - 2) : text; }
std::string got(const std::string& value) { return ", got \"" + unquoted(value) + '"'; }

std::string with_endpoint(const std::string& address) {
  return with_sci("endpoints: [{address: " + address + ", port: 80}]");
}
std::string with_csci_id(const std::string& address) {
  const std::string plain = unquoted(address);
  return replaced(kSiteText, "192.0.2.10:80", plain == address ? "^" + plain + ":80" : "^\"[" + plain + "]:80\"");
}
std::string with_instance_at(const std::string& address) { return replaced(kSiteText, "10.1.0.11", address); }

TEST(SiteAddresses, OneHostEverywhere) {
  const std::string host = "address of one host (not loopback, multicast, broadcast or unspecified)";
  for (const std::string address : kNoHosts) {
    const std::string plain = unquoted(address), error = "expected the IP " + host + got(address);
    check_rows({
        {with_endpoint("^" + address), "scis[0].endpoints[0].address: " + error},
        {with_instance_at("^" + address), "scis[0].instances[0].address: " + error},
        {with_port1("gateways: [^" + address + "]"), "dataplane.ports[1].gateways[0]: " + error},
        {replaced(kSiteText, "10.1.0.2/24", "^\"" + plain + "/24\""),
         "dataplane.ports[1].addresses[0]: expected the " + host + got(plain + "/24")},
    });
  }
}

TEST(SiteAddresses, CsciIdOfOneHost) {
  const auto refused = [](const std::string& address) {
    const std::string plain = unquoted(address), text = plain == address ? plain : "[" + plain + "]";
    check_rows({{with_csci_id(address),
                 "scis[0].csci_id: expected the address and port of one host, as there are no endpoints" +
                     got(text + ":80")}});
  };
  for (const char* address : kNoHosts) refused(address);
  for (const char* address : kLinkLocal) refused(address);
}

// Clients and instances are on links of their own (RFC 3927 §2.7, RFC 4291 §2.5.6); routers are known by link-local
// addresses (RFC 4861 §6.1.2).
TEST(SiteAddresses, LinkLocalOnItsLinkOnly) {
  for (const std::string address : kLinkLocal) {
    const std::string error = "expected an address that is valid beyond one link (not link-local)" + got(address);
    check_rows({
        {with_endpoint("^" + address), "scis[0].endpoints[0].address: " + error},
        {with_instance_at("^" + address), "scis[0].instances[0].address: " + error},
    });
  }
  const std::string port =
      replaced(with_port1("gateways: [\"fe80::1\"]"), "10.1.0.2/24", "10.1.0.2/24, \"fe80::2/64\"");
  EXPECT_TRUE(parse_site(port, "site.yaml"));
}

TEST(SiteAddresses, NotTheNetworkItself) {
  const std::string p1 = "dataplane.ports[1].", i0 = "scis[0].instances[0].address: ";
  const auto reserved = [](const std::string& address, const std::string& prefix) {
    return address + " is the network or broadcast address of " + prefix + ", expected one host's";
  };
  const auto port_at = [](const std::string& prefix) { return replaced(kSiteText, "10.1.0.2/24", prefix); };
  const std::string net0 = "192.0.2.2/24", net1 = "10.1.0.2/24";
  check_rows({
      {with_endpoint("^192.0.2.0"), "scis[0].endpoints[0].address: " + reserved("192.0.2.0", net0)},
      {with_endpoint("^192.0.2.255"), "scis[0].endpoints[0].address: " + reserved("192.0.2.255", net0)},
      {with_csci_id("192.0.2.255"), "scis[0].csci_id: " + reserved("192.0.2.255", net0)},
      {with_instance_at("^10.1.0.0"), i0 + reserved("10.1.0.0", net1)},
      {with_instance_at("^10.1.0.255"), i0 + reserved("10.1.0.255", net1)},
      {port_at("^10.1.0.255/24"), p1 + "addresses[0]: " + reserved("10.1.0.255", "10.1.0.255/24")},
      {port_at("^10.1.0.0/24"), p1 + "addresses[0]: " + reserved("10.1.0.0", "10.1.0.0/24")},
      {with_port1("gateways: [^10.1.0.255]"), p1 + "gateways[0]: " + reserved("10.1.0.255", net1)},
      {replaced(port_at("10.1.0.2/28"), "10.1.0.11", "^10.1.0.15"), i0 + reserved("10.1.0.15", "10.1.0.2/28")},
  });
}

TEST(SiteAddresses, AllAddressesOfAPairAreHosts) {  // RFC 3021
  const std::string own = replaced(kSiteText, "10.1.0.2/24", "10.1.0.2/24, 10.2.0.0/31, 10.3.0.0/32");
  const auto site = parse_site(replaced(own, "10.1.0.11", "10.2.0.1"), "site.yaml");
  EXPECT_TRUE(site) << site.error().message;
}

}  // namespace
}  // namespace margay
