#include "environment.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "program.hpp"
#include "verbs/seam.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

constexpr const char *preloaded = "libweftio-verbs-preload.so", *engine = "libweftio-verbs.so";

void set(const char* variable, const std::string& value)
{
    if (!value.empty())
        ::setenv(variable, value.c_str(), 1);
}

bool is_file(const fs::path& path)
{
    std::error_code error;
    return fs::is_regular_file(path, error);
}

void check_engine(const fs::path& folder)
{
    const char* const named = std::getenv(verbs::engine_variable);
    const fs::path path = named != nullptr && *named != 0 ? fs::path(named) : folder / engine;
    if (!is_file(path))
        throw refusal(own_failure, fmt::format("the engine's library {} is not there; build or install Weftio again",
                                               path.string()));
}

} // namespace

std::string find_library(const fs::path& own_folder)
{
    std::string looked;
    for (const char* place : {"../lib/verbs", WEFTIO_RUN_LIBRARIES, "../lib/weftio", "../lib64/weftio"}) {
        const fs::path folder = (own_folder / place).lexically_normal();
        if (!is_file(folder / preloaded)) {
            if (looked.find(folder.string()) == looked.npos)
                looked += (looked.empty() ? "" : ", ") + folder.string();
            continue;
        }
        std::string library = (folder / preloaded).string();
        if (library.find_first_of(": ") != library.npos)
            throw refusal(own_failure,
                          fmt::format("{}: a path with a space or a colon cannot be preloaded; move Weftio "
                                      "to a folder without",
                                      library));
        check_engine(folder);
        return library;
    }
    throw refusal(own_failure, fmt::format("{} is not there (looked in {}); build all of Weftio, or install it again",
                                           preloaded, looked));
}

std::string preload_with(const std::string& library, std::string_view there)
{
    std::string all = library;
    for (std::size_t at = 0; at < there.size();) {
        const std::size_t end = std::min(there.find_first_of(": ", at), there.size());
        if (const auto other = there.substr(at, end - at); !other.empty() && other != library)
            all.append(":").append(other);
        at = end + 1;
    }
    return all;
}

void set_environment(const command& wanted, const std::string& library)
{
    const char* const there = std::getenv("LD_PRELOAD");
    set("LD_PRELOAD", preload_with(library, there == nullptr ? "" : there));
    if (!wanted.wire.empty())
        ::unsetenv(verbs::port_variable);
    if (!wanted.port.empty())
        ::unsetenv(verbs::wire_variable);
    set(verbs::wire_variable, wanted.wire);
    set(verbs::port_variable, wanted.port);
    set(verbs::address_variable, wanted.address);
    set(verbs::devices_variable, wanted.devices);
    set(verbs::dump_variable, wanted.dump);
    set(verbs::loss_variable, wanted.loss);
}

} // namespace weftio::run
