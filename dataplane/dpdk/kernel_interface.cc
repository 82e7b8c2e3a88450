// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/kernel_interface.h"

#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/socket.h>

#include <memory>

#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <spdlog/spdlog.h>

namespace margay::dp {
namespace {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Socket = std::unique_ptr<nl_sock, FreeBy<nl_socket_free>>;
using LinkRequest = std::unique_ptr<rtnl_link, FreeBy<rtnl_link_put>>;
using AddressChange = std::unique_ptr<rtnl_addr, FreeBy<rtnl_addr_put>>;
using NetlinkAddress = std::unique_ptr<nl_addr, FreeBy<nl_addr_put>>;

NetlinkAddress to_netlink(const Prefix& prefix) {
  const bool v4 = prefix.address.is_v4();
  const size_t skip = v4 ? 12 : 0;
  NetlinkAddress address(nl_addr_build(v4 ? AF_INET : AF_INET6, &prefix.address.bytes[skip], 16 - skip));
  if (address) nl_addr_set_prefixlen(address.get(), prefix.length);
  return address;
}

int bring_up(nl_sock* socket, int index, const PortConfig& port, const MacAddress& mac) {
  const LinkRequest key(rtnl_link_alloc()), change(rtnl_link_alloc());
  const NetlinkAddress address(nl_addr_build(AF_LLC, mac.bytes.data(), mac.bytes.size()));
  if (!key || !change || !address) return -NLE_NOMEM;
  rtnl_link_set_ifindex(key.get(), index);
  rtnl_link_set_addr(change.get(), address.get());
  rtnl_link_set_mtu(change.get(), port.mtu);
  rtnl_link_set_flags(change.get(), IFF_UP);
  return rtnl_link_change(socket, key.get(), change.get(), 0);
}

int add_address(nl_sock* socket, int index, const Prefix& prefix) {
  const AddressChange change(rtnl_addr_alloc());
  const NetlinkAddress local = to_netlink(prefix);
  if (!change || !local) return -NLE_NOMEM;
  rtnl_addr_set_ifindex(change.get(), index);
  rtnl_addr_set_local(change.get(), local.get());
  // Margay answers for the address, so that a duplicate check would find itself (RFC 4862 §5.4).
  if (!prefix.address.is_v4()) rtnl_addr_set_flags(change.get(), IFA_F_NODAD);
  return rtnl_addr_add(socket, change.get(), NLM_F_REPLACE);
}

void warn_if(int error, const PortConfig& port, const std::string& what) {
  if (error >= 0) return;
  spdlog::warn("msg=\"kernel interface is not set up in full\" port={} kernel={} failed={:?} reason={:?}", port.name,
               port.kernel, what, nl_geterror(error));
}

}  // namespace

void set_up_kernel_interface(const PortConfig& port, const MacAddress& mac) {
  const Socket socket(nl_socket_alloc());
  if (!socket) return warn_if(-NLE_NOMEM, port, "netlink socket");
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0) return warn_if(error, port, "netlink");
  const auto index = static_cast<int>(if_nametoindex(port.kernel.c_str()));
  if (index == 0) return warn_if(-NLE_NODEV, port, "find it");
  warn_if(bring_up(socket.get(), index, port, mac), port, "mac, mtu, up");
  for (const Prefix& prefix : port.addresses) {
    warn_if(add_address(socket.get(), index, prefix), port, "address " + prefix.format());
  }
}

InterfaceState interface_state(unsigned index) {
  constexpr unsigned kRuns = IFF_UP | IFF_RUNNING;
  using enum InterfaceState;
  const Socket socket(nl_socket_alloc());
  if (!socket || nl_connect(socket.get(), NETLINK_ROUTE) < 0) return kUp;
  rtnl_link* found = nullptr;
  const int error = rtnl_link_get_kernel(socket.get(), static_cast<int>(index), nullptr, &found);
  const LinkRequest link(found);
  if (error < 0) return error == -NLE_NODEV || error == -NLE_OBJ_NOTFOUND ? kGone : kUp;
  return (rtnl_link_get_flags(link.get()) & kRuns) == kRuns ? kUp : kDown;
}

}  // namespace margay::dp
