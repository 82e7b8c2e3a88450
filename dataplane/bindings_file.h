// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file that bindings live in, so that they outlive the process (`dataplane.bindings`): on hugetlbfs, or on any
// other file system; in memory at best, since write-back to a disk may hold up workers. A new image is built beside
// the file that is there, as PATH.new, and takes its place by rename(2) when it is whole: a crash at any moment leaves
// one of them. With no room for both, the old one is copied to ordinary memory first, and a crash meanwhile loses it.
// One process at a time has the file, by a lock on PATH.lock; the kernel gives that back however the process ends.
//
// Threads: about_to_publish() and refresh() by any; all else by the control thread, before the workers start.

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "dataplane/core/adoption.h"
#include "dataplane/core/bindings_image.h"

namespace margay::dp {

class BindingsFile {
 public:
  // Errors are of what cannot hold an image at all. An image that is there and may not be used is no error: see
  // refused(). `fresh` is the hash secret when there is none to go on with.
  static Result<std::unique_ptr<BindingsFile>> open(const std::string& path, const ImageShape& shape,
                                                    const HashSecret& fresh);
  ~BindingsFile();  // what is not finished is removed
  BindingsFile(const BindingsFile&) = delete;
  BindingsFile& operator=(const BindingsFile&) = delete;

  const std::string& path() const { return path_; }
  size_t bytes() const { return new_.bytes.size(); }
  bool in_memory() const { return in_memory_; }  // on a file system that has no disk
  bool copied() const { return copied_; }        // there was no room for two images
  // An earlier process's, until finish().
  const OpenedImage* found() const { return found_ ? &*found_ : nullptr; }
  const std::string& refused() const { return refused_; }  // why the file that was there is not used; empty: it is
  // What was found cannot be used for a reason that its user sees.
  void refuse(std::string why);
  const HashSecret& secret() const { return secret_; }
  std::span<FlowEntry> entries(WorkerIndex w) const { return image_.entries(w); }

  // The new image is whole and takes the place of the old one.
  Result<void> finish(const SiteTable& table, Tick now, const Adopted& adopted);
  struct Started {
    uint32_t process = 0;     // whose bindings they are; 0: nobody's
    uint64_t generation = 0;  // of its last snapshot
    Adopted adopted;
  };
  const Started& started() const { return started_; }

  // Workers will see this table next. Where it moves hosts or endpoints, it is saved at once: bindings by new indices
  // come only afterwards. What else it changes is saved by the next refresh().
  void about_to_publish(const SiteTable& table);
  // A few times a second. The error, told once: the table cannot be saved, and a later process will start empty.
  Result<void> refresh(const SiteTable& table, Tick now);

 private:
  struct Mapping {
    std::span<std::byte> bytes;
    Mapping() = default;
    explicit Mapping(std::span<std::byte> mapped) : bytes(mapped) {}
    Mapping(Mapping&& other) noexcept : bytes(std::exchange(other.bytes, {})) {}
    Mapping& operator=(Mapping&& other) noexcept {
      std::swap(bytes, other.bytes);
      return *this;
    }
    ~Mapping();
  };

  BindingsFile(const std::string& path, const HashSecret& fresh) : path_(path), secret_(fresh) {}
  Result<void> lock();
  Result<void> look_at_old();
  Result<void> check_old(int fd);
  Result<void> make_new(const ImageShape& shape);
  Result<Mapping> allocate(size_t bytes) const;
  Result<void> copy_old();
  void put_back() const;
  void save(const SiteTable& table);

  std::string path_, boot_id_;
  Fd lock_;
  Mapping old_, new_;
  std::optional<OpenedImage> found_;
  std::string refused_;
  HashSecret secret_;
  bool in_memory_ = true, copied_ = false, finished_ = false;
  Started started_;

  std::mutex mutex_;  // of what follows
  BindingsImage image_;
  struct {
    uint64_t version = 0, layout = 0, generation = 0;
  } saved_;
  std::optional<Error> untold_;
};

}  // namespace margay::dp
