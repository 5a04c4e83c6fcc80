// Formulas at and beyond the bounds: however they are made, they end soon, and with an error rather than a
// crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "formula/testing.h"

namespace slipway::formula {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(FormulaLimits, Length) {
  const SampledPool pool;
  EXPECT_EQ(pool.result_of("a = 1;" + std::string(8192 - 6, ' ')), "a=1");
  EXPECT_EQ(pool.result_of("a = 1;" + std::string(8193 - 6, ' ')), "too_long 1:1");
  EXPECT_EQ(pool.result_of("//" + repeated("ü", 8190)), "") << "characters count, not bytes";
  EXPECT_EQ(pool.result_of("//" + repeated("🚂", 8191)), "too_long 1:1");
  EXPECT_EQ(pool.result_of(std::string(1'000'000, '(')), "too_long 1:1");
}

TEST(FormulaLimits, Statements) {
  const SampledPool pool;
  EXPECT_EQ(pool.result_of(repeated("a = 1;", 100)), "a=1");
  EXPECT_EQ(pool.result_of(repeated("a = 1;", 100) + ";; // the end"), "a=1");
  EXPECT_EQ(pool.result_of(repeated("a = 1;\n", 100) + "b = 2"), "syntax 101:1");
}

TEST(FormulaLimits, Nesting) {
  const SampledPool pool;
  const auto nested = [](std::size_t depth, std::string_view open, std::string_view close) {
    return "a = " + repeated(open, depth) + "1" + repeated(close, depth);
  };
  EXPECT_EQ(pool.result_of(nested(99, "(", ")")), "a=1");
  EXPECT_EQ(pool.result_of(nested(100, "(", ")")), "syntax 1:105");
  EXPECT_EQ(pool.result_of(nested(99, "max(", ")")), "a=1");
  EXPECT_EQ(pool.result_of(nested(99, "[", "]")), "a=[1]");
  EXPECT_EQ(pool.result_of(nested(99, "1?", ":2")), "a=1");
  EXPECT_EQ(pool.result_of(nested(99, "1||1&&1==1<1+1*(", ")")), "a=1");
  for (const char* open : {"(", "[", "max(", "1?", "-(", "a.b(", "(1+", "[["})
    EXPECT_EQ(pool.result_of("a = " + repeated(open, 8000 / std::string_view(open).size())).substr(0, 3),
              open[0] == 'a' ? "eva" : "syn")
        << open;
}

TEST(FormulaLimits, LongFormulasAreNotDeep) {
  const SampledPool pool;
  EXPECT_EQ(pool.result_of("a = " + std::string(8000, '-') + "1"), "a=1");
  EXPECT_EQ(pool.result_of("a = " + std::string(8001, '!') + "5"), "a=0");
  EXPECT_EQ(pool.result_of("a = 1" + repeated("+1", 4000)), "a=4001");
  EXPECT_EQ(pool.result_of("a = " + repeated("0?1:", 2000) + "7"), "a=7");
  EXPECT_EQ(pool.result_of("a = 0" + repeated("||0", 2700)), "a=0");
  EXPECT_EQ(pool.result_of("a = sum(1" + repeated(",1", 4000) + ")"), "a=4001");
  EXPECT_EQ(pool.result_of("a = len([1" + repeated(",[]", 2000) + "])"), "a=1");
  EXPECT_EQ(pool.result_of("a = time()" + repeated(".year", 1600)), "evaluation 1:17");
}

TEST(FormulaLimits, VectorGrowthIsBounded) {
  const SampledPool pool;
  const auto message = [&pool](const std::string& formula) {
    const Outcome outcome = pool.run("v = [1,2,3,4,5,6,7,8];" + formula);
    return outcome.error ? outcome.error->message : "";
  };
  const std::string grow = "v = vec(v,v,v,v,v,v,v,v);";
  EXPECT_EQ(message(repeated(grow, 90)), "the variables hold more than 50000 numbers");
  EXPECT_EQ(message(repeated(grow, 4) + repeated("a = len(vec(v,v,v,v,v,v,v,v));", 9)),
            "the formula works on more than 1250000 numbers");
}

TEST(FormulaLimits, VariableSizeIsBounded) {
  SampledPool pool;
  pool.set(Metric::pending_tasks, std::vector<double>(2880, 12.5));
  const std::string day = "=$PendingTasks.GetSample(2880);";
  std::string formula;
  for (int i = 0; i < 17; ++i) formula += "v" + std::to_string(i) + day;
  EXPECT_FALSE(pool.run(formula).error);
  EXPECT_FALSE(pool.run(formula + "v3" + day + "v4 = 0; v17" + day).error)
      << "what is replaced does not count";
  const Outcome outcome = pool.run(formula + "v17" + day);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->message, "the variables hold more than 50000 numbers");
}

// The longest formulas over a day of samples: the dearest functions, in as many statements as there may be.
TEST(FormulaLimits, EvaluationIsQuick) {
  SampledPool pool;
  pool.set(Metric::pending_tasks, std::vector<double>(2880, 12.5));
  for (const char* statement :
       {"a=percentile($PendingTasks.GetSample(2*TimeInterval_Day),50);",
        "a=std(log($PendingTasks.GetSample(9999))*2)+lg(avg($PendingTasks.GetSample(9999)));",
        "a=$PendingTasks.GetSample(9999)*$PendingTasks.GetSample(9999);"}) {
    const std::size_t statements_fit = Limits::characters_max / std::string_view(statement).size();
    const auto formula = parse(repeated(statement, std::min(statements_fit, Limits::statements_max)));
    ASSERT_TRUE(formula);
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = evaluate(*formula, pool.inputs);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(!outcome.error || outcome.error->message.find("numbers") != std::string::npos);
    EXPECT_LT(took.count(), 500) << statement;  // about 5 in a release build on an idle machine
    RecordProperty(statement, std::to_string(took.count()) + " ms");
  }
}

}  // namespace
}  // namespace slipway::formula
