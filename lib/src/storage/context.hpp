// What an engine of files is: its ways, its counters, its table of files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/configuration.hpp"
#include "storage/memories.hpp"
#include "storage/named_files.hpp"
#include "storage/registrations.hpp"
#include "storage/statistics.hpp"
#include "storage/stream_order.hpp"
#include "storage/way.hpp"
#include "weftio/file_result.hpp"
#include "weftio/log.hpp"
#include "weftio/options.hpp"

namespace weftio::storage {

class open_file;
class transfer_queue;
class vendor_library;

/// An engine. Any thread.
class context {
 public:
    /// Throws what the constructor of file_engine throws.
    explicit context(file_engine_options options);
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    ~context();

    const file_engine_options& options() const noexcept { return options_; }
    bool has(file_way way) const noexcept;
    /// The reason why operations that should go by io_uring go by pread and pwrite; `none`: they do not.
    file_fall without_uring() const noexcept
    {
        const bool wanted = options_.only != file_way::posix && options_.only != file_way::cufile;
        return uring_ || !wanted ? file_fall::none : file_fall::no_uring;
    }
    /// NVIDIA's library; nullptr: it is not asked for, or unavailable.
    const vendor_library* vendor() const noexcept { return vendor_; }
    /// Whether memory of a GPU is to go by NVIDIA's library.
    bool vendor_asked() const noexcept { return vendor_asked_; }
    /// Counts an operation that has ended. Logs a fall when it is the first of its kind, and with logging.level TRACE
    /// each operation.
    void account(io::kind what, const file_result& result, const measured& how = {}) noexcept;

    /// Throws weftio::error errc::closed in a child of fork().
    void require_process() const;

    /// Makes a way: io_uring, unless it is unavailable or not wanted.
    std::unique_ptr<way> make_way(bool uring_wanted = true);
    /// The same for transfers, which may go by other ways beside.
    std::unique_ptr<way> make_transfer_way(bool uring_wanted = true);
    /// A queue of transfers for one thread and one transfer: an idle one, or another. Its way as above.
    std::unique_ptr<transfer_queue> take_queue(bool uring_wanted);
    void give_back(std::unique_ptr<transfer_queue> queue) noexcept;

    /// Names the file; nullptr: no file of this engine has the key.
    std::shared_ptr<open_file> find(std::uint32_t key) const;
    std::uint32_t enter(const std::shared_ptr<open_file>& file);
    void leave(std::uint32_t key) noexcept;

    /// Executes `task` in the order of a stream; throws what file::read_on() throws.
    void enqueue(void* stream, task_thread::task task);
    /// Waits for the tasks that were enqueued on the engine's own thread.
    void drain();

    const configuration settings; ///< as the configuration file says; the defaults without one
    tally counts;
    registrations rings{counts};
    memories buffers;  ///< that are registered
    named_files named; ///< by the keys of enter()
    /// What executes the entries of kernels, while there is one; made and found under the mutex.
    std::mutex kernels_mutex;
    std::weak_ptr<file_user> kernels;
    std::weak_ptr<file_user> kernels_user()
    {
        const std::lock_guard lock(kernels_mutex);
        return kernels;
    }
    /// Whether this is the process that made the engine.
    bool same_process() const noexcept;

 private:
    void resolve_options();
    std::unique_ptr<way> with_aside(std::unique_ptr<way> made);
    void find_vendor();
    void find_uring();
    /// Logs what logging.level lets through.
    void log(log_level level, std::string_view line) const;

    file_engine_options options_;
    const std::uint64_t generation_; ///< of processes: fork() begins another
    bool uring_ = false;
    bool vendor_asked_ = false;
    const vendor_library* vendor_ = nullptr;
    std::atomic<std::uint32_t> logged_falls_{0}; ///< a bit for each file_fall
    std::shared_ptr<posix_pool> pool_;
    std::mutex queues_mutex_;
    std::vector<std::unique_ptr<transfer_queue>> queues_; ///< that are idle
    std::mutex ordered_mutex_;
    std::shared_ptr<task_thread> ordered_; ///< for streams; made when first needed
    mutable std::shared_mutex files_mutex_;
    std::unordered_map<std::uint32_t, std::weak_ptr<open_file>> files_;
    std::uint32_t last_key_ = 0;
};

} // namespace weftio::storage
