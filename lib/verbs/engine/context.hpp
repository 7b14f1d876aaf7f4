// One opening of a node: what the program has made by its commands, until it closes the last descriptor of it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "channel.hpp"
#include "node.hpp"
#include "objects.hpp"

namespace weftio::verbs {

/// Pages of a file, as long as this exists.
class mapped_pages {
 public:
    /// @throws failure
    mapped_pages(int descriptor, std::size_t bytes);
    mapped_pages(const mapped_pages&) = delete;
    mapped_pages& operator=(const mapped_pages&) = delete;
    ~mapped_pages();

    void* begin() const noexcept { return at_; }

 private:
    void* at_;
    std::size_t bytes_;
};

/// Any thread may call; commands are executed one at a time.
class context {
 public:
    /// @param flags  of open()  @throws failure
    context(node& of, int flags);
    ~context();
    context(const context&) = delete;
    context& operator=(const context&) = delete;

    /// The program's descriptor, when it was made, and its identity.
    int program() const noexcept { return node_end_.program; }
    std::uint64_t identity() const noexcept { return node_end_.identity; }
    /// Our end, which hears when the program has closed all of its own.
    int ours() const noexcept { return node_end_.ours.number(); }

    /// write(): returns the bytes, or a negative errno. @param bytes  at `command`, of the program's
    ssize_t execute(const void* command, std::size_t bytes) noexcept;
    /// mmap(): returns 0, or a negative errno.
    int map(void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address) noexcept;

    /// Tells the program what has happened to its objects. Returns at once while a command is executed.
    void look() noexcept;

    // What commands work on.
    node& of;
    std::optional<event_channel> asynchronous; ///< once GET_CONTEXT was executed
    std::uint8_t cqe_version = 0;
    bool link_was_up = false; ///< as the program knows it
    table<domain> domains;
    table<region> regions;
    table<channel> channels; ///< by the number of the program's descriptor
    table<completions> completion_queues;
    table<pair> pairs;
    std::uint32_t next_handle() noexcept { return ++last_handle_; }
    /// Why a table lacks a handle: the kernel says EINVAL of an object of another kind, and ENOENT of none.
    int why_missing(std::uint32_t handle) const;
    /// Forgets a channel when the program has closed its end.
    void watch_channel(std::uint32_t number, const std::shared_ptr<channel>& made);
    /// Before the program maps the pages of its doorbells. @throws failure, error
    void make_doorbells(unsigned pages);
    /// The page for the next queue pair: one that rings for the fewest.
    std::shared_ptr<const unsigned> next_doorbell() const;
    const memory& doorbell_bytes() const noexcept { return *doorbell_bytes_; } ///< all pages
    std::mutex mutex;                                                          ///< of all of the above

 private:
    void forget_channel(std::uint32_t number, const std::weak_ptr<channel>& which);

    const connection node_end_;
    const descriptor doorbell_pages_; ///< a memfd
    std::unique_ptr<mapped_pages> mapped_doorbells_;
    std::optional<memory> doorbell_bytes_;
    std::vector<std::shared_ptr<const unsigned>> doorbells_; ///< numbers of pages; queue pairs share them
    std::uint32_t last_handle_ = 0;
};

/// Lets go of a completion queue's notifications. @pre the mutex of the context is held
void stop_telling(context& in, completions& of);

} // namespace weftio::verbs
