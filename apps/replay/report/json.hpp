// A writer of JSON (RFC 8259).
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace weftio::replay {

/// Appends values to a text, indented by two. The caller nests the calls correctly; nothing checks it.
class json_writer {
 public:
    void begin_object(std::string_view name = {}) { open(name, '{'); }
    void end_object() { close('}'); }
    void begin_array(std::string_view name = {}) { open(name, '['); }
    void end_array() { close(']'); }

    void value(std::string_view name, std::string_view text);
    void value(std::string_view name, const char* text) { value(name, std::string_view(text)); }
    void value(std::string_view name, bool truth) { put(name, truth ? "true" : "false"); }
    void value(std::string_view name, double number);
    template <std::integral Number>
    void value(std::string_view name, Number number)
    {
        put(name, fmt::format("{}", number));
    }
    void null(std::string_view name) { put(name, "null"); }

    const std::string& text() const noexcept { return text_; }

 private:
    void put(std::string_view name, std::string_view value);
    void start(std::string_view name);
    void open(std::string_view name, char bracket);
    void close(char bracket);
    void line();

    std::string text_;
    unsigned depth_ = 0;
    bool first_ = true;
};

} // namespace weftio::replay
