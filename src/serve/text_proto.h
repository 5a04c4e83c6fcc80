#pragma once
// Protobuf's text format without a schema: fields in their order, each with a scalar or a message. Both
// quotes, # comments, an optional `:` before `{` or `<`, optional `,` and `;` between fields, lists in
// brackets. Pure.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::serve {

struct TextField;

struct TextMessage {
  std::vector<TextField> fields;
};

struct TextField {
  std::string name;
  int line = 0;
  bool is_message = false;
  bool is_string = false;
  std::string scalar;   // a string's bytes, or the word or number as written
  TextMessage message;  // where is_message
};

// `name` is the file, for messages.
Result<TextMessage> parse_text_proto(std::string_view text, const std::string& name);

// Reads the fields of a message by name; what it does not know is an error that names the nearest known one.
class TextReader {
 public:
  TextReader(const TextMessage& message, std::string where, std::string file)
      : message_(message), where_(std::move(where)), file_(std::move(file)) {}

  Result<void> only(std::initializer_list<const char*> known) const;
  std::vector<const TextField*> all(std::string_view name) const;
  const TextField* last(std::string_view name) const;  // as protobuf: the last of several counts
  Result<void> read(std::string_view name, std::string& to) const;
  Result<void> read(std::string_view name, std::int64_t& to) const;
  Result<void> read(std::string_view name, bool& to) const;
  // A message wrapped around one value, as in `max_batch_size { value: 4 }`; the bare value is taken as well.
  Result<void> read_wrapped(std::string_view name, std::int64_t& to) const;
  Result<std::vector<std::int64_t>> integers(std::string_view name) const;
  tl::unexpected<Error> problem(const TextField& field, std::string_view why) const;

 private:
  const TextMessage& message_;
  std::string where_, file_;
};

}  // namespace slipway::serve
