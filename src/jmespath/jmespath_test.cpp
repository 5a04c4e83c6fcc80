#include "jmespath/jmespath.h"

#include <gtest/gtest.h>

namespace slipway::jmespath {
namespace {

constexpr const char* data = R"({
  "a": {"b": {"c": 7}, "list": [1, 2, 3]},
  "name with space": "quoted",
  "numbers": [5, 3, 9, 1.5],
  "words": ["pear", "apple", "fig"],
  "nested": [[1, 2], [3, [4]], 5],
  "empty": [], "nothing": null, "zero": 0, "no": false, "blank": "",
  "word": "äpfel",
  "jobs": [
    {"name": "fit", "state": "running", "nodes": 2, "node": {"ip": "10.0.0.1"}, "tags": ["x", "y"]},
    {"name": "tune", "state": "queued", "nodes": 8, "node": {"ip": "10.0.0.2"}, "tags": []},
    {"name": "eval", "state": "running", "nodes": 1, "node": null, "tags": ["z"]}
  ],
  "by_name": {"one": {"n": 1}, "two": {"n": 2}, "three": 3}
})";

TEST(Jmespath, Gives) {
  struct Row {
    const char* query;
    const char* result;
  };
  const Row rows[] = {
      // names
      {"zero", "0"},
      {"absent", "null"},
      {"\"name with space\"", R"("quoted")"},
      {R"("name\u0020with space")", R"("quoted")"},
      {"a.b.c", "7"},
      {"a . b\n.c", "7"},
      {"a.absent.c", "null"},
      {"zero.b", "null"},
      {"@.zero", "0"},
      {"a.b | c", "7"},
      // indexes and slices
      {"numbers[0]", "5"},
      {"numbers[-1]", "1.5"},
      {"numbers[4]", "null"},
      {"numbers[-5]", "null"},
      {"a[0]", "null"},
      {"a.list[1]", "2"},
      {"jobs[0].name", R"("fit")"},
      {"nested[1][1][0]", "4"},
      {"numbers[1:3]", "[3,9]"},
      {"numbers[:2]", "[5,3]"},
      {"numbers[2:]", "[9,1.5]"},
      {"numbers[::2]", "[5,9]"},
      {"numbers[::-1]", "[1.5,9,3,5]"},
      {"numbers[-2:]", "[9,1.5]"},
      {"numbers[10:]", "[]"},
      {"numbers[2:0:-1]", "[9,3]"},
      {"jobs[:2].name", R"(["fit","tune"])"},
      {"zero[:1]", "null"},
      // projections
      {"jobs[*].name", R"(["fit","tune","eval"])"},
      {"jobs[*].node.ip", R"(["10.0.0.1","10.0.0.2"])"},
      {"jobs[].tags[]", R"(["x","y","z"])"},
      {"jobs[].tags", R"([["x","y"],[],["z"]])"},
      {"jobs[*].tags[0]", R"(["x","z"])"},
      {"jobs[*].name | [0]", R"("fit")"},
      {"nested[]", "[1,2,3,[4],5]"},
      {"nested[][]", "[1,2,3,4,5]"},
      {"by_name.*.n", "[1,2]"},
      {"by_name.*", R"([{"n":1},{"n":2},3])"},
      {"a.*", R"([{"c":7},[1,2,3]])"},
      {"by_name[*]", "null"},
      {"empty[*].x", "[]"},
      {"[0]", "null"},
      {"*.one.n", "[1]"},
      // filters
      {"jobs[?state=='running'].name", R"(["fit","eval"])"},
      {"jobs[?state==`running`].name", R"(["fit","eval"])"},
      {"jobs[?state==`\"running\"`].name", R"(["fit","eval"])"},
      {"jobs[?nodes>`1`].name", R"(["fit","tune"])"},
      {"jobs[?nodes>=`2` && state!='queued'].name", R"(["fit"])"},
      {"jobs[?nodes<`2` || state=='queued'].name", R"(["tune","eval"])"},
      {"jobs[?!node].name", R"(["eval"])"},
      {"jobs[?!node.ip].name", R"(["eval"])"},
      {"jobs[?contains(tags, 'x')].name", R"(["fit"])"},
      {"jobs[?starts_with(name, 'e')] | [0].nodes", "1"},
      {"jobs[?name=='none']", "[]"},
      {"jobs[?tags[?@=='z']].name", R"(["eval"])"},
      {"jobs[?(nodes == `8` || nodes == `1`) && state == 'running'].name", R"(["eval"])"},
      {"jobs[?name < 'x']", "[]"},
      {"numbers[?@ > `4`]", "[5,9]"},
      {"jobs[?nodes <= `1`].[name, nodes]", R"([["eval",1]])"},
      {"jobs[?tags == `[\"x\",\"y\"]`].name", R"(["fit"])"},
      // lists and objects
      {"jobs[].{n: name, ip: node.ip}",
       R"([{"n":"fit","ip":"10.0.0.1"},{"n":"tune","ip":"10.0.0.2"},{"n":"eval","ip":null}])"},
      {"jobs[*].[name, state]", R"([["fit","running"],["tune","queued"],["eval","running"]])"},
      {"{\"x y\": zero}", R"({"x y":0})"},
      {"[zero, a.b.c]", "[0,7]"},
      {"a.[b.c, list[0]]", "[7,1]"},
      {"a.{c: b.c}", R"({"c":7})"},
      {"nothing.[a]", "null"},
      // logic
      {"nothing || zero", "0"},
      {"blank || 'other'", R"("other")"},
      {"empty || no || nothing", "null"},
      {"zero && 'yes'", R"("yes")"},
      {"no && 'yes'", "false"},
      {"!no", "true"},
      {"!zero", "false"},
      {"!!word", "true"},
      {"`{\"a\":1,\"b\":2}` == `{\"b\":2,\"a\":1.0}`", "true"},
      {"zero == no", "false"},
      {"word > zero", "null"},
      {"a.b == `{\"c\":7}`", "true"},
      // literals
      {"'it\\'s'", R"("it's")"},
      {"`[1, {\"x\": null}]`", R"([1,{"x":null}])"},
      {"`\"a\\`b\"`", R"("a`b")"},
      {"'back\\slash'", R"("back\\slash")"},
      {"''", R"("")"},
      // functions
      {"length(jobs)", "3"},
      {"length(word)", "5"},
      {"length(a)", "2"},
      {"length(jobs[?state=='running'])", "2"},
      {"sort(words)", R"(["apple","fig","pear"])"},
      {"sort(numbers)", "[1.5,3,5,9]"},
      {"sort(empty)", "[]"},
      {"sort_by(jobs, &nodes)[*].name", R"(["eval","fit","tune"])"},
      {"sort_by(jobs, &name)[0].name", R"("eval")"},
      {"reverse(words)", R"(["fig","apple","pear"])"},
      {"reverse(word)", R"("lefpä")"},
      {"join(', ', words)", R"("pear, apple, fig")"},
      {"join('', empty)", R"("")"},
      {"keys(a)", R"(["b","list"])"},
      {"values(by_name)[2]", "3"},
      {"contains(words, 'fig')", "true"},
      {"contains(word, 'pf')", "true"},
      {"contains(numbers, 'fig')", "false"},
      {"starts_with(word, 'ä')", "true"},
      {"ends_with(word, 'el')", "true"},
      {"to_string(a.b)", R"("{\"c\":7}")"},
      {"to_string(word)", R"("äpfel")"},
      {"to_number('12')", "12"},
      {"to_number('1.5')", "1.5"},
      {"to_number(word)", "null"},
      {"to_number(zero)", "0"},
      {"type(zero)", R"("number")"},
      {"type(nothing)", R"("null")"},
      {"type(a)", R"("object")"},
      {"max(numbers)", "9"},
      {"min(words)", R"("apple")"},
      {"max(empty)", "null"},
      {"max_by(jobs, &nodes).name", R"("tune")"},
      {"min_by(jobs, &nodes).name", R"("eval")"},
      {"sum(jobs[].nodes)", "11"},
      {"sum(numbers)", "18.5"},
      {"sum(empty)", "0"},
      {"avg(a.list)", "2.0"},
      {"avg(empty)", "null"},
      {"map(&nodes, jobs)", "[2,8,1]"},
      {"map(&node.ip, jobs)", R"(["10.0.0.1","10.0.0.2",null])"},
      {"merge(a.b, `{\"d\":1}`, `{\"c\":2}`)", R"({"c":2,"d":1})"},
      {"not_null(nothing, absent, zero)", "0"},
      {"abs(`-3`)", "3"},
      {"abs(`-3.5`)", "3.5"},
      {"ceil(`1.2`)", "2"},
      {"floor(`-1.2`)", "-2"},
      {"to_array(zero)", "[0]"},
      {"to_array(words[:1])", R"(["pear"])"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.query);
    const Result<Query> query = Query::parse(row.query);
    ASSERT_TRUE(query) << query.error().what;
    const Result<std::string> result = query->apply(data);
    ASSERT_TRUE(result) << result.error().what;
    EXPECT_EQ(*result, row.result);
  }
}

TEST(Jmespath, PointsAtTheErrorInAQuery) {
  struct Row {
    const char* query;
    int character;
    const char* what;
  };
  const Row rows[] = {
      {"", 1, "it ends where an expression should be"},
      {"a.", 3, "it ends where a name, [ or { should be"},
      {"a..b", 3, "here should be a name"},
      {"a[", 3, "it ends where a number, : or * should be"},
      {"a[0", 4, "it ends where ] should be"},
      {"a[0 1]", 5, "here should be ]"},
      {"a[1:2:3:4]", 8, "here should be ]"},
      {"a[::0]", 6, "a slice cannot have steps of 0"},
      {"a[99999999999999999999]", 3, "99999999999999999999 is too large"},
      {"a]", 2, "here should be the end, or an operator"},
      {"[?a=='b'", 9, "it ends where ] should be"},
      {"[?a='b']", 4, "a single = compares nothing"},
      {"'abc", 1, "the text that begins here does not end"},
      {"\"abc", 1, "the name that begins here does not end"},
      {"a == `1", 6, "the literal that begins here does not end"},
      {"\"\\x\"", 1, "the quoted name is not written as JSON has it"},
      {"``", 1, "the literal is not JSON"},
      {"a #", 3, "no query has this character"},
      {"lenght(a)", 1, "there is no function lenght"},
      {"\"length\"(a)", 1, "a function's name is not quoted"},
      {"@(a)", 1, "this is no function"},
      {"{a}", 3, "here should be :"},
      {"{1: a}", 2, "here should be a name"},
      {"{a: b", 6, "it ends where } should be"},
      {"length(a", 9, "it ends where ) should be"},
      {"a b", 3, "here should be the end, or an operator"},
      {"a[*]b", 5, "here should be the end"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.query);
    const Result<Query> query = Query::parse(row.query);
    ASSERT_FALSE(query);
    const std::string begin =
        "the query is wrong at character " + std::to_string(row.character) + ": " + row.what;
    EXPECT_TRUE(query.error().what.starts_with(begin)) << query.error().what;
  }
}

TEST(Jmespath, RejectsWrongArgumentTypes) {
  struct Row {
    const char* query;
    const char* what;
  };
  const Row rows[] = {
      {"length(zero)", "length() takes a text or a list or an object as argument 1, not a number"},
      {"length()", "length() takes 1 argument, not 0"},
      {"length(a, a)", "length() takes 1 argument, not 2"},
      {"not_null()", "not_null() takes at least 1 argument, not 0"},
      {"sort_by(jobs, name)", "sort_by() takes an expression as argument 2: &name"},
      {"length(&a)", "length() does not take an expression as argument 1"},
      {"sort(`[1, \"a\"]`)", "sort() compares numbers with numbers or texts with texts, and met a text"},
      {"sort_by(jobs, &node)", "sort_by() compares numbers"},
      {"sum(words)", "sum() adds numbers, and met a text"},
      {"join(',', numbers)", "join() joins texts, and met a number"},
      {"keys(nothing)", "keys() takes an object as argument 1, not null"},
      {"&zero", "& stands only before"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.query);
    const Result<Query> query = Query::parse(row.query);
    ASSERT_TRUE(query) << query.error().what;
    const Result<std::string> result = query->apply(data);
    ASSERT_FALSE(result) << *result;
    EXPECT_NE(result.error().what.find(row.what), std::string::npos) << result.error().what;
  }
}

TEST(Jmespath, MarksThePosition) {
  const Result<Query> query = Query::parse("jobs[?state='x']");
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().what,
            "the query is wrong at character 12: a single = compares nothing\n"
            "jobs[?state='x']\n"
            "           ^");
  EXPECT_EQ(query.error().hint, "write ==");
}

TEST(Jmespath, IsBounded) {
  std::string deep(10'000, '('), chain = "a", doubled = "@", literal = "`" + std::string(1000, '[') + "`";
  for (int i = 0; i < 5000; ++i) chain += ".a";
  for (int i = 0; i < 60; ++i) doubled += "|[@,@]";
  EXPECT_FALSE(Query::parse(deep));
  EXPECT_FALSE(Query::parse(chain));
  EXPECT_FALSE(Query::parse(literal));
  EXPECT_FALSE(Query::parse(std::string(70'000, ' ') + "a"));
  const Result<Query> query = Query::parse(doubled);
  ASSERT_TRUE(query);
  const Result<std::string> result = query->apply("1");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("given up"), std::string::npos);
  EXPECT_FALSE(Query::parse("a")->apply(std::string(1000, '[') + std::string(1000, ']')));
  EXPECT_FALSE(Query::parse("a")->apply("{"));
}

}  // namespace
}  // namespace slipway::jmespath
