// Where the doorbell words of a NIC's own queues lie: packed in pages, so that an engine can poll many of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/backend.hpp"
#include "nic/soft/work/rings.hpp"

namespace weftio::nic::soft {

/// A page of doorbell words, which belong to queues of kernels of one device.
class doorbell_page {
 public:
    static constexpr std::uint32_t words_of_a_line = 8, lines = 64, words = words_of_a_line * lines;
    /// Queues that share a word at most. When it is rung, the NIC reads the records of those that sleep.
    static constexpr std::uint32_t most_users = 8;
    static constexpr std::size_t bytes = words * sizeof(std::uint64_t);

    /// @throws weftio::error errc::out_of_memory
    explicit doorbell_page(const std::shared_ptr<devices::device_backend>& device);

    /// Adds a user to the word that has the fewest, and returns the word; `words` when all have most_users. The first
    /// users have a cache line each, so that pushes of several kernels do not disturb each other.
    std::uint32_t join() noexcept;
    void leave(std::uint32_t word) noexcept;
    const devices::memory_block& memory() const noexcept { return memory_; }

 private:
    devices::memory_block memory_;
    std::mutex joining_;
    std::array<std::uint8_t, words> users_{};
};

/// The doorbell word of one queue. Keeps its page.
class doorbell {
 public:
    doorbell(std::shared_ptr<doorbell_page> page, std::uint32_t word) noexcept : page_(std::move(page)), word_(word) {}
    doorbell(const doorbell&) = delete;
    doorbell& operator=(const doorbell&) = delete;
    ~doorbell() { page_->leave(word_); }

    /// Address for kernels.
    std::uint64_t* device() const noexcept { return static_cast<std::uint64_t*>(page_->memory().at.device) + word_; }
    page_word word() const noexcept { return {static_cast<std::uint64_t*>(page_->memory().at.cpu), word_}; }

 private:
    const std::shared_ptr<doorbell_page> page_;
    const std::uint32_t word_;
};

/// The doorbell pages of one NIC. Thread-safe.
class doorbell_pages {
 public:
    /// A word for a queue of kernels of the device. @throws weftio::error errc::out_of_memory
    std::shared_ptr<const doorbell> take(const std::shared_ptr<devices::device_backend>& device);

 private:
    std::mutex taking_;
    std::vector<std::weak_ptr<doorbell_page>> pages_;
};

} // namespace weftio::nic::soft
