// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.h"

#include <charconv>
#include <cstdio>

#include <CLI/CLI.hpp>

namespace margay {
namespace {

constexpr int kWrongUsage = 2;

// A whole number: CLI11's own conversion would take -1 for the largest.
std::string judge(const std::string& text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && value >= min && value <= max) return {};
  return "expected " + std::to_string(min) + " to " + std::to_string(max) + ", got \"" + text + '"';
}

}  // namespace

struct CommandLine::Reader {
  Reader(const std::string& about, const std::string& name) : app(about, name), program(name) {}

  CLI::App app;
  std::string program;
  std::vector<std::string>* rest = nullptr;
};

CommandLine::CommandLine(const std::string& program, const std::string& about, const std::string& version)
    : reader_(std::make_unique<Reader>(about, program)) {
  if (!version.empty()) reader_->app.set_version_flag("--version", program + " " + version);
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, bool& to, const std::string& help) {
  reader_->app.add_flag(names, to, help);
}

void CommandLine::text(const std::string& names, std::string& to, const std::string& help, Need need,
                       const std::string& type) {
  CLI::Option* option = reader_->app.add_option(names, to, help)->required(need == Need::kRequired)->type_name(type);
  if (!to.empty()) option->capture_default_str();
}

void CommandLine::texts(const std::string& names, std::vector<std::string>& to, const std::string& help) {
  reader_->app.add_option(names, to, help)->required()->allow_extra_args(false)->take_all();
}

void CommandLine::whole(const std::string& names, uint64_t& to, const std::string& help, uint64_t min, uint64_t max) {
  CLI::Option* option = reader_->app.add_option(names, to, help);
  if (to != 0) option->capture_default_str();
  option->check([min, max](const std::string& text) { return judge(text, min, max); }, "");
}

void CommandLine::seconds(const std::string& names, double& to, const std::string& help, double min, double max) {
  reader_->app.add_option(names, to, help)->check(CLI::Range(min, max))->type_name("SECONDS");
}

void CommandLine::footer(const std::string& text) { reader_->app.footer(text); }

void CommandLine::rest(std::vector<std::string>& to) {
  reader_->app.prefix_command();
  reader_->rest = &to;
}

std::optional<int> CommandLine::read(int argc, const char* const* argv) {
  CLI::App& app = reader_->app;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s (--help lists the options)\n", reader_->program.c_str(), error.what());
    return kWrongUsage;
  }
  if (reader_->rest != nullptr) *reader_->rest = app.remaining();
  return {};
}

}  // namespace margay
