#include <fmt/format.h>

#include <new>

#include "api.hpp"
#include "core/log.hpp"
#include "weftio/error.hpp"

namespace weftio::cufile {

namespace {

CUfileOpError code_of(const error& thrown) noexcept
{
    switch (static_cast<errc>(thrown.code().value())) {
        case errc::invalid_argument:
        case errc::not_found: return CU_FILE_INVALID_VALUE;
        case errc::permission_denied: return CU_FILE_PERMISSION_DENIED;
        case errc::in_use: return CU_FILE_MEMORY_ALREADY_REGISTERED;
        case errc::not_supported: return CU_FILE_IO_NOT_SUPPORTED;
        case errc::not_reachable: return CU_FILE_CUDA_POINTER_RANGE_ERROR;
        case errc::out_of_memory: return CU_FILE_NOMEM_ERROR;
        case errc::closed: return CU_FILE_DRIVER_CLOSING;
        case errc::device_error: return CU_FILE_CUDA_DRIVER_ERROR;
        case errc::timed_out: break;
    }
    return CU_FILE_INTERNAL_ERROR;
}

void log_sentence(const char* function, const char* sentence) noexcept
{
    core::log_or_lose(log_level::error, [&] { return fmt::format("{}: {}", function, sentence); });
}

} // namespace

CUfileOpError code_of_exception(const char* function) noexcept
try {
    throw;
} catch (const failure& known) {
    core::log_or_lose(log_level::debug, [&] {
        return fmt::format("{}: {} ({})", function, cufileop_status_error(known.code), static_cast<int>(known.code));
    });
    return known.code;
} catch (const error& thrown) {
    log_sentence(function, thrown.what());
    return code_of(thrown);
} catch (const std::bad_alloc&) {
    return CU_FILE_NOMEM_ERROR;
} catch (const std::exception& thrown) {
    log_sentence(function, thrown.what());
    return CU_FILE_INTERNAL_ERROR;
} catch (...) {
    return CU_FILE_INTERNAL_ERROR;
}

} // namespace weftio::cufile
