#include "nic/engine_options.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::nic {

void refuse_option(std::string_view who, std::string_view option, long long value, std::string_view hint)
{
    throw error(errc::invalid_argument, fmt::format("weftio: {}: {} is {}; {}", who, option, value, hint));
}

void require_one_of(std::string_view who, std::string_view option, int value, int last, std::string_view names)
{
    if (value < 0 || value > last)
        refuse_option(who, option, value, fmt::format("set one of {}", names));
}

void require_engine_options(std::string_view who, int core, engine_mode mode, idle_policy idle)
{
    if (core < -1)
        refuse_option(who, "core", core, "set a core, counted from 0, or -1 for any");
    require_one_of(who, "mode", mode, engine_mode::inline_worker, "engine_mode::thread, engine_mode::inline_worker");
    require_one_of(who, "idle", idle, idle_policy::adaptive,
                   "idle_policy::sleep, idle_policy::yield, idle_policy::busy, idle_policy::adaptive");
}

} // namespace weftio::nic
