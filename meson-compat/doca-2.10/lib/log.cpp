#include "log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "doca_log.h"
#include "object.hpp"
#include "weftio/log.hpp"

struct doca_log_backend {
    static constexpr const char* noun = "log backend";
    FILE* file;
    std::atomic<std::uint32_t> level;

    doca_log_backend(FILE* given_file, std::uint32_t given_level) : file(given_file), level(given_level) {}
};

namespace weftio::doca {
namespace {

using sdk_backends = std::vector<std::shared_ptr<doca_log_backend>>;

struct log_state {
    std::atomic<bool> standard{false};
    std::atomic<std::uint32_t> program_level{DOCA_LOG_LEVEL_INFO};
    std::mutex mutex;
    sdk_backends sdk;                                 ///< guarded by mutex
    std::uint32_t sdk_level = DOCA_LOG_LEVEL_WARNING; ///< likewise: level of new backends
};

// Never destroyed: programs log from their own destructors.
log_state& own_log()
{
    static auto* one = new log_state;
    return *one;
}

void require_level(std::uint32_t level)
{
    require(level >= DOCA_LOG_LEVEL_DISABLE && level <= DOCA_LOG_LEVEL_TRACE && level % 10 == 0,
            DOCA_ERROR_INVALID_VALUE, "log level {}: no such level; levels are 10, 20, ... to 70", level);
}

std::uint32_t level_of(log_level level)
{
    switch (level) {
        case log_level::debug: return DOCA_LOG_LEVEL_DEBUG;
        case log_level::info: return DOCA_LOG_LEVEL_INFO;
        case log_level::warning: return DOCA_LOG_LEVEL_WARNING;
        case log_level::error: break;
    }
    return DOCA_LOG_LEVEL_ERROR;
}

/// Level that the environment variable WEFTIO_LOG asks for; DOCA_LOG_LEVEL_DISABLE when it is unset.
/// An unknown name asks for warnings.
std::uint32_t level_of_environment()
{
    const char* wish = std::getenv("WEFTIO_LOG");
    if (!wish || !*wish)
        return DOCA_LOG_LEVEL_DISABLE;
    try {
        return level_of(log_level_named(wish));
    } catch (const std::exception&) {
        return DOCA_LOG_LEVEL_WARNING;
    }
}

const char* tag_of(std::uint32_t level)
{
    switch (level) {
        case DOCA_LOG_LEVEL_CRIT: return "CRT";
        case DOCA_LOG_LEVEL_ERROR: return "ERR";
        case DOCA_LOG_LEVEL_WARNING: return "WRN";
        case DOCA_LOG_LEVEL_INFO: return "INF";
        case DOCA_LOG_LEVEL_DEBUG: return "DBG";
        default: return "TRC";
    }
}

std::string line_of(std::uint32_t level, std::string_view where, std::string_view function, std::string_view text)
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm local{};
    localtime_r(&now.tv_sec, &local);
    return fmt::format("[{:02}:{:02}:{:02}:{:06}][{}][DOCA][{}][{}][{}] {}\n", local.tm_hour, local.tm_min,
                       local.tm_sec, now.tv_nsec / 1000, gettid(), tag_of(level), where, function, text);
}

/// Writes the line by one write(), after what the program has printed to `file`.
void write_line(FILE* file, std::string_view line)
{
    flockfile(file);
    std::fflush(file);
    const int descriptor = fileno(file);
    if (descriptor < 0) { // a stream in memory
        std::fwrite(line.data(), 1, line.size(), file);
        std::fflush(file);
    }
    while (descriptor >= 0 && !line.empty()) {
        const ssize_t written = write(descriptor, line.data(), line.size());
        if (written > 0)
            line.remove_prefix(static_cast<std::size_t>(written));
        else if (errno != EINTR)
            break;
    }
    funlockfile(file);
}

/// A line of the library. Loses it when memory runs out.
void log_of_library(std::uint32_t level, std::string_view where, std::string_view function, std::string_view text)
{
    const int error = errno;
    try {
        sdk_backends backends;
        {
            std::lock_guard lock(own_log().mutex);
            backends = own_log().sdk;
        }
        const std::uint32_t wished = level_of_environment();
        std::string line;
        auto write_to = [&](FILE* file, std::uint32_t limit) {
            if (level > std::max(limit, wished))
                return;
            if (line.empty())
                line = line_of(level, where, function, text);
            write_line(file, line);
        };
        for (auto& backend : backends)
            write_to(backend->file, backend->level);
        if (backends.empty())
            write_to(stderr, DOCA_LOG_LEVEL_DISABLE);
    } catch (const std::bad_alloc&) {
    }
    errno = error;
}

/// As vprintf() writes it.
std::string printed(const char* format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    std::string text(256, '\0');
    const int size = std::vsnprintf(text.data(), text.size(), format, arguments);
    if (size >= static_cast<int>(text.size())) {
        text.resize(static_cast<std::size_t>(size) + 1);
        std::vsnprintf(text.data(), text.size(), format, again);
    }
    va_end(again);
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

std::string_view without_folders(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

} // namespace

std::mutex& log_mutex()
{
    return own_log().mutex;
}

void log_failure(const char* function, doca_error_t error, std::string_view text)
{
    log_of_library(DOCA_LOG_LEVEL_ERROR, "libweftio_doca", function,
                   fmt::format("{} ({})", text, doca_error_get_name(error)));
}

void log_warning(std::string_view text)
{
    log_of_library(DOCA_LOG_LEVEL_WARNING, "libweftio_doca", "-", text);
}

void log_info(std::string_view text)
{
    log_of_library(DOCA_LOG_LEVEL_INFO, "libweftio_doca", "-", text);
}

} // namespace weftio::doca

using namespace weftio::doca;

doca_error_t doca_log_backend_create_standard(void)
{
    own_log().standard = true;
    return DOCA_SUCCESS;
}

doca_error_t doca_log_backend_create_with_file_sdk(FILE* file, struct doca_log_backend** backend)
{
    return call_in_any_process(__func__, [&] {
        result(backend, "backend");
        require(file, DOCA_ERROR_INVALID_VALUE, "the file is a null pointer");
        std::uint32_t level = 0;
        {
            std::lock_guard lock(own_log().mutex);
            level = own_log().sdk_level;
        }
        make(backend, file, level);
        auto made = known(*backend);
        {
            std::lock_guard lock(own_log().mutex);
            own_log().sdk.push_back(std::move(made));
        }
        weftio::set_log_sink([](weftio::log_level level, std::string_view text) {
            log_of_library(level_of(level), "libweftio", "-", text);
        });
    });
}

doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend* backend, uint32_t level)
{
    return call_in_any_process(__func__, [&] {
        auto one = known(backend);
        require_level(level);
        one->level = level;
    });
}

doca_error_t doca_log_level_set_global_lower_limit(uint32_t level)
{
    return call_in_any_process(__func__, [&] {
        require_level(level);
        own_log().program_level = level;
    });
}

doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level)
{
    return call_in_any_process(__func__, [&] {
        require_level(level);
        std::lock_guard lock(own_log().mutex);
        own_log().sdk_level = level;
        for (auto& backend : own_log().sdk)
            backend->level = level;
    });
}

void doca_log_line(uint32_t level, const char* file, int line, const char* function, const char* format, ...)
{
    if (!file || !function || !format || !own_log().standard || level > own_log().program_level ||
        level <= DOCA_LOG_LEVEL_DISABLE)
        return;
    const int error = errno;
    va_list arguments;
    va_start(arguments, format);
    try {
        const std::string where = fmt::format("{}:{}", without_folders(file), line);
        write_line(level <= DOCA_LOG_LEVEL_WARNING ? stderr : stdout,
                   line_of(level, where, function, printed(format, arguments)));
    } catch (const std::bad_alloc&) { // the line is lost
    }
    va_end(arguments);
    errno = error;
}
