#include "doca_error.h"

#include <algorithm>
#include <array>

namespace weftio::doca {
namespace {

struct error_text {
    doca_error_t code;
    const char* name;
    const char* description;
};

#define WEFTIO_DOCA_ERROR(name, description)                                                                           \
    error_text                                                                                                         \
    {                                                                                                                  \
        name, #name, description                                                                                       \
    }
constexpr std::array error_texts{
    WEFTIO_DOCA_ERROR(DOCA_SUCCESS, "Success"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_UNKNOWN, "Unknown error"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NOT_PERMITTED, "Operation is not permitted"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_IN_USE, "Resource is in use"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NOT_SUPPORTED, "Operation is not supported"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_AGAIN, "Resource is unavailable for now: try again"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_INVALID_VALUE, "Invalid input"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NO_MEMORY, "Out of memory"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_INITIALIZATION, "Initialization failed"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_TIME_OUT, "Timed out"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_SHUTDOWN, "Shut down"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_CONNECTION_RESET, "Connection was reset by the peer"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_CONNECTION_ABORTED, "Connection was aborted"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_CONNECTION_INPROGRESS, "Connection is being established"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NOT_CONNECTED, "Not connected"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NO_LOCK, "Lock is unavailable"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_NOT_FOUND, "Not found"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_IO_FAILED, "Input or output failed"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_BAD_STATE, "Object is in the wrong state for this call"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_UNSUPPORTED_VERSION, "Version is not supported"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_OPERATING_SYSTEM, "A call of the operating system failed"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_DRIVER, "A driver or device failed"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_UNEXPECTED, "Unexpected failure"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_ALREADY_EXIST, "Already exists"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_FULL, "No room is left"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_EMPTY, "Nothing is there"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_IN_PROGRESS, "Operation is in progress"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_TOO_BIG, "Too big"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_AUTHENTICATION, "Authentication failed"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_BAD_CONFIG, "Configuration is wrong"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_SKIPPED, "Skipped"),
    WEFTIO_DOCA_ERROR(DOCA_ERROR_DEVICE_FATAL_ERROR, "Device failed and cannot be used any more"),
};
#undef WEFTIO_DOCA_ERROR
static_assert(error_texts.size() == DOCA_ERROR_DEVICE_FATAL_ERROR + 1);

const error_text& text_of(doca_error_t error)
{
    static constexpr error_text none{DOCA_ERROR_UNKNOWN, "DOCA_ERROR_<no such error>", "No such error"};
    const auto* found = std::find_if(error_texts.begin(), error_texts.end(),
                                     [&](const error_text& text) { return text.code == error; });
    return found == error_texts.end() ? none : *found;
}

} // namespace
} // namespace weftio::doca

const char* doca_error_get_descr(doca_error_t error)
{
    return weftio::doca::text_of(error).description;
}

const char* doca_error_get_name(doca_error_t error)
{
    return weftio::doca::text_of(error).name;
}
