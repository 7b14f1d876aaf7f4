#include "storage/context.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "core/log.hpp"
#include "storage/transfer_queue.hpp"
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
                    fmt::format("weftio: file_engine: {} is {}; take {} to {}", name, value, least, most));
}

void require_options(const file_engine_options& options)
{
    require_within("depth", options.depth, 1U, 4096U);
    require_within("threads", options.threads, 1U, 256U);
    require_within("part_bytes", options.part_bytes, std::size_t{4096}, std::size_t{1} << 30);
    if (!std::has_single_bit(options.part_bytes))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file_engine: part_bytes is {}; take a power of two", options.part_bytes));
    switch (options.only) {
        case file_way::none:
        case file_way::uring:
        case file_way::posix: return;
        case file_way::cufile:
        case file_way::direct:
            throw error(errc::not_supported,
                        fmt::format("weftio: file_engine: only is {}, which this build does not have; take uring or "
                                    "posix, or leave it none",
                                    to_string(options.only)));
        case file_way::count_: break;
    }
    throw error(errc::invalid_argument, fmt::format("weftio: file_engine: only is {}, which is no file_way",
                                                    static_cast<unsigned>(options.only)));
}

bool strict_by_environment()
{
    const char* value = std::getenv("WEFTIO_FILE_STRICT");
    return value && std::string_view(value) == "1";
}

/// Reads the configuration, and tells what in it has no effect.
configuration settings_of(const file_engine_options& options)
{
    configuration made = read_configuration(configuration_path(options.configuration));
    for (const configuration::remark& it : made.remarks)
        core::log(it.unknown ? log_level::warning : log_level::info, it.text);
    return made;
}

} // namespace

context::context(file_engine_options options)
    : settings(settings_of(options)), counts(settings.statistics_level), options_(std::move(options)),
      generation_(generation().load(std::memory_order_relaxed))
{
    options_.strict = options_.strict || strict_by_environment();
    require_options(options_);
    find_cuda_driver();
    pool_ = make_posix_pool(options_.threads);
    if (options_.only != file_way::posix)
        find_uring();
}

context::~context() = default;

void context::find_uring()
try {
    auto first = make_uring(options_.depth, &rings);
    uring_ = true;
    give_back(std::make_unique<transfer_queue>(*this, std::move(first), 1));
} catch (const error& refused) {
    if (options_.strict || options_.only == file_way::uring)
        throw;
    core::log(log_level::warning,
              fmt::format("{}; files are read and written by threads that call pread and pwrite", refused.what()));
}

bool context::has(file_way way) const noexcept
{
    if (way == file_way::uring)
        return uring_;
    return way == file_way::posix && options_.only != file_way::uring;
}

bool context::same_process() const noexcept
{
    return generation().load(std::memory_order_relaxed) == generation_;
}

void context::require_process() const
{
    if (!same_process())
        throw error(errc::closed, "weftio: file_engine: this process is a child of fork(), which has none of the "
                                  "engine's threads; make an engine of its own in the child");
}

std::unique_ptr<way> context::make_way(bool uring_wanted)
{
    if (uring_ && (uring_wanted || options_.only == file_way::uring))
        return make_uring(options_.depth, &rings);
    return make_posix(options_.depth, pool_);
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
    return std::make_unique<transfer_queue>(*this, make_way(uring_wanted), 1);
}

void context::give_back(std::unique_ptr<transfer_queue> queue) noexcept
try {
    const std::lock_guard lock(queues_mutex_);
    queues_.push_back(std::move(queue));
} catch (...) { // no memory to keep it: it ends
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
    return last_key_;
}

void context::leave(std::uint32_t key) noexcept
{
    const std::lock_guard lock(files_mutex_);
    files_.erase(key);
}

} // namespace weftio::storage
