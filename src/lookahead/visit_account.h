// The account from which visits of other levels are paid, and with it the arithmetic of the
// governor's contract. The incumbent's steps earn a share of their time: 1 % while that is off, for
// then all that is lost is lost against off; else 6 % of what it gains against off, between 0.6 and
// 1 %. A visit pays what it took longer than the incumbent would have, and gets back what it took
// less. So trying costs 1 % of the time and the one step that the account holds at the start,
// whatever the rivals do.
//
// Steps are usual ones of the incumbent; the account holds at most four. Plain arithmetic; one
// thread at a time.
#pragma once

#include <algorithm>

namespace sluice {

class VisitAccount {
 public:
  static constexpr double kShareWhileOff = 0.010;
  /// Of the incumbent's time, when that gains so much of a step against off.
  static double share_of(double gain) {
    return std::clamp(kShareOfGain * gain, kShareMin, kShareWhileOff);
  }

  void open(double usual_ns) { credit_ns_ = kStartSteps * usual_ns; }
  void earn(double ns, double usual_ns) {
    credit_ns_ = std::min(credit_ns_ + ns, kMostSteps * usual_ns);
  }
  void pay(double ns) { credit_ns_ -= ns; }

  bool is_empty() const { return credit_ns_ <= 0; }
  bool is_overdrawn() const { return credit_ns_ < 0; }
  /// Whether it bears what a visit will probably cost. A full one bears any, and an almost empty
  /// one none, since most visits would end before they have shown anything.
  bool bears(double price_ns, double usual_ns) const {
    return credit_ns_ >= std::clamp(price_ns, kStakeMinSteps * usual_ns, kFullSteps * usual_ns);
  }

 private:
  static constexpr double kShareMin = 0.006;
  static constexpr double kShareOfGain = 0.06;
  static constexpr double kStartSteps = 1;
  static constexpr double kMostSteps = 4;
  static constexpr double kFullSteps = 0.9 * kMostSteps;
  static constexpr double kStakeMinSteps = 0.4;

  double credit_ns_ = 0;
};

}  // namespace sluice
