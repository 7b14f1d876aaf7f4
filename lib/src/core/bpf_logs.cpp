#include "core/bpf_logs.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "core/log.hpp"

namespace weftio::core {

namespace {

// Declared as in libbpf.h and libxdp.h, whose levels are enumerations.
using print_function = int (*)(int level, const char* format, std::va_list arguments);
using set_print = print_function (*)(print_function print);

bool says_error(std::string_view line)
{
    return line.find("rror") != line.npos || line.find("ERROR") != line.npos;
}

int print(int, const char* format, std::va_list arguments) noexcept
try {
    char text[4096];
    int bytes = std::vsnprintf(text, sizeof text, format, arguments);
    std::string_view rest = text;
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (!line.empty())
            log(says_error(line) ? log_level::warning : log_level::debug, line);
    }
    return bytes;
} catch (...) { // libbpf cannot handle an exception of the sink
    return 0;
}

/// Looks the function up in the loaded library: the driver's plug-in has loaded it without making its symbols global.
void redirect(const char* library, const char* function)
{
    void* loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (!loaded)
        return;
    if (auto set = reinterpret_cast<set_print>(dlsym(loaded, function)))
        set([](int level, const char* format, std::va_list arguments) { return print(level, format, arguments); });
    dlclose(loaded);
}

} // namespace

void redirect_bpf_logs()
{
    redirect("libbpf.so.1", "libbpf_set_print");
    redirect("libxdp.so.1", "libxdp_set_print");
}

} // namespace weftio::core
