// SPDX-License-Identifier: Apache-2.0
#include "shim/exporters.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace atp::shim {
namespace {

std::map<std::string, std::string> variables;
const char* Lookup(const char* name) {
  const auto found = variables.find(name);
  return found != variables.end() ? found->second.c_str() : nullptr;
}
std::string FileWith(const std::map<std::string, std::string>& environment) {
  variables = environment;
  char path[1024];
  return ExportersFile(Lookup, path, sizeof path) ? path : "";
}

TEST(Exporters, TheFileIsWhereTheUsersStateIs) {
  EXPECT_EQ(FileWith({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}), "/s/atpshim/exporters");
  EXPECT_EQ(FileWith({{"HOME", "/h"}}), "/h/.local/state/atpshim/exporters");
  EXPECT_EQ(FileWith({{"XDG_STATE_HOME", "relative"}, {"HOME", "/h"}}),
            "/h/.local/state/atpshim/exporters");
  EXPECT_EQ(FileWith({}), "");
  EXPECT_EQ(FileWith({{"HOME", "/" + std::string(2000, 'h')}}), "");
}

// What is remembered lasts for the process, and the file is read once: so one test for all of it.
TEST(Exporters, AreRememberedByTheirWholeNameAndWrittenToAFileOfTheUsersOwn) {
  char folder[] = "/tmp/atp-exporters-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  setenv("XDG_STATE_HOME", folder, 1);
  const std::string path = std::string(folder) + "/atpshim/exporters";
  EXPECT_FALSE(IsRemembered("libsharing.so.1"));
  EXPECT_TRUE(Remember("libsharing.so.1"));
  EXPECT_FALSE(Remember("libsharing.so.1")) << "known already";
  EXPECT_TRUE(Remember("libother.so"));
  EXPECT_FALSE(Remember("libffi.so.8")) << "it calls for everybody";
  EXPECT_FALSE(Remember("")) << "nobody";
  EXPECT_FALSE(Remember("two\nlines"));
  EXPECT_FALSE(Remember(std::string(300, 'x').c_str()));
  EXPECT_TRUE(IsRemembered("libsharing.so.1"));
  for (const char* other : {"libsharing.so", "sharing.so.1", "libsharing.so.11", "", "\n"}) {
    EXPECT_FALSE(IsRemembered(other)) << other;
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "libsharing.so.1\nlibother.so\n");
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // Nothing is written through a link that somebody else may have put there.
  unlink(path.c_str());
  const std::string victim = std::string(folder) + "/victim";
  std::ofstream(victim) << "x";
  ASSERT_EQ(symlink(victim.c_str(), path.c_str()), 0);
  EXPECT_TRUE(Remember("libthird.so"));
  text.str("");
  text << std::ifstream(victim).rdbuf();
  EXPECT_EQ(text.str(), "x");
  unsetenv("XDG_STATE_HOME");
  for (const std::string& name : {path, victim}) unlink(name.c_str());
  rmdir((std::string(folder) + "/atpshim").c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace atp::shim
