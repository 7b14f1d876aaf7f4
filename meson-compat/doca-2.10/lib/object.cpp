#include "object.hpp"

#include <new>

#include "log.hpp"
#include "weftio/error.hpp"

namespace weftio::doca {
namespace {

doca_error_t code_of(const std::error_code& code)
{
    if (code.category() != error_category())
        return DOCA_ERROR_OPERATING_SYSTEM;
    switch (static_cast<errc>(code.value())) {
        case errc::invalid_argument: return DOCA_ERROR_INVALID_VALUE;
        case errc::not_found: return DOCA_ERROR_NOT_FOUND;
        case errc::permission_denied: return DOCA_ERROR_NOT_PERMITTED;
        case errc::in_use: return DOCA_ERROR_IN_USE;
        case errc::not_supported: return DOCA_ERROR_NOT_SUPPORTED;
        case errc::not_reachable: return DOCA_ERROR_NOT_PERMITTED;
        case errc::out_of_memory: return DOCA_ERROR_NO_MEMORY;
        case errc::closed: return DOCA_ERROR_BAD_STATE;
        case errc::device_error: return DOCA_ERROR_DRIVER;
        case errc::timed_out: return DOCA_ERROR_TIME_OUT;
    }
    return DOCA_ERROR_UNKNOWN;
}

} // namespace

doca_error_t current_failure(const char* function) noexcept
{
    try {
        try {
            throw;
        } catch (const failure& reason) {
            log_failure(function, reason.code, reason.text);
            return reason.code;
        } catch (const std::system_error& reason) {
            const doca_error_t code = code_of(reason.code());
            log_failure(function, code, reason.what());
            return code;
        } catch (const std::bad_alloc&) {
            log_failure(function, DOCA_ERROR_NO_MEMORY, "out of memory");
            return DOCA_ERROR_NO_MEMORY;
        } catch (const std::exception& reason) {
            log_failure(function, DOCA_ERROR_UNEXPECTED, reason.what());
            return DOCA_ERROR_UNEXPECTED;
        }
    } catch (...) { // no memory for the line of the log
        return DOCA_ERROR_NO_MEMORY;
    }
}

} // namespace weftio::doca
