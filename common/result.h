// SPDX-License-Identifier: Apache-2.0
#pragma once

// Result<T>: a value or one line that says what is wrong. For set-up, configuration and commands;
// the packet path uses verdicts (dataplane/core/outcome.h). Spelled like std::expected, which neither
// compiler offers in C++20, so that it can become an alias of it later. Not thread-safe, as any value.

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace margay {

// One line for a person: what is wrong, where, and what was expected. No trailing dot or newline.
struct [[nodiscard]] Error {
  std::string message;
};

// Puts "where: " before an error that crosses a layer.
inline Error in(std::string where, const Error& error) { return Error{std::move(where) + ": " + error.message}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value()
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !has_value()
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: !has_value()
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace margay
