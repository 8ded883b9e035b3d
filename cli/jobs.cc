// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs.h"

#include "cli/daemon_client.h"
#include "cli/error.h"
#include "report/analysis.h"

namespace atp::cli {

std::vector<Job> JobWatch::Look(const std::vector<RunningJob>& running) {
  std::map<std::pair<pid_t, int>, Bound> bounds;
  std::vector<Job> jobs;
  for (const RunningJob& process : running) {
    for (const protocol::DeviceRun& run : process.run.devices) {
      Job job;
      job.pid = process.pid;
      job.command = process.run.header.command;
      job.device = run.facts.ordinal;
      job.device_name = run.facts.name;
      job.budget_bytes = run.facts.budget_bytes;
      job.managed_bytes = run.facts.managed_bytes;
      job.native_bytes = run.facts.native_bytes;
      job.iterations = run.facts.rows;
      job.plans = run.facts.plans;
      job.off = run.facts.off != 0;
      if (!run.rows.empty()) {
        const protocol::RunRecordRow& last = run.rows.back();
        job.planned = last.plan != 0;
        job.in_bytes = last.in_bytes;
        job.out_bytes = last.out_bytes;
      }
      job.iteration_s = report::TypicalSeconds(run);
      job.plain_iteration_s = report::PlainSeconds(run);
      if (run.measured) {
        const auto key = std::make_pair(job.pid, job.device);
        const auto known = bounds_.find(key);
        const bool same = known != bounds_.end() && known->second.snapshots == run.facts.snapshots;
        job.bound_safe_s = same ? known->second.safe : report::BoundsOf(*run.measured).safe;
        bounds[key] = {run.facts.snapshots, job.bound_safe_s};
      }
      if (!run.notes.empty()) job.note = run.notes.back().text;
      jobs.push_back(std::move(job));
    }
  }
  bounds_ = std::move(bounds);
  return jobs;
}

nlohmann::ordered_json JobJson(const Job& job) {
  return {{"pid", job.pid},
          {"command", job.command},
          {"device", job.device},
          {"device_name", job.device_name},
          {"budget_bytes", job.budget_bytes},
          {"managed_bytes", job.managed_bytes},
          {"native_bytes", job.native_bytes},
          {"iterations", job.iterations},
          {"plans", job.plans},
          {"planned", job.planned},
          {"off", job.off},
          {"in_bytes", job.in_bytes},
          {"out_bytes", job.out_bytes},
          {"iteration_s", job.iteration_s},
          {"plain_iteration_s", job.plain_iteration_s},
          {"bound_safe_s", job.bound_safe_s},
          {"note", job.note}};
}

nlohmann::ordered_json DaemonStatus(const std::string& socket) {
  if (!DaemonListens(socket)) return nullptr;
  protocol::Message message;
  message.kind = protocol::MessageKind::kStatus;
  const DaemonAnswer answer = AskDaemon(socket, message);
  if (answer.bodies.size() != 1) throw CommandError(1, "the answer of atpd is empty");
  auto json = nlohmann::ordered_json::parse(answer.bodies[0].begin(), answer.bodies[0].end(),
                                            nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw CommandError(1, "the answer of atpd cannot be read");
  return json;
}

}  // namespace atp::cli
