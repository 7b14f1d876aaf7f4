#include "object.hpp"

#include <pthread.h>

#include <atomic>
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

enum class use { none, here, in_parent };
std::atomic<use> current_use{use::none};

[[maybe_unused]] const int forks_are_seen = pthread_atfork(
    [] {
        objects_mutex().lock();
        log_mutex().lock();
    },
    [] {
        log_mutex().unlock();
        objects_mutex().unlock();
    },
    [] {
        log_mutex().unlock();
        objects_mutex().unlock();
        if (current_use == use::here)
            current_use = use::in_parent;
    });

} // namespace

std::mutex& objects_mutex()
{
    static auto* one = new std::mutex;
    return *one;
}

void note_use() noexcept
{
    auto none = use::none;
    current_use.compare_exchange_strong(none, use::here);
}

bool is_child_of_user() noexcept
{
    return current_use == use::in_parent;
}

void require_no_child()
{
    require(!is_child_of_user(), DOCA_ERROR_BAD_STATE,
            "the process is a child of fork() and has none of its parent's devices; fork before the first device or "
            "GPU is opened, or run another program with exec()");
}

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
