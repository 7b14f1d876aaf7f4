// Checks of the options that every engine has: the engine of a port and the DMA engine.
#pragma once

#include <string_view>

#include "weftio/options.hpp"

namespace weftio::nic {

/// Reports an option with a bad value.
/// @param who  the object whose option it is, for the error text: "port net_null0"
/// @throws weftio::error errc::invalid_argument always: "weftio: WHO: OPTION is VALUE; HINT"
[[noreturn]] void refuse_option(std::string_view who, std::string_view option, long long value, std::string_view hint);

/// Refuses a value outside the enumeration 0 .. `last`. @param names  names of the valid values, for the error text
void require_one_of(std::string_view who, std::string_view option, int value, int last, std::string_view names);

template <class Enum>
void require_one_of(std::string_view who, std::string_view option, Enum value, Enum last, std::string_view names)
{
    require_one_of(who, option, static_cast<int>(value), static_cast<int>(last), names);
}

/// Refuses values of `core`, `mode` and `idle` that no engine can have.
void require_engine_options(std::string_view who, int core, engine_mode mode, idle_policy idle);

} // namespace weftio::nic
