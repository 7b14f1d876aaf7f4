#include "core/program.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fmt/format.h>
#include <rte_eal.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "weftio/error.hpp"

namespace weftio::core {

std::string file_prefix()
{
    constexpr std::string_view taken = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    std::string name(program_invocation_short_name);
    name.resize(std::min<std::size_t>(name.size(), 32));
    for (char& letter : name)
        if (taken.find(letter) == std::string_view::npos)
            letter = '_';
    return name.empty() || name.front() == '.' ? "weftio" + name : name;
}

std::string eal_path()
{
    // Not rte_eal_init, which meson-compat/doca-2.10 defines too.
    Dl_info eal{};
    if (dladdr(reinterpret_cast<void*>(&rte_eal_process_type), &eal) == 0 || !eal.dli_fname)
        return {};
    std::error_code none;
    return std::filesystem::absolute(eal.dli_fname, none).string();
}

void load_drivers_beside_eal()
{
    std::error_code none;
    const auto folder = std::filesystem::path(eal_path()).parent_path() / "dpdk-pmds";
    if (!std::filesystem::is_directory(folder, none))
        return;
    for (const auto& driver : std::filesystem::directory_iterator(folder, none))
        if (!dlopen(driver.path().c_str(), RTLD_NOW))
            throw error(errc::device_error, fmt::format("weftio: DPDK driver {}: {}; unpack the whole bundle again",
                                                        driver.path().string(), dlerror()));
}

} // namespace weftio::core
