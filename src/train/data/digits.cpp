#include "train/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"

namespace slipway::train {
namespace {

constexpr int side = 28;

struct Point {
  float x, y;
};
using Stroke = std::vector<Point>;

// Part of an ellipse as a chain of points; angles in turns, 0 to the right, growing downwards.
Stroke arc(Point centre, Point radius, float from, float to) {
  constexpr int pieces = 9;
  Stroke stroke;
  for (int i = 0; i <= pieces; ++i) {
    const float angle = 6.2831853F * (from + (to - from) * static_cast<float>(i) / pieces);
    stroke.push_back({centre.x + radius.x * std::cos(angle), centre.y + radius.y * std::sin(angle)});
  }
  return stroke;
}

// The digits on a square from -1 to 1, x to the right, y down.
const std::array<std::vector<Stroke>, 10>& glyphs() {
  static const std::array<std::vector<Stroke>, 10> all = {{
      {arc({0, 0}, {0.55F, 0.85F}, 0, 1)},
      {{{-0.3F, -0.5F}, {0.1F, -0.85F}, {0.1F, 0.85F}}},
      {arc({0, -0.4F}, {0.5F, 0.45F}, 0.5F, 1.05F), {{0.47F, -0.25F}, {-0.5F, 0.85F}, {0.55F, 0.85F}}},
      {arc({-0.05F, -0.43F}, {0.5F, 0.42F}, 0.55F, 1.25F),
       arc({-0.05F, 0.42F}, {0.55F, 0.43F}, 0.75F, 1.45F)},
      {{{0.25F, 0.85F}, {0.25F, -0.85F}, {-0.6F, 0.3F}, {0.6F, 0.3F}}},
      {{{0.5F, -0.85F}, {-0.4F, -0.85F}, {-0.45F, -0.1F}},
       arc({-0.05F, 0.33F}, {0.55F, 0.52F}, 0.62F, 1.42F)},
      {{{0.35F, -0.85F}, {-0.3F, -0.25F}, {-0.52F, 0.3F}}, arc({0, 0.38F}, {0.52F, 0.47F}, 0, 1)},
      {{{-0.55F, -0.8F}, {0.55F, -0.8F}, {-0.1F, 0.85F}}},
      {arc({0, -0.43F}, {0.42F, 0.42F}, 0, 1), arc({0, 0.43F}, {0.52F, 0.43F}, 0, 1)},
      {arc({0.02F, -0.38F}, {0.5F, 0.46F}, 0, 1), {{0.52F, -0.35F}, {0.4F, 0.3F}, {0.05F, 0.85F}}},
  }};
  return all;
}

float spread(Random& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random.unit());
}

// Darkens the pixels near the line from a to b; ink never lightens.
void draw_line(std::uint8_t* pixels, Point a, Point b, float pen) {
  const float reach = pen + 1;
  const int left = std::max(0, static_cast<int>(std::min(a.x, b.x) - reach));
  const int right = std::min(side - 1, static_cast<int>(std::max(a.x, b.x) + reach));
  const int top = std::max(0, static_cast<int>(std::min(a.y, b.y) - reach));
  const int bottom = std::min(side - 1, static_cast<int>(std::max(a.y, b.y) + reach));
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length2 = std::max(dx * dx + dy * dy, 1e-6F);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      const float px = static_cast<float>(x) - a.x, py = static_cast<float>(y) - a.y;
      const float along = std::clamp((px * dx + py * dy) / length2, 0.0F, 1.0F);
      const float away = std::hypot(px - along * dx, py - along * dy);
      const float ink = std::clamp(pen + 0.5F - away, 0.0F, 1.0F);
      std::uint8_t& pixel = pixels[y * side + x];
      pixel = std::max(pixel, static_cast<std::uint8_t>(ink * 255));
    }
}

void draw_digit(std::uint8_t* pixels, int digit, Random& random) {
  const float turn = spread(random, -0.28F, 0.28F);
  const float shear = spread(random, -0.25F, 0.25F);
  const float scale_x = spread(random, 7.0F, 10.5F);
  const float scale_y = spread(random, 8.0F, 10.8F);
  const Point middle{13.5F + spread(random, -2.2F, 2.2F), 13.5F + spread(random, -2.0F, 2.0F)};
  const float pen = spread(random, 0.6F, 1.5F);
  const float c = std::cos(turn), s = std::sin(turn);
  const auto place = [&](Point p) {
    const float x = (p.x + shear * p.y) * scale_x, y = p.y * scale_y;
    return Point{middle.x + c * x - s * y, middle.y + s * x + c * y};
  };
  for (const Stroke& stroke : glyphs()[static_cast<std::size_t>(digit)])
    for (std::size_t i = 1; i < stroke.size(); ++i)
      draw_line(pixels, place(stroke[i - 1]), place(stroke[i]), pen);
  for (int speck = 0; speck < 12; ++speck)
    pixels[random.between(0, side * side - 1)] = static_cast<std::uint8_t>(random.between(0, 160));
}

struct Drawn {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

Dataset draw(std::size_t count, Random random) {
  const auto drawn = std::make_shared<Drawn>();
  drawn->pixels.resize(count * side * side);
  drawn->labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>(random.between(0, 9));
    drawn->labels[i] = static_cast<std::uint8_t>(digit);
    draw_digit(drawn->pixels.data() + i * side * side, digit, random);
  }
  return Dataset({1, side, side}, 10,
                 {{drawn->pixels.data(), side * side, drawn->labels.data(), 1, count, drawn}});
}

}  // namespace

DataPair draw_digits(std::uint64_t seed, DigitCounts counts) {
  return {draw(counts.train, Random(seed * 2 + 1)), draw(counts.test, Random(seed * 2 + 2)), "synthetic",
          "drawn by the program"};
}

}  // namespace slipway::train
