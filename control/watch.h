// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

namespace margay::control {

// The epoll of a loop wakes when `fd` can be read. False: it will not, errno says why. `epoll` -1: there is no loop,
// and that is well. Any thread.
inline bool watch(int epoll, int fd) {
  if (epoll < 0) return true;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace margay::control
