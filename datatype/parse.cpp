// The parser of the little language: recursive descent, one function per kind of token.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <limits>

#include "datatype/spec.hpp"

namespace weft::datatype {

namespace {

/// Deep enough for anybody, shallow enough for the stack.
constexpr int max_nesting = 200;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Spec whole() {
    Spec spec = type();
    skip_space();
    if (at_ != text_.size()) fail("text after the datatype");
    return spec;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw SyntaxError(at_, why); }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  [[nodiscard]] std::string here() const {
    return at_ < text_.size() ? "found '" + std::string(1, text_[at_]) + "'" : "the text ends here";
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* after) {
    if (!accept(c)) fail("expected '" + std::string(1, c) + "' after " + after + ", " + here());
  }

  /// A name in lower case; `start` is where it begins.
  std::string name(std::size_t& start) {
    skip_space();
    start = at_;
    std::string word;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_++])));
    }
    return word;
  }

  std::int64_t number() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("the number does not fit in 64 bits");
    if (error != std::errc{}) fail("expected a number, " + here());
    at_ += static_cast<std::size_t>(end - first);
    int shift = 0;
    if (at_ < text_.size()) {
      const std::size_t suffix = std::string_view("KMG").find(text_[at_]);
      if (suffix != std::string_view::npos) {
        shift = 10 * (static_cast<int>(suffix) + 1);
        ++at_;
      }
    }
    const std::int64_t limit = std::numeric_limits<std::int64_t>::max() >> shift;
    if (value > limit || value < -limit) {
      at_ = start;
      fail("the number does not fit in 64 bits");
    }
    return value * (std::int64_t{1} << shift);
  }

  std::int64_t number_then_comma() {
    const std::int64_t value = number();
    expect(',', "a number");
    return value;
  }

  /// `[a, b, ...]`, possibly empty.
  template <typename T>
  std::vector<T> list(const std::function<T()>& element) {
    if (!accept('[')) fail("expected a list in '[' and ']', " + here());
    std::vector<T> values;
    if (accept(']')) return values;
    do values.push_back(element());
    while (accept(','));
    expect(']', "the list's elements");
    return values;
  }

  Spec::List numbers() {
    return list<std::int64_t>([this] { return number(); });
  }

  Spec::List numbers_then_comma() {
    Spec::List values = numbers();
    expect(',', "a list");
    return values;
  }

  void same_length(std::size_t have, std::size_t need, std::size_t where, const char* what) {
    if (have == need) return;
    at_ = where;
    fail(std::string(what) + " needs lists of one length, here are " + std::to_string(need) +
         " and " + std::to_string(have));
  }

  Order order_then_comma() {
    std::size_t start = 0;
    const std::string word = name(start);
    if (word != "c" && word != "f" && word != "fortran") {
      at_ = start;
      fail("expected the order, C or F, " + here());
    }
    expect(',', "the order");
    return word == "c" ? Order::c : Order::fortran;
  }

  Distribution distribution() {
    std::size_t start = 0;
    const std::string word = name(start);
    if (word == "none") return Distribution::none;
    if (word == "block") return Distribution::block;
    if (word == "cyclic") return Distribution::cyclic;
    at_ = start;
    fail("expected a distribution: none, block or cyclic");
  }

  std::int64_t distribution_argument() {
    skip_space();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) {
      std::size_t start = 0;
      if (name(start) == "default") return default_distribution_argument;
      at_ = start;
      fail("expected a number or 'default'");
    }
    return number();
  }

  void grid(Spec& spec) {
    const std::size_t start = at_;
    const Spec::List sizes = numbers_then_comma();
    const auto distributions = list<Distribution>([this] { return distribution(); });
    expect(',', "a list");
    const auto arguments = list<std::int64_t>([this] { return distribution_argument(); });
    expect(',', "a list");
    const Spec::List processes = numbers_then_comma();
    same_length(distributions.size(), sizes.size(), start, "darray");
    same_length(arguments.size(), sizes.size(), start, "darray");
    same_length(processes.size(), sizes.size(), start, "darray");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      spec.grid.push_back({sizes[i], distributions[i], arguments[i], processes[i]});
    }
  }

  Spec type() {
    if (++nesting_ > max_nesting) fail("datatypes nested too deeply");
    std::size_t start = 0;
    std::string word = name(start);
    if (word.empty()) fail("expected a datatype, " + here());
    for (const std::string_view prefix : {"mpi_", "type_", "create_"}) {
      if (word.starts_with(prefix)) word.erase(0, prefix.size());
    }
    Spec spec = accept('(') ? constructed(word, start) : primitive(word, start);
    --nesting_;
    return spec;
  }

  Spec primitive(const std::string& word, std::size_t start) {
    const auto all = primitives();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Primitive& p) { return p.name == word; });
    if (found != all.end()) {
      Spec spec;
      spec.primitive = *found;
      return spec;
    }
    at_ = start;
    std::string known;
    for (const Primitive& p : all) known += (known.empty() ? "" : ", ") + std::string(p.name);
    fail("unknown datatype '" + word + "' (known: " + known + ", and constructors with '(')");
  }

  /// The arguments of a constructor, up to and with the closing parenthesis.
  Spec constructed(const std::string& word, std::size_t start) {
    using Kind = Spec::Kind;
    Spec spec;
    const std::size_t arguments = at_;
    bool type_last = true;
    if (word == "contiguous") {
      spec.kind = Kind::contiguous;
      spec.count = number_then_comma();
    } else if (word == "vector" || word == "hvector") {
      spec.kind = word == "vector" ? Kind::vector : Kind::hvector;
      spec.count = number_then_comma();
      spec.blocklength = number_then_comma();
      spec.stride = number_then_comma();
    } else if (word == "indexed" || word == "hindexed") {
      spec.kind = word == "indexed" ? Kind::indexed : Kind::hindexed;
      spec.blocklengths = numbers_then_comma();
      spec.displacements = numbers_then_comma();
      same_length(spec.displacements.size(), spec.blocklengths.size(), arguments, "this datatype");
    } else if (word == "indexed_block" || word == "hindexed_block") {
      spec.kind = word == "indexed_block" ? Kind::indexed_block : Kind::hindexed_block;
      spec.blocklength = number_then_comma();
      spec.displacements = numbers_then_comma();
    } else if (word == "struct") {
      spec.kind = Kind::structure;
      spec.blocklengths = numbers_then_comma();
      spec.displacements = numbers_then_comma();
      spec.types = list<Spec>([this] { return type(); });
      same_length(spec.displacements.size(), spec.blocklengths.size(), arguments, "struct");
      same_length(spec.types.size(), spec.blocklengths.size(), arguments, "struct");
      type_last = false;
    } else if (word == "subarray") {
      spec.kind = Kind::subarray;
      spec.sizes = numbers_then_comma();
      spec.blocklengths = numbers_then_comma();
      spec.displacements = numbers_then_comma();
      same_length(spec.blocklengths.size(), spec.sizes.size(), arguments, "subarray");
      same_length(spec.displacements.size(), spec.sizes.size(), arguments, "subarray");
      spec.order = order_then_comma();
    } else if (word == "darray") {
      spec.kind = Kind::darray;
      spec.count = number_then_comma();
      grid(spec);
      spec.order = order_then_comma();
    } else if (word == "resized") {
      spec.kind = Kind::resized;
      spec.types.push_back(type());
      expect(',', "the datatype");
      spec.blocklength = number_then_comma();
      spec.stride = number();
      type_last = false;
    } else if (word == "dup") {
      spec.kind = Kind::dup;
    } else {
      at_ = start;
      fail("unknown constructor '" + word +
           "' (known: contiguous, vector, hvector, indexed, hindexed, indexed_block, "
           "hindexed_block, struct, subarray, darray, resized, dup)");
    }
    if (type_last) spec.types.push_back(type());
    expect(')', "the arguments");
    return spec;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

Spec parse(std::string_view text) {
  return Parser(text).whole();
}

}  // namespace weft::datatype
