#include "failure.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <new>

#include "core/log.hpp"

namespace weftio::verbs {

int number_of_exception() noexcept
try {
    throw;
} catch (const failure& why) {
    return why.number;
} catch (const error& why) {
    core::log_or_lose(log_level::warning, [&] { return std::string(why.what()); });
    return number_of(why);
} catch (const std::bad_alloc&) {
    return ENOMEM;
} catch (const std::exception& why) {
    core::log_or_lose(log_level::error, [&] { return fmt::format("weftio-run: {}", why.what()); });
    return EIO;
}

int number_of(const error& why) noexcept
{
    switch (static_cast<errc>(why.code().value())) {
        case errc::not_found: return ENOENT;
        case errc::permission_denied: return EACCES;
        case errc::in_use: return EBUSY;
        case errc::not_supported: return EOPNOTSUPP;
        case errc::not_reachable: return EFAULT;
        case errc::out_of_memory: return ENOMEM;
        case errc::timed_out: return ETIMEDOUT;
        case errc::closed:
        case errc::device_error: return EIO;
        case errc::invalid_argument: break;
    }
    return EINVAL;
}

} // namespace weftio::verbs
