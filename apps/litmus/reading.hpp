// Who sees flags, and reads data.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "stage.hpp"

namespace weftio::litmus {

/// Of one thread, which makes it.
class reading {
 public:
    reading(stage& of, const std::function<bool()>& stopped) : stage_(of), stopped_(stopped) {}
    virtual ~reading() = default;
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;

    /// Until all trials are done, or the cell is over. Throws failure, also when nothing has come for long.
    virtual void read_all() = 0;
    /// Nothing of it reads any more. Blocks.
    virtual void end() noexcept {}

    std::uint64_t trials() const { return trials_; }
    std::uint64_t stale() const { return stale_; }

 protected:
    static constexpr std::uint32_t none = 0xffffffff;

    /// Asked while nothing comes. Throws failure when that has been long.
    bool ended();
    /// Asked while nothing comes; another thread runs at times. Returns whether to go on. Throws as ended().
    bool waits();
    /// What the cell has done between a pair's flag and its data.
    void flush_data(std::uint32_t pair);
    void post_receives();
    /// The pair that a completion tells of; none: there is no completion.
    std::uint32_t take_notice();

    stage& stage_;
    std::uint64_t trials_ = 0, stale_ = 0;

 private:
    void read_back(nic& by, std::uint32_t pair, const region& scratch, std::uint32_t key);

    const std::function<bool()>& stopped_;
    std::uint64_t turns_ = 0, trials_then_ = 0;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// The CPU loads; or has the GPU's copy engine bring what lies in the GPU.
std::unique_ptr<reading> read_by_cpu(stage& of, const std::function<bool()>& stopped);
/// A kernel loads. The calling thread brings it completions, and flushes for it.
std::unique_ptr<reading> read_by_gpu(stage& of, const std::function<bool()>& stopped);

/// Others than this thread write the word.
std::uint64_t seen(const std::uint64_t* word, std::memory_order order = std::memory_order_relaxed);

} // namespace weftio::litmus
