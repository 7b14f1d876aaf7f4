#include "environment.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "checks.hpp"
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
        throw refusal(own_failure, fmt::format("the engine's library {} does not exist; build or install Weftio again",
                                               path.string()));
}

/// A variable that stands for an option that is not given.
std::string standing_for(const std::string& option, const char* variable)
{
    const char* const value = std::getenv(variable);
    return option.empty() && value != nullptr ? value : "";
}

} // namespace

void check_environment(const command& wanted)
{
    struct {
        std::string option;
        const char* variable;
        void (*check)(const std::string& name, const std::string& value);
    } const all[] = {{wanted.wire, verbs::wire_variable, check_wire},
                     {wanted.address, verbs::address_variable, check_address},
                     {wanted.devices, verbs::devices_variable, check_devices},
                     {wanted.dump, verbs::dump_variable, check_dump},
                     {wanted.loss, verbs::loss_variable, check_loss},
                     {wanted.stale, verbs::stale_variable, check_stale},
                     {{}, verbs::doorbell_variable, check_doorbell_bytes}};
    for (const auto& each : all)
        if (const std::string value = standing_for(each.option, each.variable); !value.empty())
            each.check(each.variable, value);
    if (!wanted.loss.empty() && wanted.wire.empty() && !standing_for(wanted.port, verbs::port_variable).empty())
        throw refusal(own_failure, fmt::format("--loss and {}: only a wire in memory can lose frames on purpose",
                                               verbs::port_variable));
}

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
                          fmt::format("{}: a path with a space or a colon cannot be preloaded; move Weftio to another "
                                      "folder, or install it into one: make install PREFIX=...",
                                      library));
        check_engine(folder);
        return library;
    }
    throw refusal(own_failure, fmt::format("{} does not exist (searched {}); build all of Weftio, or install it again",
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
    set(verbs::stale_variable, wanted.stale);
}

} // namespace weftio::run
