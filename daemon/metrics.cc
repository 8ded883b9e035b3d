// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

#include <stdexcept>

namespace atp::daemon {
namespace {

constexpr unsigned kMostConnections = 16, kSilenceSeconds = 5;

sockaddr_storage Parse(const std::string& text) {
  sockaddr_storage address{};
  const size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  char* end = nullptr;
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  const unsigned long port = strtoul(digits.c_str(), &end, 10);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  const bool number = !digits.empty() && *end == '\0' && port <= UINT16_MAX;
  if (number && inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (number && brackets &&
      inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  throw std::runtime_error("metrics: write an address and a port as 127.0.0.1:9464, not " + text);
}

MHD_Result Answer(void* text, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, size_t*, void**) {
  const bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0;
  const bool there = strcmp(url, "/metrics") == 0;
  std::string body = get && there ? (*static_cast<std::function<std::string()>*>(text))() : "";
  MHD_Response* response =
      MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4");
  const unsigned status = !there ? MHD_HTTP_NOT_FOUND
                          : get  ? MHD_HTTP_OK
                                 : MHD_HTTP_METHOD_NOT_ALLOWED;
  const MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

void Metrics::Stop::operator()(MHD_Daemon* server) const { MHD_stop_daemon(server); }

Metrics::Metrics(const std::string& address, std::function<std::string()> text)
    : text_(std::move(text)) {
  const sockaddr_storage parsed = Parse(address);
  const unsigned family = parsed.ss_family == AF_INET6 ? MHD_USE_IPv6 : MHD_NO_FLAG;
  server_.reset(MHD_start_daemon(MHD_USE_EPOLL | family, 0, nullptr, nullptr, Answer, &text_,
                                 MHD_OPTION_SOCK_ADDR, &parsed, MHD_OPTION_CONNECTION_LIMIT,
                                 kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds,
                                 MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END));
  if (server_ == nullptr) throw std::runtime_error("metrics: cannot listen at " + address);
}

Metrics::~Metrics() = default;

int Metrics::descriptor() const {
  return MHD_get_daemon_info(server_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void Metrics::Serve() { MHD_run(server_.get()); }

uint16_t Metrics::port() const {
  return MHD_get_daemon_info(server_.get(), MHD_DAEMON_INFO_BIND_PORT)->port;
}

}  // namespace atp::daemon
