#include "storage/context.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "core/log.hpp"
#include "storage/names.hpp"
#include "storage/recognition.hpp"
#include "storage/transfer_queue.hpp"
#include "storage/vendor_library.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

/// How often this process is a child of fork() of one with an engine.
std::atomic<std::uint64_t>& generation()
{
    static std::atomic<std::uint64_t> number{0};
    [[maybe_unused]] static const int registered =
        pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });
    return number;
}

template <class Number>
void require_within(const char* name, Number value, Number least, Number most)
{
    if (value < least || value > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file_engine: {} is {}; set {} to {}", name, value, least, most));
}

void require_options(const file_engine_options& options)
{
    require_within("depth", options.depth, 1U, 4096U);
    require_within("threads", options.threads, 1U, 256U);
    require_within("part_bytes", options.part_bytes, std::size_t{4096}, std::size_t{1} << 30);
    if (!std::has_single_bit(options.part_bytes))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file_engine: part_bytes is {}; set a power of two", options.part_bytes));
    switch (options.only) {
        case file_way::none:
        case file_way::uring:
        case file_way::posix:
        case file_way::cufile: return;
        case file_way::direct:
            throw error(errc::not_supported, "weftio: file_engine: only is direct, which this build does not support; "
                                             "set uring, posix or cufile, or leave it none");
        case file_way::count_: break;
    }
    throw error(errc::invalid_argument,
                fmt::format("weftio: file_engine: only is {}, not a file_way", static_cast<unsigned>(options.only)));
}

bool strict_by_environment()
{
    const char* value = std::getenv("WEFTIO_FILE_STRICT");
    return value && std::string_view(value) == "1";
}

/// Severities of the vendor's that a line of ours has at least.
log_level level_of(logging_level level) noexcept
{
    switch (level) {
        case logging_level::error: return log_level::error;
        case logging_level::warn: return log_level::warning;
        case logging_level::info: return log_level::info;
        case logging_level::debug:
        case logging_level::trace: break;
    }
    return log_level::debug;
}

const char* word_of(io::kind what) noexcept
{
    return what == io::kind::read ? "read" : what == io::kind::write ? "write" : "sync";
}

} // namespace

context::context(file_engine_options options)
    : settings(read_configuration(configuration_path(options.configuration))), counts(settings.statistics_level),
      options_(std::move(options)), generation_(generation().load(std::memory_order_relaxed))
{
    for (const configuration::remark& it : settings.remarks)
        log(it.unknown ? log_level::warning : log_level::info, it.text);
    resolve_options();
    require_options(options_);
    find_cuda_driver();
    find_vendor();
    pool_ = make_posix_pool(options_.threads);
    if (options_.only == file_way::none || options_.only == file_way::uring)
        find_uring();
}

/// What options leave open is as the environment and the configuration have it.
void context::resolve_options()
{
    options_.strict = options_.strict || strict_by_environment();
    if (options_.depth == 0)
        options_.depth = settings.io_depth;
    if (options_.threads == 0)
        options_.threads = settings.io_threads != 0 ? settings.io_threads : file_engine_options::default_threads;
    if (!settings.force_compat_mode)
        return;
    if (options_.only == file_way::none)
        options_.only = file_way::posix;
    else if (options_.only != file_way::posix)
        log(log_level::warning, fmt::format("weftio: {}: properties.force_compat_mode has no effect on this engine: "
                                            "the program requires the way {}",
                                            settings.path, to_string(options_.only)));
}

/// Opens NVIDIA's library, if it is the one way, or if it is asked for where the engine chooses.
void context::find_vendor()
try {
    std::string path = vendor_library_asked_for(settings);
    vendor_asked_ = options_.only == file_way::none && !path.empty();
    if (options_.only != file_way::cufile && !vendor_asked_)
        return;
    if (path.empty())
        path = find_vendor_library("/");
    if (path.empty())
        throw error(errc::not_supported,
                    "weftio: file_engine: only is cufile, but NVIDIA's libcufile.so.0 is not in the CUDA toolkit's "
                    "folders; install the toolkit, or set WEFTIO_CUFILE_LIBRARY to the library's path");
    vendor_ = &vendor_library::open(path);
} catch (const error& refused) {
    if (options_.strict || options_.only == file_way::cufile)
        throw;
    log(log_level::warning, fmt::format("{}; staging GPU memory in host memory", refused.what()));
}

context::~context() = default;

void context::find_uring()
try {
    auto first = make_uring(options_.depth, &rings);
    uring_ = true;
    give_back(std::make_unique<transfer_queue>(*this, with_aside(std::move(first)), 1));
} catch (const error& refused) {
    if (options_.strict || options_.only == file_way::uring)
        throw;
    log(log_level::warning, fmt::format("{}; falling back to threads that call pread and pwrite", refused.what()));
}

bool context::has(file_way way) const noexcept
{
    if (way == file_way::uring)
        return uring_;
    if (way == file_way::cufile)
        return vendor_ != nullptr;
    return way == file_way::posix && options_.only != file_way::uring && options_.only != file_way::cufile;
}

bool context::same_process() const noexcept
{
    return generation().load(std::memory_order_relaxed) == generation_;
}

void context::require_process() const
{
    if (!same_process())
        throw error(errc::closed, "weftio: file_engine: this process is a child of fork() and has none of the engine's "
                                  "threads; create an engine in the child");
}

std::unique_ptr<way> context::make_way(bool uring_wanted)
{
    if (uring_ && (uring_wanted || options_.only == file_way::uring))
        return make_uring(options_.depth, &rings);
    return make_posix(options_.depth, pool_);
}

std::unique_ptr<way> context::make_transfer_way(bool uring_wanted)
{
    return with_aside(make_way(uring_wanted));
}

/// Adds the threads to io_uring, where some transfers do not go by it.
std::unique_ptr<way> context::with_aside(std::unique_ptr<way> made)
{
    if (made->name() != file_way::uring || (!vendor_ && !settings.names_mounts()))
        return made;
    return make_with_aside(std::move(made), make_posix(options_.depth, pool_));
}

std::unique_ptr<transfer_queue> context::take_queue(bool uring_wanted)
{
    const bool by_uring = uring_ && (uring_wanted || options_.only == file_way::uring);
    const file_way wanted = by_uring ? file_way::uring : file_way::posix;
    {
        const std::lock_guard lock(queues_mutex_);
        const auto idle =
            std::find_if(queues_.begin(), queues_.end(), [=](const auto& each) { return each->name() == wanted; });
        if (idle != queues_.end()) {
            std::swap(*idle, queues_.back());
            auto taken = std::move(queues_.back());
            queues_.pop_back();
            return taken;
        }
    }
    return std::make_unique<transfer_queue>(*this, make_transfer_way(uring_wanted), 1);
}

void context::give_back(std::unique_ptr<transfer_queue> queue) noexcept
try {
    const std::lock_guard lock(queues_mutex_);
    queues_.push_back(std::move(queue));
} catch (...) { // no memory to keep it: it ends
}

void context::log(log_level level, std::string_view line) const
{
    if (!settings.log || level >= level_of(*settings.log))
        core::log(level, line);
}

void context::account(io::kind what, const file_result& result, const measured& how) noexcept
try {
    counts.add(what, result, how);
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(result.fall);
    if (result.fall != file_fall::none && (logged_falls_.load(std::memory_order_relaxed) & bit) == 0 &&
        (logged_falls_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
        log(log_level::info, fmt::format("weftio: files: {}: {}; logged once, counted from now on",
                                         to_string(result.fall), explanation_of(result.fall)));
    if (settings.log == logging_level::trace)
        log(log_level::debug,
            fmt::format("weftio: files: {} up to {}: {} bytes by {}, fallback {}, errno {}", word_of(what),
                        result.position, result.bytes, to_string(result.way), to_string(result.fall), result.error));
} catch (const std::exception&) { // no memory for a line, or an exception of the sink
}

void context::enqueue(void* stream, task_thread::task task)
{
    const std::lock_guard lock(ordered_mutex_);
    if (!ordered_)
        ordered_ = std::make_shared<task_thread>();
    storage::enqueue(stream, ordered_, std::move(task));
}

void context::drain()
{
    std::shared_ptr<task_thread> by;
    {
        const std::lock_guard lock(ordered_mutex_);
        by = ordered_;
    }
    if (by)
        by->run([] {});
}

std::shared_ptr<open_file> context::find(std::uint32_t key) const
{
    const std::shared_lock lock(files_mutex_);
    const auto found = files_.find(key);
    return found == files_.end() ? nullptr : found->second.lock();
}

std::uint32_t context::enter(const std::shared_ptr<open_file>& file)
{
    const std::lock_guard lock(files_mutex_);
    do
        ++last_key_;
    while (last_key_ == 0 || files_.contains(last_key_));
    files_.emplace(last_key_, file);
    counts.registered().files.store(files_.size(), std::memory_order_relaxed);
    return last_key_;
}

void context::leave(std::uint32_t key) noexcept
{
    const std::lock_guard lock(files_mutex_);
    files_.erase(key);
    if (same_process()) // the page is the parent's, too
        counts.registered().files.store(files_.size(), std::memory_order_relaxed);
}

} // namespace weftio::storage
