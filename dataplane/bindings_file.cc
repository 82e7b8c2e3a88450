// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bindings_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace margay::dp {
namespace {

std::string failure(const std::string& what) { return what + ": " + std::strerror(errno); }

Result<std::string> read_boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  if (id.size() == 36) return id;
  return Error{"/proc/sys/kernel/random/boot_id does not tell the boot, expected 36 characters"};
}

struct Room {
  size_t page = 4096;
  bool in_memory = false;
};

Room room_at(int fd) {
  struct statfs found {};
  if (::fstatfs(fd, &found) != 0) return {};
  const auto type = static_cast<uint64_t>(found.f_type);
  const bool huge = type == HUGETLBFS_MAGIC;
  return {huge ? static_cast<size_t>(found.f_bsize) : 4096, huge || type == TMPFS_MAGIC || type == RAMFS_MAGIC};
}

size_t rounded(size_t bytes, size_t page) { return (bytes + page - 1) / page * page; }

}  // namespace

BindingsFile::Mapping::~Mapping() {
  if (!bytes.empty()) ::munmap(bytes.data(), bytes.size());
}

Result<std::unique_ptr<BindingsFile>> BindingsFile::open(const std::string& path, const ImageShape& shape,
                                                         const HashSecret& fresh) {
  std::unique_ptr<BindingsFile> file(new BindingsFile(path, fresh));
  const std::string where = "dataplane.bindings: " + path;
  auto boot = read_boot_id();
  if (!boot) return in(where, boot.error());
  file->boot_id_ = std::move(*boot);
  if (auto done = file->lock(); !done) return in(where, done.error());
  if (auto done = file->look_at_old(); !done) return in(where, done.error());
  if (auto done = file->make_new(shape); !done) return in(where, done.error());
  return file;
}

BindingsFile::~BindingsFile() {
  if (!finished_ && lock_) ::unlink((path_ + ".new").c_str());
}

// The kernel tells who has a record lock.
Result<void> BindingsFile::lock() {
  const std::string name = path_ + ".lock";
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Error{failure("cannot open " + name)};
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_SETLK, &whole) == 0) {
    lock_ = std::move(fd);
    return {};
  }
  if (errno != EACCES && errno != EAGAIN) return Error{failure("cannot lock " + name)};
  ::fcntl(fd.get(), F_GETLK, &whole);
  return Error{fmt::format("process {} has it, expected one data plane a file", whole.l_pid)};
}

// A file that is no image is refused, and replaced; what is no file stays, and is an error.
Result<void> BindingsFile::look_at_old() {
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return {};
  if (!fd && errno == ELOOP) return Error{"is a symbolic link, expected a file"};
  if (!fd) return Error{failure("cannot open it")};
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return Error{failure("cannot look at it")};
  if (!S_ISREG(found.st_mode)) return Error{S_ISDIR(found.st_mode) ? "is a directory, expected a file" : "is no file"};
  if (auto done = check_old(fd.get()); !done) {
    refuse(done.error().message);
    return {};
  }
  secret_ = found_->secret;
  started_.process = found_->process;
  started_.generation = found_->table.snapshot.generation;
  return {};
}

void BindingsFile::refuse(std::string why) {
  refused_ = std::move(why);
  found_.reset();
  old_ = {};
  started_ = {};
}

Result<void> BindingsFile::check_old(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return Error{failure("cannot be looked at")};
  if (found.st_uid != ::geteuid()) {
    return Error{fmt::format("belongs to user {}, expected {}", found.st_uid, ::geteuid())};
  }
  // Nobody else may cut the file off under us.
  if ((found.st_mode & 022) != 0) return Error{"may be written by others, expected mode 600"};
  const auto bytes = static_cast<size_t>(found.st_size);
  if (bytes == 0) return Error{"is empty"};
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return Error{failure("cannot be mapped")};
  old_ = Mapping({static_cast<std::byte*>(at), bytes});
  auto image = open_image(old_.bytes, boot_id_);
  if (!image) return image.error();
  found_ = std::move(*image);
  return {};
}

Result<void> BindingsFile::make_new(const ImageShape& shape) {
  auto mapped = allocate(shape.bytes());
  if (!mapped && ::access(path_.c_str(), F_OK) == 0) {
    if (auto done = copy_old(); !done) return done.error();
    mapped = allocate(shape.bytes());
    if (!mapped && copied_) put_back();
  }
  if (!mapped) return mapped.error();
  new_ = std::move(*mapped);
  const Fd here(::open((path_ + ".new").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  in_memory_ = room_at(here.get()).in_memory;
  image_ = BindingsImage(new_.bytes, shape, boot_id_, secret_, static_cast<uint32_t>(::getpid()));
  return {};
}

// All of its pages are there from the start: none can be missing later, when that would end the process.
Result<BindingsFile::Mapping> BindingsFile::allocate(size_t bytes) const {
  const std::string name = path_ + ".new";
  ::unlink(name.c_str());
  const Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return Error{failure("cannot make " + name)};
  const size_t size = rounded(bytes, room_at(fd.get()).page);
  const auto fail = [&] {
    Error error{failure(fmt::format("no room for {} MiB", (size >> 20) + 1))};
    ::unlink(name.c_str());
    return error;
  };
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) return fail();
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (at == MAP_FAILED) return fail();
  return Mapping({static_cast<std::byte*>(at), size});
}

Result<void> BindingsFile::copy_old() {
  if (found_) {
    const size_t bytes = old_.bytes.size();
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return Error{failure("no memory for a copy")};
    Mapping copy({static_cast<std::byte*>(at), bytes});
    std::memcpy(copy.bytes.data(), old_.bytes.data(), bytes);
    old_ = std::move(copy);
    auto image = open_image(old_.bytes, boot_id_);
    if (!image) return image.error();
    found_ = std::move(*image);
    copied_ = true;
  }
  if (::unlink(path_.c_str()) != 0) return Error{failure("cannot remove it")};
  return {};
}

// For a process that asks for less.
void BindingsFile::put_back() const {
  auto again = allocate(old_.bytes.size());
  if (!again) return;
  std::memcpy(again->bytes.data(), old_.bytes.data(), old_.bytes.size());
  std::rename((path_ + ".new").c_str(), path_.c_str());
}

Result<void> BindingsFile::finish(const SiteTable& table, Tick now, const Adopted& adopted) {
  started_.adopted = adopted;
  if (auto done = refresh(table, now); !done) return done;
  image_.finish();
  if (std::rename((path_ + ".new").c_str(), path_.c_str()) != 0) {
    return Error{failure("dataplane.bindings: cannot rename to " + path_)};
  }
  finished_ = true;
  found_.reset();
  old_ = {};
  return {};
}

void BindingsFile::about_to_publish(const SiteTable& table) {
  const std::lock_guard lock(mutex_);
  if (table.layout().version != saved_.layout) save(table);
}

Result<void> BindingsFile::refresh(const SiteTable& table, Tick now) {
  const std::lock_guard lock(mutex_);
  image_.set_clock(now);
  if (table.version > saved_.version && (saved_.version == 0 || table.generation != saved_.generation)) save(table);
  if (!untold_) return {};
  return *std::exchange(untold_, {});
}

void BindingsFile::save(const SiteTable& table) {
  if (auto done = image_.save(table); !done) untold_ = done.error();
  saved_ = {table.version, table.layout().version, table.generation};
}

}  // namespace margay::dp
