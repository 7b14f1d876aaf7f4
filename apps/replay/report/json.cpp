#include "report/json.hpp"

namespace weftio::replay {

namespace {

/// Length of the UTF-8 sequence at `at`, 0 when there is none: file names may be any bytes.
std::size_t sequence_bytes(std::string_view text, std::size_t at)
{
    auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
    auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0 && follows(1))
        return 2;
    bool three = first >= 0xe0 && first < 0xf0 && follows(1) && follows(2);
    if (three && !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) >= 0xa0))
        return 3;
    bool four = first >= 0xf0 && first < 0xf5 && follows(1) && follows(2) && follows(3);
    return four && !(first == 0xf0 && byte(1) < 0x90) && !(first == 0xf4 && byte(1) >= 0x90) ? 4 : 0;
}

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (std::size_t at = 0; at < text.size();) {
        std::size_t bytes = sequence_bytes(text, at);
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
