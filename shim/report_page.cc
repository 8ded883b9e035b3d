// SPDX-License-Identifier: Apache-2.0
#include "shim/report_page.h"

#include <string.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "protocol/run_record_reader.h"
#include "report/page.h"
#include "shim/device.h"
#include "shim/run_record.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

void Write(const char* file, const std::string& page) {
  const int fd = OpenNamedFile(file, /*append=*/false);
  if (fd < 0) return;
  size_t done = 0;
  for (ssize_t n = 1; n > 0 && done < page.size(); done += static_cast<size_t>(n)) {
    n = write(fd, page.data() + done, page.size() - done);
    if (n < 0) break;
  }
  if (done < page.size()) ATP_LOG_WARN("the report could not be written whole");
  close(fd);
}

}  // namespace

bool IsPageName(const char* file) {
  const size_t length = strlen(file);
  return length > 5 && strcmp(file + length - 5, ".html") == 0;
}

void WritePage() {
  if (ContextsSeen() == 0) return;
  try {
    protocol::RunRecord run;
    const std::vector<char> record = CopyRunRecord();
    const std::string wrong = record.empty() ? "" : ReadRunRecord(record, &run);
    if (!wrong.empty()) {
      ATP_LOG_WARN("no report: the record of this run is %s", wrong.c_str());
      return;
    }
    if (record.empty()) run.header = DescribeRun();
    Write(Settings().report_file, report::MakePage(run));
  } catch (const std::exception& error) {
    ATP_LOG_WARN("no report: %s", error.what());
  }
}

}  // namespace atp::shim
