// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_bound.h"

#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <numeric>

#include "policy/lp/lp_cuts.h"
#include "policy/lp/lp_model.h"

namespace atp::policy {
namespace {

void AddRows(ClpSimplex* solver, const std::vector<LpRow>& rows, bool equal) {
  std::vector<double> lower, upper, values;
  std::vector<int> starts{0}, columns;
  for (const LpRow& row : rows) {
    lower.push_back(row.at_least);
    upper.push_back(equal ? row.at_least : COIN_DBL_MAX);
    columns.insert(columns.end(), row.columns.begin(), row.columns.end());
    values.insert(values.end(), row.values.begin(), row.values.end());
    starts.push_back(int(columns.size()));
  }
  solver->addRows(int(rows.size()), lower.data(), upper.data(), starts.data(), columns.data(),
                  values.data());
}

void SetColumns(const LpModel& model, ClpSimplex* solver) {
  const size_t columns = size_t(model.columns());
  std::vector<double> lower(columns, 0), upper(columns, COIN_DBL_MAX), cost(columns, 0);
  for (int k = 0; k < model.launches(); ++k) {
    cost[size_t(model.PauseColumn(k))] = 1;
    lower[size_t(model.AwayColumn(k))] = std::max(0.0, model.excess(k));
  }
  for (size_t i = 0; i < model.intervals().size(); ++i) {
    upper[size_t(model.IntervalColumn(i))] = 1;
  }
  for (size_t i = 0; i < model.reruns().size(); ++i) {
    const size_t column = size_t(model.RerunColumn(i));
    upper[column] = 1;
    cost[column] = model.reruns()[i].seconds;
  }
  CoinPackedMatrix empty(false, 0, 0);
  empty.setDimensions(0, model.columns());
  solver->loadProblem(empty, lower.data(), upper.data(), cost.data(), nullptr, nullptr);
}

LpBound Solve(const Trace& trace, Bytes memory, const std::vector<Recomputation>& recompute,
              const LpOptions& options) {
  LpBound bound;
  for (const Launch& launch : trace.launches) bound.seconds += launch.seconds;
  if (trace.launches.empty() || trace.link.h2d <= 0 || trace.link.d2h <= 0) {
    bound.error = "the trace has no launches or no link rates";
    return bound;
  }
  const double compute = bound.seconds;
  const LpModel model(trace, memory, options.clean_leaves_free, recompute);
  ClpSimplex solver;
  solver.setLogLevel(0);
  SetColumns(model, &solver);
  AddRows(&solver, model.AwayRows(), true);
  AddRows(&solver, model.ShareRows(), false);
  const int n = model.launches();
  AddRows(&solver, {model.LinkRow(0, 0, n - 1), model.LinkRow(1, 0, n - 1)}, false);
  // Where all that may be away is away and no launch waits, the closed form's own rows are
  // violated.
  std::vector<double> all_away(size_t(model.columns()), 0);
  for (size_t i = 0; i < model.intervals().size(); ++i) {
    all_away[size_t(model.IntervalColumn(i))] = 1;
  }
  AddRows(&solver, LpCuts(model, all_away.data()).Violated(0), false);
  bound.columns = model.columns();
  int stalled = 0;
  while (bound.rounds < options.max_rounds) {
    solver.dual();
    if (solver.status() != 0) {
      bound.error = solver.status() == 1
                        ? "no data may leave that would make a launch fit"
                        : "the solver ended with status " + std::to_string(solver.status());
      return bound;
    }
    ++bound.rounds;
    bound.rows = solver.numberRows();
    // The dual's value is a bound for what the primal claims; both agree to the solver's tolerance.
    const double value = compute + solver.objectiveValue();
    stalled = value > bound.seconds * (1 + options.tolerance) ? 0 : stalled + 1;
    bound.seconds = std::max(bound.seconds, value);
    if (stalled > options.max_stalled) break;
    const LpCuts cuts(model, solver.primalColumnSolution());
    const std::vector<LpRow> rows = cuts.Violated(options.tolerance * bound.seconds);
    if (rows.empty()) {
      bound.converged = true;
      break;
    }
    AddRows(&solver, rows, false);
  }
  return bound;
}

}  // namespace

LpBound BoundSafeLp(const Trace& trace, Bytes memory, const LpOptions& options) {
  return Solve(trace, memory, {}, options);
}

LpBound BoundRecomputeLp(const Trace& trace, Bytes memory, const RecomputeOptions& recompute,
                         const LpOptions& options) {
  return Solve(trace, memory, RecomputeSet(trace, recompute).candidates(), options);
}

}  // namespace atp::policy
