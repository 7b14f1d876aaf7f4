// What an engine of files is: its ways, its counters, its table of files.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/way.hpp"
#include "weftio/file_result.hpp"
#include "weftio/options.hpp"

namespace weftio::storage {

class open_file;

/// What operations of one engine count; exact, from any thread.
class tally {
 public:
    void add(io::kind what, const file_result& result) noexcept;
    file_counters read() const noexcept;

 private:
    struct per_way {
        std::atomic<std::uint64_t> operations[3]{}, errors[3]{}, bytes[2]{};
    };
    std::array<per_way, static_cast<std::size_t>(file_way::count_)> ways_{};
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(file_fall::count_)> falls_{};
};

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
        return uring_ || options_.only == file_way::posix ? file_fall::none : file_fall::no_uring;
    }
    /// Throws weftio::error errc::closed in a child of fork().
    void require_process() const;

    /// A way for one thread: an idle one, or another.
    std::unique_ptr<way> take_way();
    void give_back(std::unique_ptr<way> way) noexcept;

    /// Names the file; nullptr: no file of this engine has the key.
    std::shared_ptr<open_file> find(std::uint32_t key) const;
    std::uint32_t enter(const std::shared_ptr<open_file>& file);
    void leave(std::uint32_t key) noexcept;

    tally counts;

 private:
    void find_uring();
    std::unique_ptr<way> make_way();

    file_engine_options options_;
    const std::uint64_t generation_; ///< of processes: fork() begins another
    bool uring_ = false;
    std::shared_ptr<posix_pool> pool_;
    std::mutex ways_mutex_;
    std::vector<std::unique_ptr<way>> ways_;
    mutable std::shared_mutex files_mutex_;
    std::unordered_map<std::uint32_t, std::weak_ptr<open_file>> files_;
    std::uint32_t last_key_ = 0;
};

} // namespace weftio::storage
