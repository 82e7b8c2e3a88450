// SPDX-License-Identifier: Apache-2.0
#pragma once

// An array whose copies share their elements, in pieces of kPiece: a copy costs a pointer a piece, a change copies the
// piece that it touches. So a table of ten thousand instances is changed at the price of one piece. Reading is one
// pointer further than a plain array.
//
// Readers: any thread. Changes: one thread, and only on a copy that no reader has seen yet; pieces that only this copy
// has are changed in place.

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace margay::dp {

template <class T, size_t kPiece>
class SharedArray {
 public:
  size_t size() const { return size_; }
  // REQUIRES: i < size()
  const T& operator[](size_t i) const { return (*pieces_[i / kPiece])[i % kPiece]; }

  T& edit(size_t i) {
    std::shared_ptr<Piece>& piece = pieces_[i / kPiece];
    if (piece.use_count() > 1) piece = std::make_shared<Piece>(*piece);
    return (*piece)[i % kPiece];
  }
  // New elements are T(). Never smaller.
  void grow(size_t size) {
    while (pieces_.size() * kPiece < size) pieces_.push_back(std::make_shared<Piece>());
    size_ = size > size_ ? size : size_;
  }

  class Iterator {
   public:
    Iterator(const SharedArray& array, size_t i) : array_(array), i_(i) {}
    const T& operator*() const { return array_[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return i_ != other.i_; }

   private:
    const SharedArray& array_;
    size_t i_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }

 private:
  using Piece = std::array<T, kPiece>;
  std::vector<std::shared_ptr<Piece>> pieces_;
  size_t size_ = 0;
};

}  // namespace margay::dp
