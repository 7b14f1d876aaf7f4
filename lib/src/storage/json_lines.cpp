#include "storage/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

constexpr std::size_t deepest = 32;

/// Returns the position behind the string, comment or character that begins at `at`.
std::size_t end_of_token(std::string_view text, std::size_t at)
{
    if (text[at] == '"') {
        for (std::size_t to = at + 1; to < text.size(); ++to)
            if (text[to] == '\\')
                ++to;
            else if (text[to] == '"')
                return to + 1;
        return text.size();
    }
    if (text.substr(at, 2) == "//")
        return std::min(text.find('\n', at), text.size());
    if (text.substr(at, 2) == "/*") {
        const std::size_t end = text.find("*/", at + 2);
        return end == std::string_view::npos ? text.size() : end + 2;
    }
    return at + 1;
}

/// Replaces comments, and commas behind the last item, by spaces. Lines stay where they are.
std::string without_comments(std::string_view text)
{
    std::string plain(text);
    std::size_t comma = std::string::npos; // the last token, if it is a comma
    for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
        end = end_of_token(text, at);
        if (text[at] == '/' && end > at + 1)
            std::replace_if(
                plain.begin() + static_cast<std::ptrdiff_t>(at), plain.begin() + static_cast<std::ptrdiff_t>(end),
                [](char c) { return c != '\n'; }, ' ');
        else if (text[at] == ',')
            comma = at;
        else if (std::string_view(" \t\r\n").find(text[at]) == std::string_view::npos) {
            if (comma != std::string::npos && (text[at] == '}' || text[at] == ']'))
                plain[comma] = ' ';
            comma = std::string::npos;
        }
    }
    return plain;
}

/// Characters of a text; counts the lines that the parser has passed.
class counting_iterator {
 public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    counting_iterator(const char* at, unsigned* line) : at_(at), line_(line) {}
    reference operator*() const { return *at_; }
    counting_iterator& operator++()
    {
        if (*at_++ == '\n')
            ++*line_;
        return *this;
    }
    counting_iterator operator++(int)
    {
        const counting_iterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const counting_iterator& other) const { return at_ == other.at_; }
    bool operator!=(const counting_iterator& other) const { return at_ != other.at_; }

 private:
    const char* at_;
    unsigned* line_;
};

/// Receives the parser's events and builds the tree.
class builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
    explicit builder(const unsigned& line) : line_(line) {}

    bool null() override { return put({}); }
    bool boolean(bool value) override
    {
        json_value made{.what = json_value::kind::boolean};
        made.boolean = value;
        return put(std::move(made));
    }
    bool number_integer(std::int64_t value) override
    {
        json_value made{.what = json_value::kind::integer};
        made.integer = value;
        return put(std::move(made));
    }
    bool number_unsigned(std::uint64_t value) override
    {
        if (value > INT64_MAX)
            return huge(std::to_string(value));
        return number_integer(static_cast<std::int64_t>(value));
    }
    bool number_float(double value, const std::string& digits) override
    {
        if (digits.find_first_of(".eE") == std::string::npos)
            return huge(digits);
        json_value made{.what = json_value::kind::fraction};
        made.fraction = value;
        return put(std::move(made));
    }
    bool string(std::string& value) override
    {
        json_value made{.what = json_value::kind::text};
        made.text = std::move(value);
        return put(std::move(made));
    }
    bool binary(binary_t&) override { return false; } // JSON has none
    bool start_object(std::size_t) override { return open(json_value::kind::object); }
    bool start_array(std::size_t) override { return open(json_value::kind::list); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override
    {
        auto& members = open_.back()->members;
        const auto same = std::find_if(members.begin(), members.end(), [&](auto& m) { return m.first == name; });
        if (same != members.end())
            return fail(fmt::format("\"{}\" is defined twice, first in line {}; remove one", name, same->second.line));
        members.emplace_back(std::move(name), json_value{.line = line_});
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override
    {
        std::string_view why = error.what();
        if (const std::size_t at = why.find("column "); at != std::string_view::npos)
            if (const std::size_t colon = why.find(": ", at); colon != std::string_view::npos)
                why.remove_prefix(colon + 2);
        return fail(std::string(why));
    }

    json_value take() { return std::move(root_); }
    const std::string& failure() const { return failure_; }

 private:
    /// A whole number that 64 bits with a sign do not hold.
    bool huge(std::string digits)
    {
        json_value made{.what = json_value::kind::huge};
        made.text = std::move(digits);
        return put(std::move(made));
    }
    bool fail(std::string why)
    {
        failure_ = std::move(why);
        return false;
    }
    /// Puts a value where the parser is. Returns nothing at the end of the pointers' life: items may move.
    json_value& place(json_value value)
    {
        if (open_.empty())
            return root_ = std::move(value);
        json_value& owner = *open_.back();
        if (owner.what == json_value::kind::list) {
            value.line = line_;
            return owner.items.emplace_back(std::move(value));
        }
        value.line = owner.members.back().second.line;
        return owner.members.back().second = std::move(value);
    }
    bool put(json_value value)
    {
        place(std::move(value));
        return true;
    }
    bool open(json_value::kind what)
    {
        if (open_.size() == deepest)
            return fail(fmt::format("nested deeper than {}", deepest));
        json_value made{.what = what, .line = line_};
        open_.push_back(&place(std::move(made)));
        return true;
    }
    bool close()
    {
        open_.pop_back();
        return true;
    }

    const unsigned& line_;
    json_value root_;
    std::vector<json_value*> open_; ///< an open value does not move: only its innermost owner grows
    std::string failure_;
};

} // namespace

std::string_view name_of(json_value::kind what) noexcept
{
    switch (what) {
        case json_value::kind::null: return "null";
        case json_value::kind::boolean: return "true or false";
        case json_value::kind::integer: return "a whole number";
        case json_value::kind::huge: return "a whole number beyond 64 bits";
        case json_value::kind::fraction: return "a number with a fraction";
        case json_value::kind::text: return "a text";
        case json_value::kind::list: return "a list";
        case json_value::kind::object: return "a section";
    }
    return "nothing";
}

json_value parse_json(std::string_view text, std::string_view name)
{
    const std::string plain = without_comments(text);
    unsigned line = 1;
    builder made(line);
    const counting_iterator first(plain.data(), &line), last(plain.data() + plain.size(), &line);
    if (!nlohmann::json::sax_parse(first, last, &made))
        throw error(errc::invalid_argument, fmt::format("weftio: {}:{}: not JSON: {}", name, line, made.failure()));
    return made.take();
}

} // namespace weftio::storage
