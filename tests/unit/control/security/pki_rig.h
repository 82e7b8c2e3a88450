// SPDX-License-Identifier: Apache-2.0
#pragma once

// A certificate authority of a test's own, by scripts/pki, in a folder that goes with it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "control/security/credentials.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_folder.h"

#ifndef MARGAY_SCRIPTS  // as the build says
#define MARGAY_SCRIPTS "scripts"
#endif

namespace margay::security {

inline const Expected kAnySci{.kind = Kind::kSci};

class Pki {
 public:
  Pki() { pki("init"); }

  // `options` and what follows the folder's name on the command line.
  void pki(const std::string& what, const std::string& options = "") const {
    shell(std::string(MARGAY_SCRIPTS) + "/pki " + options + " " + folder_.path() + " " + what);
  }
  // A certificate with other extensions than scripts/pki makes: NAME.pem, NAME.key.
  void odd(const std::string& name, const std::string& extensions) const {
    shell("cd " + folder_.path() + " && printf '%b' '" + extensions + "' >odd.ext" +
          " && openssl req -new -newkey rsa:2048 -nodes -subj /CN=" + name + " -keyout " + name + ".key -out odd.req" +
          " && openssl x509 -req -in odd.req -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile odd.ext -out " +
          name + ".pem");
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string text(const std::string& name) const { return margay::test::file_text(file(name)); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(file(name)) << text; }
  Files files(const std::string& name, bool crl = true) const {
    return {.ca = file("ca.pem"),
            .certificate = file(name + ".pem"),
            .key = file(name + ".key"),
            .crl = crl ? file("crl.pem") : ""};
  }
  std::shared_ptr<const Trust> trust(const std::string& name, bool crl = true) const {
    auto trust = Trust::load(files(name, crl));
    EXPECT_TRUE(trust) << trust.error().message;
    return *trust;
  }
  std::shared_ptr<Credentials> credentials(const std::string& name, bool crl = true) const {
    auto credentials = Credentials::open(files(name, crl));
    EXPECT_TRUE(credentials) << credentials.error().message;
    return *credentials;
  }

 private:
  static void shell(const std::string& command) {
    const std::string quiet = "{ " + command + "; } >/tmp/margay-pki.log 2>&1";
    ASSERT_EQ(std::system(quiet.c_str()), 0) << command;
  }
  margay::test::TempFolder folder_;
};

}  // namespace margay::security
