// SPDX-License-Identifier: Apache-2.0

// The CLI's socket: what it answers, whom it lets in, and that no client can hold it up.

#include "common/cli/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "common/cli/client.h"
#include "common/cli/protocol.h"
#include "tests/support/temp_folder.h"

namespace margay {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

int raw_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

// Everything until the other side has sent `lines` lines, closed, or said nothing for ten seconds.
std::string raw_read(int fd, size_t lines) {
  const timeval patience{10, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string out;
  char bytes[65536];
  while (static_cast<size_t>(std::count(out.begin(), out.end(), '\n')) < lines) {
    const ssize_t n = ::recv(fd, bytes, sizeof(bytes), 0);
    if (n <= 0) break;
    out.append(bytes, static_cast<size_t>(n));
  }
  return out;
}

void raw_send(int fd, std::string_view text) { (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

// Longer than one answer line carries, and no character ends where it would be cut.
const std::string kLong = [] {
  std::string text = "x";
  for (int n = 0; n < 20'000; ++n) text += "\u00e9";
  return text;
}();

class CliServerTest : public ::testing::Test {
 protected:
  CliServerTest() : path_(directory_.path() + "/cli.sock"), executor_(table_, control_) {
    table_.add_kind({.name = "COUNT", .expected = "a number", .type = ArgumentType::kNumber});
    table_.add({"echo [WORDS]", "say it again", "", [](const Arguments& arguments, Reply& reply) -> CommandResult {
                  const auto* words = arguments.option("WORDS");
                  reply.field("words", words == nullptr ? std::string() : words->front().text());
                  return {};
                }});
    table_.add({"rows COUNT", "many rows", "", [](const Arguments& arguments, Reply& reply) -> CommandResult {
                  reply.table("rows", {"number", "text"});
                  const uint64_t count = arguments[0].number();
                  for (uint64_t n = 0; n < count && reply.wanted(); ++n)
                    reply.row({n, "caf\u00e9 caf\u00e9 caf\u00e9"});
                  return {};
                }});
    table_.add(
        {"long", "one long line of characters of two bytes", "", [](const Arguments&, Reply& reply) -> CommandResult {
           reply.field("long", true, kLong);
           return {};
         }});
    table_.add({"quit", "end", "", [](const Arguments&, Reply& reply) -> CommandResult {
                  reply.end_session();
                  return {};
                }});
    table_.add({"fail", "throws", "", [](const Arguments&, Reply&) -> CommandResult { throw std::bad_alloc(); }});
  }

  ~CliServerTest() override { stop(); }

  void start(milliseconds patience = std::chrono::seconds(5)) {
    Result<std::unique_ptr<CliServer>> server = CliServer::open(path_, executor_, patience);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] {
      while (!stop_.load()) server_->poll(milliseconds(5));
    });
  }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }

  std::unique_ptr<Client> connect() {
    Result<std::unique_ptr<Client>> client = Client::connect(path_);
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }

  static std::string run(Client& client, std::string_view line, bool as_json = false) {
    std::string out;
    const Answer a = client.run(line, as_json, [&](std::string_view text) {
      out += text;
      return true;
    });
    if (!a.result) out += std::to_string(a.result.error().position) + ": " + a.result.error().message;
    if (a.lost) out += " (lost)";
    return a.quit ? out + "(quit)" : out;
  }

  test::TempFolder directory_;
  std::string path_;
  CommandTable table_;
  std::mutex control_;
  LocalExecutor executor_;
  std::unique_ptr<CliServer> server_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

TEST_F(CliServerTest, AnswersTextJsonErrorsCompletionAndQuit) {
  start();
  const auto client = connect();
  EXPECT_EQ(run(*client, "echo hello"), "words: hello\n");
  EXPECT_EQ(run(*client, "echo hello", true), "{\"words\":\"hello\"}\n");
  EXPECT_EQ(run(*client, "echo hello --json"), "{\"words\":\"hello\"}\n");
  EXPECT_EQ(run(*client, "echo \"caf\u00e9 \\\"x\\\"\""), "words: caf\u00e9 \"x\"\n");
  EXPECT_EQ(run(*client, "rows x"), "6: expected a number, 0 to 18446744073709551615, not 'x'");
  EXPECT_EQ(run(*client, ""), "");
  EXPECT_EQ(run(*client, "fail").substr(0, 21), "1: the command failed");
  EXPECT_EQ(client->complete("e").words, std::vector<std::string>{"echo"});
  EXPECT_EQ(run(*client, "quit"), "(quit)");
}

TEST_F(CliServerTest, StreamsALongAnswerWhole) {
  start();
  const auto client = connect();
  const json got = json::parse(run(*client, "rows 60000", true));
  ASSERT_EQ(got["rows"].size(), 60'000U);
  EXPECT_EQ(got["rows"][59'999]["number"], 59'999);
  for (const json& row : got["rows"]) ASSERT_EQ(row["text"], "caf\u00e9 caf\u00e9 caf\u00e9");
}

TEST_F(CliServerTest, NeverCutsACharacter) {
  start();
  EXPECT_EQ(run(*connect(), "long"), kLong + "\n");
}

TEST_F(CliServerTest, OnlyTheOwnerMayConnect) {
  start();
  struct stat s {};
  ASSERT_EQ(::stat(path_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600U);
}

TEST_F(CliServerTest, MakesTheDirectoryAndRemovesTheFileAtTheEnd) {
  path_ = directory_.path() + "/new/cli.sock";
  start();
  EXPECT_TRUE(std::filesystem::exists(path_));
  stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(CliServerTest, LeavesAFileThatIsNotItsOwn) {
  start();
  std::filesystem::remove(path_);
  std::ofstream(path_) << "another's";
  stop();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(CliServerTest, ReplacesAStaleSocketOnly) {
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, path_.size());
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(dead);
  start();
  const auto client = connect();
  EXPECT_EQ(run(*client, "echo x"), "words: x\n");
  const auto second = CliServer::open(path_, executor_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process listens"), std::string::npos);
  EXPECT_EQ(run(*client, "echo y"), "words: y\n");
}

TEST_F(CliServerTest, RefusesAPathThatIsAFileOrTooLong) {
  std::ofstream(path_) << "precious";
  EXPECT_FALSE(CliServer::open(path_, executor_));
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
  EXPECT_FALSE(CliServer::open(directory_.path() + "/" + std::string(120, 'x'), executor_));
}

TEST_F(CliServerTest, ServesSeveralClientsAndRefusesOneTooMany) {
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t n = 0; n < CliServer::kClientsMax; ++n) {
    clients.push_back(connect());
    EXPECT_EQ(run(*clients.back(), "echo x"), "words: x\n");
  }
  const auto extra = connect();
  EXPECT_EQ(run(*extra, "echo x"), "1: too many clients are connected");
  EXPECT_EQ(run(*clients.front(), "echo x"), "words: x\n");
  clients.pop_back();
  std::string answer;
  for (int tries = 0; tries < 100 && answer != "words: x\n"; ++tries) answer = run(*connect(), "echo x");
  EXPECT_EQ(answer, "words: x\n");
}

TEST_F(CliServerTest, AnswersWhatIsNotARequest) {
  start();
  const int fd = raw_connect(path_);
  const std::vector<std::string> wrong{"",
                                       "{",
                                       "[]",
                                       "1",
                                       "{\"line\":1}",
                                       "{\"line\":{\"line\":{\"a\":1}}}",
                                       "\xff\xfe",
                                       "{\"json\":true}",
                                       std::string(4000, '[')};
  for (const std::string& request : wrong) {
    raw_send(fd, request + "\n");
    const json answer = json::parse(raw_read(fd, 1));
    EXPECT_TRUE(answer.contains("error")) << request;
    EXPECT_EQ(answer["position"], 1) << request;
  }
  raw_send(fd, "{\"line\":\"echo x\"}\n");
  const std::string answer = raw_read(fd, 2);  // what it says, and that it is done
  EXPECT_EQ(json::parse(answer.substr(0, answer.find('\n')))["out"], "words: x\n");
  ::close(fd);
}

TEST_F(CliServerTest, TakesRequestsThatComeInPiecesOrTogether) {
  start();
  const int fd = raw_connect(path_);
  for (const char c : std::string("{\"line\":\"echo 1\"}\n")) raw_send(fd, std::string(1, c));
  EXPECT_EQ(raw_read(fd, 2), "{\"out\":\"words: 1\\n\"}\n{\"ok\":true}\n");
  raw_send(fd, "{\"line\":\"echo 2\"}\n{\"line\":\"echo 3\"}\n");
  EXPECT_EQ(raw_read(fd, 4), "{\"out\":\"words: 2\\n\"}\n{\"ok\":true}\n{\"out\":\"words: 3\\n\"}\n{\"ok\":true}\n");
  ::close(fd);
}

// The second request waits in the server while the answer to the first fills the socket.
TEST_F(CliServerTest, GoesOnWithWaitingRequestsOnceTheAnswerIsRead) {
  start();
  const int fd = raw_connect(path_);
  raw_send(fd, "{\"line\":\"rows 15000\"}\n{\"line\":\"echo second\"}\n");
  std::this_thread::sleep_for(milliseconds(50));
  std::string got;
  for (int reads = 0; reads < 1000 && got.find("words: second") == std::string::npos; ++reads) {
    const std::string more = raw_read(fd, 1);
    got += more;
    if (more.empty()) break;
  }
  EXPECT_NE(got.find("words: second"), std::string::npos);
  ::close(fd);
}

TEST(Protocol, RefusesWhatIsDeeperThanAnArrayInAnObject) {
  EXPECT_TRUE(read_message("{\"words\":[\"a\"],\"ok\":true}"));
  for (const char* deep : {"{\"a\":[[1]]}", "{\"a\":{\"b\":{}}}", "[]", "\"a\"", "", "{\"a\":1} x"}) {
    EXPECT_FALSE(read_message(deep)) << deep;
  }
}

TEST_F(CliServerTest, ALineWithoutEndIsRefused) {
  start();
  const int fd = raw_connect(path_);
  raw_send(fd, std::string(2 * kRequestMax, 'x'));
  const std::string answer = raw_read(fd, 2);  // one line, then the end
  EXPECT_TRUE(json::parse(answer).contains("error"));
  ::close(fd);
}

TEST_F(CliServerTest, ASlowReaderIsDroppedAndOthersGoOn) {
  start(milliseconds(100));
  const int slow = raw_connect(path_);
  raw_send(slow, "{\"line\":\"rows 1000000\",\"json\":true}\n");
  const auto client = connect();
  EXPECT_EQ(run(*client, "echo x"), "words: x\n");
  // What was queued for it may still be read, then comes the end: no last message.
  const std::string got = raw_read(slow, 1'000'000);
  EXPECT_EQ(got.find("\"ok\""), std::string::npos);
  ::close(slow);
}

// All that read nothing share one patience, so that they cannot hold the daemon one after the other.
TEST_F(CliServerTest, ManySlowReadersHoldTheDaemonForOnePatience) {
  constexpr milliseconds kPatience(3000);  // far above the time that the answers take to make
  auto server = CliServer::open(path_, executor_, kPatience);
  ASSERT_TRUE(server) << server.error().message;
  std::vector<int> slow;
  for (int n = 0; n < 4; ++n) slow.push_back(raw_connect(path_));
  (*server)->poll(milliseconds(1000));
  ASSERT_EQ((*server)->clients(), 4u);
  for (const int fd : slow) raw_send(fd, "{\"line\":\"rows 1000000\",\"json\":true}\n");
  const auto before = std::chrono::steady_clock::now();
  (*server)->poll(milliseconds(1000));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4 * kPatience);
  EXPECT_EQ((*server)->clients(), 0u);
  for (const int fd : slow) ::close(fd);
}

TEST_F(CliServerTest, AClientThatLeavesInTheMiddleEndsItsCommand) {
  start();
  const int fd = raw_connect(path_);
  raw_send(fd, "{\"line\":\"rows 18446744073709551615\"}\n");
  raw_read(fd, 1);
  ::close(fd);
  const auto client = connect();
  EXPECT_EQ(run(*client, "echo x"), "words: x\n");
}

TEST_F(CliServerTest, AClientLearnsThatTheDaemonIsGone) {
  start();
  const auto client = connect();
  EXPECT_EQ(run(*client, "echo x"), "words: x\n");
  stop();
  EXPECT_NE(run(*client, "echo x").find("(lost)"), std::string::npos);
  EXPECT_FALSE(Client::connect(path_));
}

}  // namespace
}  // namespace margay
