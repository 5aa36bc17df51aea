#include "lookahead/visit_records.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Proof = VisitRecords::Proof;

constexpr double kVariance = 0.02 * 0.02;  // of what one visit shows

void visit(VisitRecords& records, size_t level, double gain, int count = 1) {
  for (int i = 0; i < count; ++i) {
    records.begin_visit(kVariance);
    records.learn(level, gain, 1, kVariance);
  }
}

TEST(VisitRecords, AStepUpNeedsMoreProofThanAStepDown) {
  VisitRecords records;
  visit(records, 1, 0.5);
  EXPECT_FALSE(records.is_proven(1, Proof::down)) << "a single visit proves nothing";
  visit(records, 1, 0.5);
  EXPECT_TRUE(records.is_proven(1, Proof::down));
  EXPECT_FALSE(records.is_proven(1, Proof::up));
  visit(records, 1, 0.5);
  EXPECT_TRUE(records.is_proven(1, Proof::up));
}

TEST(VisitRecords, AGainWithinTheNoiseIsNoProof) {
  VisitRecords records;
  visit(records, 1, 0.005, 10);
  EXPECT_FALSE(records.is_proven(1, Proof::down));
  visit(records, 2, -0.5, 10);
  EXPECT_FALSE(records.is_proven(2, Proof::down));
}

TEST(VisitRecords, VisitsThatScatterProveLess) {
  VisitRecords steady, scattered;
  for (int i = 0; i < 8; ++i) {
    visit(steady, 1, 0.03);
    visit(scattered, 1, i % 2 == 0 ? 0.18 : -0.12);
  }
  EXPECT_TRUE(steady.is_proven(1, Proof::up));
  EXPECT_FALSE(scattered.is_proven(1, Proof::up));
}

TEST(VisitRecords, WhatIsOldLeavesMoreToHope) {
  VisitRecords records;
  visit(records, 1, 0.1, 4);
  records.note_visited(1, 1000);
  EXPECT_GT(records.hoped_gain(1, 1000), 0.1);
  EXPECT_GT(records.hoped_gain(1, 1500), records.hoped_gain(1, 1000));
  visit(records, 2, 0.1, 40);
  records.note_visited(2, 1000);
  EXPECT_LT(records.hoped_gain(2, 1000), records.hoped_gain(1, 1000)) << "and less is surer";
}

TEST(VisitRecords, RecentVisitsThatContradictTheLongMemoryReplaceIt) {
  VisitRecords records;
  visit(records, 1, -0.2, 30);
  EXPECT_NEAR(records.gain(1), -0.2, 1e-9);
  visit(records, 1, 0.2, 4);
  EXPECT_GT(records.gain(1), 0.0) << "an average of all would be -0.15";
}

TEST(VisitRecords, ALevelHasShownAllWhenItIsHopelessOrWellKnown) {
  VisitRecords records;
  visit(records, 1, -0.3);
  EXPECT_TRUE(records.has_shown_all(1));
  visit(records, 2, 0.02, 63);
  EXPECT_FALSE(records.has_shown_all(2));
  visit(records, 2, 0.02);
  EXPECT_TRUE(records.has_shown_all(2));
}

TEST(VisitRecords, RestsGrowTwofoldUpToALimit) {
  VisitRecords records;
  uint64_t step = 100;
  for (const uint64_t rest : {16u, 32u, 64u, 100u, 100u}) {
    records.let_rest(1, step, 100);
    EXPECT_FALSE(records.is_rested(1, step + rest - 1));
    EXPECT_TRUE(records.is_rested(1, step + rest));
    step += rest;
  }
  EXPECT_TRUE(records.is_rested(2, 0)) << "one that never visited";
}

TEST(VisitRecords, GainsAreRestatedAgainstANewIncumbent) {
  VisitRecords records;
  visit(records, 2, 0.2, 40);
  visit(records, 3, 0.1, 40);
  records.let_rest(3, 0, 512);
  const double factor = records.crown(2, 0, 5);
  EXPECT_GT(factor, 1 / (1 - 0.19)) << "a fifth, but for what may have been luck";
  EXPECT_LT(factor, 1 / (1 - 0.20));
  EXPECT_NEAR(records.gain(3), 1 - 0.9 / 0.8, 0.01) << "a step of 0.9 beside one of 0.8";
  EXPECT_TRUE(records.is_rested(3, 5)) << "all is open again";
  EXPECT_NEAR(records.gain(0), (1 - 1 / 0.8) / 2, 0.01) << "half of what it has lost by";
  EXPECT_FALSE(records.is_rested(0, 20));
  EXPECT_TRUE(records.is_rested(0, 21));
}

TEST(VisitRecords, AShiftHalvesWhatIsKnown) {
  VisitRecords records;
  visit(records, 1, 0.3, 10);
  records.let_rest(1, 0, 512);
  records.half_forget(3);
  EXPECT_NEAR(records.gain(1), 0.15, 1e-9);
  EXPECT_FALSE(records.is_proven(1, Proof::down)) << "on one visit's weight";
  EXPECT_TRUE(records.is_rested(1, 3));
  records.forget();
  EXPECT_EQ(records.gain(1), 0.0);
}

}  // namespace
}  // namespace sluice
