// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "daemon/status.h"

namespace atp::daemon {
namespace {

// What the server answers, played in this thread.
std::string Get(Metrics* metrics, const std::string& request) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(metrics->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_GT(send(client, request.data(), request.size(), MSG_NOSIGNAL), 0);
  std::string answer;
  for (bool open = true; open;) {
    pollfd wanted[2] = {{client, POLLIN, 0}, {metrics->descriptor(), POLLIN, 0}};
    poll(wanted, 2, -1);
    if (wanted[1].revents != 0) metrics->Serve();
    if (wanted[0].revents == 0) continue;
    char buffer[4096];
    const ssize_t got = recv(client, buffer, sizeof buffer, 0);
    open = got > 0;
    if (open) answer.append(buffer, static_cast<size_t>(got));
  }
  close(client);
  return answer;
}

TEST(Metrics, AreAnsweredAtTheirAddressAndNothingElseIs) {
  Metrics metrics("127.0.0.1:0", [] { return std::string("a_figure 7\n"); });
  const std::string end = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::string answer = Get(&metrics, "GET /metrics" + end);
  EXPECT_NE(answer.find("200"), std::string::npos) << answer;
  EXPECT_NE(answer.find("\r\n\r\na_figure 7\n"), std::string::npos) << answer;
  EXPECT_NE(Get(&metrics, "GET /" + end).find("404"), std::string::npos);
  EXPECT_NE(Get(&metrics, "DELETE /metrics" + end).find("405"), std::string::npos);
  EXPECT_EQ(Get(&metrics, "nonsense\r\n\r\n").find("a_figure"), std::string::npos);
}

TEST(Metrics, AnAddressThatIsNoneIsRefused) {
  for (const char* text :
       {"", "9464", "localhost:9464", "127.0.0.1:", "127.0.0.1:99999", "[::1]"}) {
    EXPECT_THROW(Metrics(text, [] { return std::string(); }), std::runtime_error) << text;
  }
}

// docs/metrics.md names every figure, and no other.
TEST(Metrics, EachFigureIsDocumented) {
  const std::filesystem::path folder = testing::TempDir() + "metrics." + std::to_string(getpid());
  std::string text;
  {
    Store store(folder / "db", {});
    text = MetricsText(&store, {});
  }
  std::filesystem::remove_all(folder);
  std::ifstream in(ATP_SOURCE_DIR "/docs/metrics.md");
  const std::string documented(std::istreambuf_iterator<char>(in), {});
  const auto names = [](const std::string& where, const char* pattern) {
    std::set<std::string> found;
    const std::regex regex(pattern);
    for (std::sregex_iterator it(where.begin(), where.end(), regex), end; it != end; ++it) {
      found.insert((*it)[1]);
    }
    return found;
  };
  EXPECT_EQ(names(text, "TYPE (atpd_[a-z_]+)"), names(documented, "`(atpd_[a-z_]+)`"));
}

}  // namespace
}  // namespace atp::daemon
