// The language by table: what values formulas make, and where and how they fail.
#include <gtest/gtest.h>

#include "formula/testing.h"

namespace slipway::formula {
namespace {

struct Row {
  const char* formula;
  const char* expected;
};

template <std::size_t N>
void expect(const Row (&rows)[N]) {
  const SampledPool pool;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.formula);
    const Outcome outcome = pool.run(row.formula);
    EXPECT_EQ(pool.result_of(row.formula), row.expected) << (outcome.error ? describe(*outcome.error) : "");
    EXPECT_TRUE(!outcome.error || !outcome.error->message.empty());
  }
}

TEST(FormulaLanguage, NumbersAndTexts) {
  expect({
      {"a = 1; b = 1.; c = .5; d = 1.5", "a=1;b=1;c=0.5;d=1.5"},
      {"a = 1e3; b = 1E-2; c = 2.5e+1", "a=1000;b=0.01;c=25"},
      {"a = 100000; b = 1e15; c = 1e16; d = 1e22", "a=100000;b=1000000000000000;c=1e+16;d=1e+22"},
      {"a = 0.1 + 0.2; b = 1/3", "a=0.30000000000000004;b=0.3333333333333333"},
      {"a = 1e-7; b = 123456789.125", "a=1e-07;b=123456789.125"},
      {"a = -0; b = 0 * -1; c = ceil(-0.5)", "a=0;b=0;c=0"},
      {"a = 007", "a=7"},
      {"a = \"\"; b = \"x y\"; c = \"\\\"q\\\" \\\\\"", "a=;b=x y;c=\"q\" \\"},
      {"a = \"a // b /* c */ ; d\"", "a=a // b /* c */ ; d"},
      {"a = \"züge 🚂\"", "a=züge 🚂"},
      {"a = \"two\nlines\"", "a=two\nlines"},
      {"a = [] ; b = [1]; c = [1, [2, 3], 4]", "a=[];b=[1];c=[1,2,3,4]"},
      {"a = [0.5,-1e30]", "a=[0.5,-1e+30]"},
      {"a = 1e308 * 10; b = -a; c = a - a; d = c == c; e = c != c", "a=Infinity;b=-Infinity;c=NaN;d=0;e=1"},
      {"a = 1e999", "syntax 1:5"},
      {"a = 1e", "syntax 1:6"},
      {"a = 1.2.3", "syntax 1:8"},
      {"a = 5.year", "syntax 1:7"},
      {"a = 1_000", "syntax 1:6"},
      {"a = 0x10", "syntax 1:6"},
      {"a = \"open", "syntax 1:5"},
      {"a = \"open\\\"", "syntax 1:5"},
      {"a = 'x'", "syntax 1:5"},
  });
}

TEST(FormulaLanguage, SpaceAndComments) {
  expect({
      {"", ""},
      {";;;", ""},
      {" \t\r\n ", ""},
      {"// nothing", ""},
      {"/**/", ""},
      {"/* a\n * b */ a = 1", "a=1"},
      {"a=1// one\n;b=2", "a=1;b=2"},
      {"a/**/=/**/1/**/+/**/1", "a=2"},
      {"a = 4 / /* half */ 2", "a=2"},
      {"a = 1;\r\nb = a +\r\n  1;\r\n", "a=1;b=2"},
      {"a = 1;;; b = 2;", "a=1;b=2"},
      {"/* open", "syntax 1:1"},
      {"a = 1; /* open", "syntax 1:8"},
      {"a = 1 /* * / */ /", "syntax 1:18"},
      {"/* ü */ = 1", "syntax 1:9"},
      {"a = 1;\n\n  b = \"ü\" ü", "syntax 3:11"},
      {"a = 1 \xff", "syntax 1:7"},
      {"ü = 1", "syntax 1:1"},
      {"a = 1\xc2\xa0+ 1", "syntax 1:6"},
  });
}

TEST(FormulaLanguage, Precedence) {
  expect({
      {"a = 2 + 3 * 4; b = (2 + 3) * 4; c = 2 * 3 + 4", "a=14;b=20;c=10"},
      {"a = 8 / 4 * 2; b = 8 - 4 + 2; c = 8 / (4 * 2)", "a=4;b=6;c=1"},
      {"a = -2 * -3; b = - -2; c = +-+2; d = 1 - -1", "a=6;b=2;c=-2;d=2"},
      {"a = !0 + 1; b = !(0 + 1); c = !!5; d = !-1", "a=2;b=0;c=1;d=0"},
      {"a = 1 + 1 == 2; b = 1 < 2 == 2 > 1; c = 3 > 2 > 1", "a=1;b=1;c=0"},
      {"a = 1 || 0 && 0; b = (1 || 0) && 0; c = 0 || 2; d = 3 && 4", "a=1;b=0;c=1;d=1"},
      {"a = 1 == 1 && 2 == 2; b = 1 && 0 == 0", "a=1;b=1"},
      {"a = 1 ? 2 : 3; b = 0 ? 2 : 3; c = 1 + 0 ? 2 : 3 + 4", "a=2;b=3;c=2"},
      {"a = 1 ? 0 ? 1 : 2 : 3; b = 0 ? 1 : 0 ? 2 : 0 ? 3 : 4", "a=2;b=4"},
      {"a = 1 || 0 ? 5 : 6; b = (1 ? 2 : 3) + 1", "a=5;b=3"},
      {"a = 0.5 ? 1 : 2; b = -1 ? 1 : 2", "a=1;b=1"},
      {"a = 1 ? \"x\" : [1]; b = 0 ? \"x\" : [1]", "a=x;b=[1]"},
  });
}

TEST(FormulaLanguage, OnlyTheChosenBranchIsEvaluated) {
  expect({
      {"a = 1 ? 2 : 1/0; b = 0 ? nope : 3", "a=2;b=3"},
      {"a = 0 && nope; b = 1 || nope", "a=0;b=1"},
      {"a = 1 && 1/0", "evaluation 1:11"},
      {"a = 0 || nope", "evaluation 1:10"},
      {"a = 0 && nosuch(1)", "evaluation 1:10"},  // errors in the text are errors even there
  });
}

TEST(FormulaLanguage, Vectors) {
  expect({
      {"a = [1,2] + 1; b = 1 + [1,2]; c = [1,2] - [1,1]", "a=[2,3];b=[2,3];c=[0,1]"},
      {"a = [1,2] * [3,4]; b = [6,8] / 2; c = 12 / [3,4]", "a=[3,8];b=[3,4];c=[4,3]"},
      {"a = -[1,-2]; b = +[1]; c = [] + 1; d = [] * []", "a=[-1,2];b=[1];c=[];d=[]"},
      {"a = [5] + 1; b = [5] == 5; c = [5] == [5]; d = ![0]", "a=[6];b=1;c=1;d=1"},
      {"a = [1] ? 2 : 3; b = [0] || [2]; c = [2] * TimeInterval_Second", "a=2;b=1;c=00:00:02"},
      {"a = [1,2] / 0", "evaluation 1:11"},
      {"a = [1,2] / [1,0]", "evaluation 1:11"},
      {"a = 1 / [1,0]", "evaluation 1:7"},
      {"a = [1,2] + [1]", "evaluation 1:11"},
      {"a = [1,2] == [1,2]", "evaluation 1:11"},
      {"a = [] == 1", "evaluation 1:8"},
      {"a = ![1,2]", "evaluation 1:5"},
      {"a = [1,2] ? 1 : 2", "evaluation 1:11"},
      {"a = [1,2] && 1", "evaluation 1:11"},
      {"a = 1 && [1,2]", "evaluation 1:7"},
      {"a = [1,2] * TimeInterval_Second", "evaluation 1:11"},
      {"a = [\"x\"]", "evaluation 1:5"},
      {"a = [time()]", "evaluation 1:5"},
      {"a = [1,]", "syntax 1:8"},
      {"a = [1 2]", "syntax 1:8"},
      {"a = [1", "syntax 1:7"},
  });
}

TEST(FormulaLanguage, TimesAndIntervals) {
  expect({
      {"a = TimeInterval_Zero; b = TimeInterval_100ns; c = TimeInterval_Microsecond",
       "a=00:00:00;b=00:00:00.0000001;c=00:00:00.0000010"},
      {"a = TimeInterval_Millisecond; b = TimeInterval_Second; c = TimeInterval_Minute",
       "a=00:00:00.0010000;b=00:00:01;c=00:01:00"},
      {"a = TimeInterval_Hour; b = TimeInterval_Day; c = TimeInterval_Week; d = TimeInterval_Year",
       "a=01:00:00;b=1.00:00:00;c=7.00:00:00;d=365.00:00:00"},
      {"a = TimeInterval_Day - TimeInterval_100ns; b = -a; c = TimeInterval_Hour - TimeInterval_Day",
       "a=23:59:59.9999999;b=-23:59:59.9999999;c=-23:00:00"},
      {"a = TimeInterval_Second / 3; b = 0.5 * TimeInterval_100ns; c = TimeInterval_Zero * -1",
       "a=00:00:00.3333333;b=00:00:00.0000001;c=00:00:00"},
      {"a = time() + TimeInterval_Day; b = TimeInterval_Day + time(); c = time() - TimeInterval_Day",
       "a=2026-03-03T10:00:00.000Z;b=2026-03-03T10:00:00.000Z;c=2026-03-01T10:00:00.000Z"},
      {"a = time(\"\") == time(); b = time() >= time() + TimeInterval_100ns", "a=1;b=0"},
      {"a = time() - time() == TimeInterval_Zero; b = TimeInterval_Hour > TimeInterval_Minute", "a=1;b=1"},
      {"a = time(\"2024-02-29\"); b = a.month; c = a.weekday", "a=2024-02-29T00:00:00.000Z;b=2;c=4"},
      {"a = time(\"2026\"); b = time(\"2026-07\")", "a=2026-01-01T00:00:00.000Z;b=2026-07-01T00:00:00.000Z"},
      {"a = time(\"2026-03-02T10:30Z\"); b = time(\"2026-03-02T10:30:15\")",
       "a=2026-03-02T10:30:00.000Z;b=2026-03-02T10:30:15.000Z"},
      {"a = time(\"2026-03-02T00:30:00+01:00\"); b = time(\"2026-03-02T23:30:00-01:30\")",
       "a=2026-03-01T23:30:00.000Z;b=2026-03-03T01:00:00.000Z"},
      {"a = time(\"2026-03-02T10:00:00.123456789Z\"); b = a - time()",
       "a=2026-03-02T10:00:00.123Z;b=00:00:00.1234567"},
      {"a = time(\"1969-12-31T23:59:59.5Z\"); b = a.second; c = a.year; d = a.weekday",
       "a=1969-12-31T23:59:59.500Z;b=59;c=1969;d=3"},
      {"a = time(\"0001-01-01\"); b = a.year; c = a.weekday", "a=0001-01-01T00:00:00.000Z;b=1;c=1"},
      {"a = time(\"Sun, 01 Mar 2026 23:59:59 GMT\"); b = a.weekday", "a=2026-03-01T23:59:59.000Z;b=7"},
      {"a = (time() + TimeInterval_Hour * 14).weekday", "a=2"},
      {"a = time(\"Mon, 01 Mar 2026 09:00:00 GMT\")", "evaluation 1:5"},
      {"a = time(\"2026-02-29\")", "evaluation 1:5"},
      {"a = time(\"2026-13-01\")", "evaluation 1:5"},
      {"a = time(\"2026-03-02T24:00:00Z\")", "evaluation 1:5"},
      {"a = time(\"2026-03-02T10:60:00Z\")", "evaluation 1:5"},
      {"a = time(\"2026-03-02T10:00:00.Z\")", "evaluation 1:5"},
      {"a = time(\"2026-03-02T10:00:00Zx\")", "evaluation 1:5"},
      {"a = time(\" 2026-03-02\")", "evaluation 1:5"},
      {"a = time(\"0000-01-01\")", "evaluation 1:5"},
      {"a = time(5)", "evaluation 1:5"},
      {"a = time() + time()", "evaluation 1:12"},
      {"a = TimeInterval_Hour - time()", "evaluation 1:23"},
      {"a = TimeInterval_Hour * TimeInterval_Hour", "evaluation 1:23"},
      {"a = TimeInterval_Hour / TimeInterval_Hour", "evaluation 1:23"},
      {"a = 5 / TimeInterval_Hour", "evaluation 1:7"},
      {"a = TimeInterval_Hour / 0", "evaluation 1:23"},
      {"a = time() * 2", "evaluation 1:12"},
      {"a = -time()", "evaluation 1:5"},
      {"a = !TimeInterval_Hour", "evaluation 1:5"},
      {"a = TimeInterval_Hour ? 1 : 2", "evaluation 1:23"},
      {"a = TimeInterval_Hour == 1", "evaluation 1:23"},
      {"a = TimeInterval_Year * 1e9", "evaluation 1:23"},
      {"a = TimeInterval_Year * 29000 + TimeInterval_Year * 29000", "evaluation 1:31"},
      {"a = time() + TimeInterval_Year * 9000", "evaluation 1:12"},
      {"a = time() - TimeInterval_Year * 3000", "evaluation 1:12"},
      {"a = (5).year", "evaluation 1:9"},
      {"a = TimeInterval_Hour.hour", "evaluation 1:23"},
      {"a = $PendingTasks.year", "evaluation 1:19"},
  });
}

TEST(FormulaLanguage, Functions) {
  expect({
      {"a = avg(1,2,3); b = avg([1,2],6); c = avg(5)", "a=2;b=3;c=5"},
      {"a = max(1,[5,2],3); b = min(1,[5,-2],3); c = max([7])", "a=5;b=-2;c=7"},
      {"a = sum(1,[2,3]); b = sum([]); c = len(); d = len([],1)", "a=6;b=0;c=0;d=1"},
      {"a = norm([3,4]); b = norm(-2); c = range([4,1]); d = range(3)", "a=5;b=2;c=3;d=0"},
      {"a = std(1,1,1); b = std(1,3); c = std([7])", "a=0;b=1.4142135623730951;c=0"},
      {"a = lg(1024); b = ln(1); c = log(0.01); d = log([1,10],100)", "a=10;b=0;c=-2;d=[0,1,2]"},
      {"a = ceil(1); b = ceil(-1.5); c = floor(1.9); d = round(0.5); e = round(-0.4)",
       "a=1;b=-1;c=1;d=1;e=0"},
      {"a = round([1.5,2.5]); b = floor(1.5,2.5); c = ceil([1.5]); d = floor([])",
       "a=[2,3];b=[1,2];c=[2];d=[]"},
      {"a = vec(); b = vec(1); c = vec(1,[2,3]); d = len(vec(c,c))", "a=[];b=[1];c=[1,2,3];d=6"},
      {"v = [5,1,4,2,3]; a = percentile(v,20); b = percentile(v,20.1); c = percentile(v,99.9)",
       "a=1;b=2;c=5;v=[5,1,4,2,3]"},
      {"n = 1e308 * 10; n = n - n; a = max(1, n); b = min(1, n); c = percentile([2, n, 1], 100)",
       "a=1;b=NaN;c=2;n=NaN"},
      {"a = percentile($PendingTasks.GetSample(20), 55); b = percentile($PendingTasks.GetSample(20), 55.1)",
       "a=11;b=12"},
      {"a = percentile([7],0); b = percentile([7],100); c = percentile([2,1],[50])", "a=7;b=7;c=1"},
      {"v = [1,2]; a = val(v,0); b = val(v,1.9); c = val(v,-0.5); d = val(v,[1])", "a=1;b=2;c=1;d=2;v=[1,2]"},
      {"a = rand(); b = a >= 0 && a < 1; a = 0", "a=0;b=1"},
      {"max = 3; a = max(max, 4)", "a=4;max=3"},
      {"a = avg()", "evaluation 1:5"},
      {"a = max([])", "evaluation 1:5"},
      {"a = 1 + min([],[])", "evaluation 1:9"},
      {"a = range()", "evaluation 1:5"},
      {"a = norm([])", "evaluation 1:5"},
      {"a = std([])", "evaluation 1:5"},
      {"a = percentile([],50)", "evaluation 1:5"},
      {"a = percentile([1],101)", "evaluation 1:5"},
      {"a = percentile([1],-1)", "evaluation 1:5"},
      {"a = percentile(1,50)", "evaluation 1:5"},
      {"a = percentile([1],[1,2])", "evaluation 1:5"},
      {"a = val([1],1)", "evaluation 1:5"},
      {"a = val([1],-1)", "evaluation 1:5"},
      {"a = val([],0)", "evaluation 1:5"},
      {"a = val(1,0)", "evaluation 1:5"},
      {"a = lg(0)", "evaluation 1:5"},
      {"a = ln(-1)", "evaluation 1:5"},
      {"a = log([1,0])", "evaluation 1:5"},
      {"n = 1e308 * 10; a = ln(n - n)", "evaluation 1:21"},
      {"a = max(\"x\")", "evaluation 1:5"},
      {"a = sum(time())", "evaluation 1:5"},
      {"a = ceil(TimeInterval_Hour)", "evaluation 1:5"},
      {"a = vec(\"x\")", "evaluation 1:5"},
      {"a = ceil()", "evaluation 1:5"},
      {"a = rand(1)", "evaluation 1:5"},
      {"a = percentile([1])", "evaluation 1:5"},
      {"a = val([1],0,0)", "evaluation 1:5"},
      {"a = time(\"\",\"\")", "evaluation 1:5"},
      {"stop(1)", "evaluation 1:1"},
      {"a = Max(1)", "evaluation 1:5"},
      {"a = $max(1)", "syntax 1:9"},
  });
}

TEST(FormulaLanguage, Comparisons) {
  expect({
      {"a = 1 < 1; b = 1 <= 1; c = 1 > 1; d = 1 >= 1; e = 1 == 1; f = 1 != 1", "a=0;b=1;c=0;d=1;e=1;f=0"},
      {"a = \"a\" == \"a\"; b = \"B\" < \"a\"; c = \"a\" != \"A\"; d = \"\" < \"a\"; e = \"ab\" >= \"a\"",
       "a=1;b=1;c=1;d=1;e=1"},
      {"a = requeue == \"requeue\"; b = $NodeDeallocationOption == ReQueue", "a=1;b=1"},
      {"a = \"1\" == 1", "evaluation 1:9"},
      {"a = \"x\" + \"y\"", "evaluation 1:9"},
      {"a = \"x\" && 1", "evaluation 1:9"},
      {"a = -\"x\"", "evaluation 1:5"},
      {"a = \"x\" ? 1 : 2", "evaluation 1:9"},
      {"a = time() == TimeInterval_Hour", "evaluation 1:12"},
  });
}

TEST(FormulaLanguage, Variables) {
  expect({
      {"a = 1; a = a + 1; A = 5", "A=5;a=2"},
      {"$a = 1; b = a; c = $a", "$a=1;b=1;c=1"},
      {"a = 1; $a = 2; b = a; c = $a", "$a=2;a=1;b=1;c=2"},
      {"b = 1; a = 2; _c = 3; B = 4; $d = 5", "$d=5;B=4;_c=3;a=2;b=1"},
      {"a = PendingTasks; b = len(PendingTasks.GetSample(2)); c = $TimeInterval_Hour", "a=20;b=2;c=01:00:00"},
      {"a = $TargetDedicatedNodes; b = $TargetDedicated; c = $TargetLowPriority", "a=4;b=4;c=2"},
      {"$TargetDedicated = 7; a = $TargetDedicatedNodes; b = $TargetDedicated", "a=7;b=7"},
      {"$TargetDedicatedNodes = 5; $TargetDedicated = 7; a = $TargetDedicatedNodes; b = $TargetDedicated",
       "a=5;b=7"},
      {"$TargetDedicatedNodes = [2.9]; a = $TargetDedicatedNodes + 1", "a=3.9"},
      {"$NodeDeallocationOption = \"Terminate\"; a = $NodeDeallocationOption", "a=terminate"},
      {"a = $TaskSlotsPerNode; b = $CurrentDedicatedNodes; c = $CurrentLowPriorityNodes", "a=4;b=4;c=2"},
      {"a = 1; stop(); b = 2", "a=1"},
      {"a = 1; b = stop(); c = 2", "a=1"},
      {"a = 1 ? stop() : 2; b = 1", ""},
      {"a = 1 + max(1, stop()); b = 1", ""},
      {"1 + 1; \"x\"; [1]; $PendingTasks; $NetworkInBytes", ""},
      {"a = a", "evaluation 1:5"},
      {"a = b; b = 1", "evaluation 1:5"},
      {"a = 1;\nb = a +\n  pendingtasks", "evaluation 3:3"},
      {"a = $requeue", "a=requeue"},
      {"$TaskSlotsPerNode = 1", "evaluation 1:1"},
      {"x = 1; $CurrentDedicatedNodes = 1", "evaluation 1:8"},
      {"TimeInterval_Hour = 1", "evaluation 1:1"},
      {"Requeue = 1", "evaluation 1:1"},
      {"$TargetDedicatedNodes = \"x\"", "evaluation 1:23"},
      {"$TargetDedicatedNodes = [1,2]", "evaluation 1:23"},
      {"$TargetDedicatedNodes = []", "evaluation 1:23"},
      {"$TargetDedicatedNodes = TimeInterval_Hour", "evaluation 1:23"},
      {"$TargetDedicatedNodes = 1e10", "evaluation 1:23"},
      {"$TargetLowPriorityNodes = 1e308 * 10", "evaluation 1:25"},
      {"$TargetLowPriorityNodes = 1e308 * 10 - 1e308 * 10", "evaluation 1:25"},
      {"$TargetDedicatedNodes = $NetworkInBytes", "insufficient_samples 1:23"},
      {"$NodeDeallocationOption = 1", "evaluation 1:25"},
      {"$NodeDeallocationOption = \"soon\"", "evaluation 1:25"},
  });
}

TEST(FormulaLanguage, Syntax) {
  expect({
      {"a", "evaluation 1:1"},
      {"a =", "syntax 1:4"},
      {"= 1", "syntax 1:1"},
      {"1 = 2", "syntax 1:3"},
      {"a = b = 1", "syntax 1:7"},
      {"a == 1", "evaluation 1:1"},
      {"a = 1 b = 2", "syntax 1:7"},
      {"a = (1", "syntax 1:7"},
      {"a = 1)", "syntax 1:6"},
      {"a = ()", "syntax 1:6"},
      {"a = 1 +", "syntax 1:8"},
      {"a = * 1", "syntax 1:5"},
      {"a = 1 ? 2", "syntax 1:10"},
      {"a = 1 ? : 2", "syntax 1:9"},
      {"a = 1 : 2", "syntax 1:7"},
      {"a = max(1,)", "syntax 1:11"},
      {"a = max(,1)", "syntax 1:9"},
      {"a = max(1", "syntax 1:10"},
      {"a = max 1", "syntax 1:9"},
      {"a = 2 ^ 3", "syntax 1:7"},
      {"a = 1 & 1", "syntax 1:7"},
      {"a = 1 | 1", "syntax 1:7"},
      {"a = $", "syntax 1:5"},
      {"a = $ b", "syntax 1:5"},
      {"a = $1", "syntax 1:5"},
      {"a = {1}", "syntax 1:5"},
      {"a = time().", "syntax 1:12"},
      {"a = time().5", "syntax 1:11"},
      {"a = time().$year", "syntax 1:12"},
      {"a = time().year()", "evaluation 1:12"},
      {"a = $PendingTasks.Count", "evaluation 1:19"},
      {"a = $PendingTasks.GetSampel(1)", "evaluation 1:19"},
      {"a = 1 = = 2", "syntax 1:7"},
      {"if (1) { a = 2 }", "evaluation 1:1"},
      {"a = 1;\n  b = ;\nc = %", "syntax 2:7"},
      {"a = 1\n  % 2", "syntax 2:3"},
  });
}

TEST(FormulaLanguage, ErrorsCarryHints) {
  struct Hint {
    const char* formula;
    const char* message;
    const char* hint;
  };
  const SampledPool pool;
  for (const Hint& row : {
           Hint{"a = $PendingTask", "there is no variable $PendingTask", "did you mean $PendingTasks?"},
           Hint{"workers = 1; a = worker", "there is no variable worker", "did you mean workers?"},
           Hint{"a = celi(1)", "there is no function celi", "did you mean ceil?"},
           Hint{"a = $RunningTasks.GetSampels(1)", "there is no method GetSampels",
                "did you mean GetSample?"},
           Hint{"a = 7 % 2", "'%' is not part of the language", "for a remainder write a - floor(a / b) * b"},
           Hint{"a = 1; a = a = 2", "'=' stands where an operator or ; should", "to compare write =="},
           Hint{"a = (", "the formula ends where a value should stand", ""},
           Hint{"a = [1,2] > 1", "a vector of 2 numbers and a number cannot be compared",
                "take one number of a vector with avg(), max() or val()"},
           Hint{"a = val([1], 0, 1)", "val takes 2 arguments, not 3", ""},
           Hint{"a = rand(1)", "rand takes no arguments, not 1", ""},
           Hint{"a = $RunningTasks.GetSample()", "GetSample takes 1 to 3 arguments, not 0", ""},
           Hint{"a = max([])", "max of no numbers at all",
                "add one that is always there, like max(0, …), or test len() first"},
       }) {
    SCOPED_TRACE(row.formula);
    const Outcome outcome = pool.run(row.formula);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->message, row.message);
    EXPECT_EQ(outcome.error->hint, row.hint);
  }
}

TEST(FormulaLanguage, TargetsAreCutNotRounded) {
  struct Target {
    const char* formula;
    NodeCounts targets;
  };
  const SampledPool pool;
  for (const Target& row : {
           Target{"$TargetDedicatedNodes = 2.999; $TargetLowPriorityNodes = 0.5", {2, 0}},
           Target{"$TargetDedicatedNodes = -0.5; $TargetLowPriorityNodes = -1e300", {0, 0}},
           Target{"$TargetDedicatedNodes = 2147483647; $TargetLowPriority = 1", {2147483647, 1}},
           Target{"$TargetDedicated = 7; $TargetDedicatedNodes = 5", {5, 2}},
           Target{"TargetDedicatedNodes = 9", {4, 2}},  // without its $ it is a variable like any other
           Target{"$TargetDedicatedNodes = $TargetDedicatedNodes + 1; $TargetDedicatedNodes = "
                  "$TargetDedicatedNodes * 2",
                  {10, 2}},
       }) {
    SCOPED_TRACE(row.formula);
    const Outcome outcome = pool.run(row.formula);
    EXPECT_FALSE(outcome.error);
    EXPECT_EQ(outcome.targets, row.targets);
  }
}

}  // namespace
}  // namespace slipway::formula
