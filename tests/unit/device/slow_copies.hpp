// A fake copy engine that executes batches only when the test calls complete_all().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "devices/backend.hpp"

namespace weftio::test {

class slow_copies final : public devices::copy_queue {
 public:
    struct wanted {
        void* to;
        const void* from; ///< nullptr: the entry is a fill
        rows shape;
        std::uint32_t pattern = 0;
    };
    void copy(void* to, const void* from, const rows& rows) noexcept override
    {
        if (before_copy)
            before_copy();
        copies.push_back({to, from, rows});
    }
    void fill(void* to, std::uint32_t pattern, std::size_t bytes) noexcept override
    {
        copies.push_back(
            {to, nullptr, {.bytes = bytes, .count = 1, .to_stride = bytes, .from_stride = bytes}, pattern});
    }
    void mark(std::uint32_t number) noexcept override
    {
        marks.push_back(number);
        ends_.push_back(copies.size());
    }
    std::uint32_t completed() const noexcept override { return completed_; }
    bool failed() const noexcept override { return failed_; }

    /// Executes all batches.
    void complete_all()
    {
        while (!ends_.empty())
            complete_one();
    }
    /// Executes the oldest batch.
    void complete_one()
    {
        const std::size_t count = ends_.front();
        for (std::size_t at = 0; at < count; ++at)
            execute(copies[at]);
        copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
        completed_ = marks[marks.size() - ends_.size()];
        ends_.erase(ends_.begin());
        for (std::size_t& end : ends_)
            end -= count;
    }
    bool batches_under_way() const { return !ends_.empty(); }
    /// Makes the copy engine fail.
    void fail() { failed_ = true; }

    std::function<void()> before_copy; ///< called at the start of copy() unless empty
    std::vector<wanted> copies;
    std::vector<std::uint32_t> marks;

 private:
    static void execute(const wanted& each)
    {
        for (std::size_t row = 0; each.from && row < each.shape.count; ++row)
            std::memcpy(static_cast<std::byte*>(each.to) + row * each.shape.to_stride,
                        static_cast<const std::byte*>(each.from) + row * each.shape.from_stride, each.shape.bytes);
        for (std::size_t at = 0; !each.from && at < each.shape.bytes; ++at)
            static_cast<std::byte*>(each.to)[at] = reinterpret_cast<const std::byte*>(&each.pattern)[at % 4];
    }

    std::vector<std::size_t> ends_; ///< indices in `copies` at which the incomplete batches end
    std::uint32_t completed_ = 0;
    std::atomic<bool> failed_ = false; ///< set by the test while an engine's thread reads it
};

} // namespace weftio::test
