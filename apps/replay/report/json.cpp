#include "report/json.hpp"

#include <cmath>

#include "utf8.hpp"

namespace weftio::replay {

namespace {

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (std::size_t at = 0; at < text.size();) {
        std::size_t bytes = chart::utf8_bytes(text, at);
        auto byte = static_cast<unsigned char>(text[at]);
        if (byte == '"' || byte == '\\')
            out += fmt::format("\\{}", text[at]);
        else if (bytes == 0)
            out += "\\ufffd";
        else if (byte < 0x20)
            out += fmt::format("\\u{:04x}", byte);
        else
            out += text.substr(at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    return out + "\"";
}

} // namespace

void json_writer::value(std::string_view name, std::string_view text)
{
    put(name, quoted(text));
}

/// Writes every significant digit; JSON has no infinity.
void json_writer::value(std::string_view name, double number)
{
    put(name, std::isfinite(number) ? fmt::format("{}", number) : "null");
}

void json_writer::put(std::string_view name, std::string_view value)
{
    start(name);
    text_ += value;
}

void json_writer::start(std::string_view name)
{
    if (!first_)
        text_ += ',';
    if (depth_ > 0)
        line();
    first_ = false;
    if (!name.empty())
        text_ += quoted(name) + ": ";
}

void json_writer::open(std::string_view name, char bracket)
{
    start(name);
    text_ += bracket;
    ++depth_;
    first_ = true;
}

void json_writer::close(char bracket)
{
    --depth_;
    if (!first_)
        line();
    text_ += bracket;
    first_ = false;
    if (depth_ == 0)
        text_ += '\n';
}

void json_writer::line()
{
    text_ += '\n';
    text_.append(std::size_t{depth_} * 2, ' ');
}

} // namespace weftio::replay
