#include "devices/opencl/source.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weftio::devices::opencl {

namespace {

/// Whether a line is dropped from the text: an include of the library, whose text is already there, or a #pragma once.
bool is_dropped(std::string_view line)
{
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.starts_with("#pragma once") || line.starts_with("#include \"weftio/") ||
           line.starts_with("#include <weftio/");
}

void append_file(std::string& unit, std::string_view text, std::string_view file)
{
    unit += fmt::format("#line 1 \"{}\"\n", file);
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (!is_dropped(line))
            unit += line;
        unit += '\n'; // a dropped line stays as an empty one, to keep line numbers
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

} // namespace

std::string translation_unit(std::string_view kernel, std::string_view file, std::string_view before)
{
    std::string unit;
    if (kernel.find("#define WEFTIO_DEV_CHECKS") != std::string_view::npos) // which its header says before its includes
        unit += "#define WEFTIO_DEV_CHECKS\n";
    for (const embedded_header& header : device_headers())
        append_file(unit, header.text, header.file);
    unit += before;
    append_file(unit, kernel, file);
    return unit;
}

} // namespace weftio::devices::opencl
