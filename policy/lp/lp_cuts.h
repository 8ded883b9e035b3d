// SPDX-License-Identifier: Apache-2.0
// Finds the rows of lp_bound.h that a solution violates most. O(launches^2) time, O(launches)
// memory. One thread.
#pragma once

#include <vector>

#include "policy/lp/lp_model.h"

namespace atp::policy {

class LpCuts {
 public:
  // `solution`: a value for each column of the model.
  LpCuts(const LpModel& model, const double* solution);

  // Rows violated by more than `tolerance` seconds of link time, the worst first.
  std::vector<LpRow> Violated(double tolerance) const;

 private:
  struct Cut {
    double violation = 0;  // seconds
    LpRow row;
  };
  double Pause(int k) const { return solution_[model_.PauseColumn(k)]; }
  double Window(int k) const { return model_.compute(k) + Pause(k); }
  double Dropped(size_t rerun) const { return solution_[model_.RerunColumn(rerun)]; }
  void FindLinkCuts(int row, double tolerance, std::vector<Cut>* cuts) const;
  void FindByLaunchCuts(double tolerance, std::vector<Cut>* cuts) const;
  void FindByLaunch(int k, double tolerance, std::vector<Cut>* cuts) const;

  const LpModel& model_;
  const double* solution_;
};

}  // namespace atp::policy
