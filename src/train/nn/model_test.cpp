#include "train/nn/model.h"

#include <gtest/gtest.h>

namespace slipway::train {
namespace {

TEST(Model, ReadsAFileAndWritesItBack) {
  const auto model = parse_model(R"(
name: small
input: [1, 28, 28]
layers:
  - conv: {filters: 16, kernel: 5, padding: same}
  - relu
  - max_pool: 2
  - batch_norm
  - avg_pool: {kernel: 3, stride: 2}
  - dropout: 0.25
  - dense: 10
)",
                                 "models/small.yaml");
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(model->layers.size(), 7U);
  EXPECT_EQ(model->layers[0].padding, 2);
  EXPECT_EQ(model->layers[2].stride, 2);
  EXPECT_EQ(parse_model(format_model(*model), "again").value(), *model);
  const auto shapes = check_model(*model, 10).value();
  EXPECT_EQ(to_string(shapes[4]), "16x6x6");
}

TEST(Model, RejectsInvalidModelsWithAReason) {
  struct Row {
    const char* rule;
    const char* text;
    const char* message;
    const char* hint;
  };
  const Row rows[] = {
      {"a misspelt layer", "{input: [1,8,8], layers: [{dence: 10}]}", "dence is not known",
       "did you mean dense"},
      {"a misspelt key", "{inputs: [1,8,8]}", "the key inputs is not known", "did you mean input"},
      {"no filters", "{layers: [conv]}", "layer 1 needs filters and kernel", "conv: {filters"},
      {"no number", "{layers: [{dense: many}]}", "layer 1: the number of outputs is not a whole number", ""},
      {"even kernel", "{layers: [{conv: {filters: 2, kernel: 4, padding: same}}]}", "needs an odd kernel",
       ""},
      {"not YAML", "layers: [", "not valid YAML: line", ""},
      {"a list", "[1, 2]", "not a map", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto model = parse_model(row.text, "net.yaml");
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().what.find("net.yaml"), std::string::npos) << model.error().what;
    EXPECT_NE(model.error().what.find(row.message), std::string::npos) << model.error().what;
    EXPECT_NE(model.error().hint.find(row.hint), std::string::npos) << model.error().hint;
  }
}

TEST(Model, NamesTheLayerThatDoesNotFitWithItsShape) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"{name: n, input: [1,4,4], layers: [{max_pool: 2}, {max_pool: 2}, {max_pool: 2}, {dense: 10}]}",
       "layer 3 of n (max_pool 2x2) does not fit: its input is 1, smaller than its 2x2 window"},
      {"{name: n, input: [3,8,8], layers: [{conv: {filters: 4, kernel: 9}}, {dense: 10}]}",
       "layer 1 of n (conv 4 9x9) does not fit: its input is 3x8x8, smaller than its 9x9 window"},
      {"{name: n, input: [1,8,8], layers: [{dense: 12}]}", "gives 12; the data has 10 classes"},
      {"{name: n, input: [1,8,8], layers: [{dense: 10}, relu]}", "the last layer of n is relu"},
      {"{name: n, input: [1,8,8], layers: [{dense: 0}]}", "0 outputs"},
      {"{name: n, input: [1,8,8], layers: [{dropout: 1.5}, {dense: 10}]}", "1.5 cannot be dropped"},
      {"{name: n, input: [1,8,8], layers: []}", "has no layers"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto fits = check_model(parse_model(row.text, "net.yaml").value(), 10);
    ASSERT_FALSE(fits);
    EXPECT_NE(fits.error().what.find(row.message), std::string::npos) << fits.error().what;
    EXPECT_FALSE(fits.error().hint.empty());
  }
}

TEST(Model, BuiltInModelsFit) {
  for (const std::string& name : built_in_names()) {
    SCOPED_TRACE(name);
    const Shape input = name == "vgg" ? Shape{3, 32, 32} : Shape{1, 28, 28};
    const auto model = built_in_model(name, {.input = input});
    ASSERT_TRUE(model);
    EXPECT_TRUE(check_model(*model, 10));
    EXPECT_EQ(parse_model(format_model(*model), name).value(), *model);
  }
  const auto wrong = built_in_model("lennet", {});
  EXPECT_EQ(wrong.error().hint, "did you mean lenet?");
}

}  // namespace
}  // namespace slipway::train
