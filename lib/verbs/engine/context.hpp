// One open node: the objects that the program makes by its commands, until it closes the last descriptor of the node.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "channel.hpp"
#include "node.hpp"
#include "objects.hpp"
#include "open_file.hpp"

namespace weftio::verbs {

/// Shared memory that can be mapped several times; the destructor unmaps it.
class shared_pages {
 public:
    /// @throws failure
    explicit shared_pages(std::size_t bytes);
    shared_pages(const shared_pages&) = delete;
    shared_pages& operator=(const shared_pages&) = delete;
    ~shared_pages();

    void* begin() const noexcept { return at_; }
    /// Maps a part once more, as mmap() would. @param wish, protection, flags  as of mmap()
    /// @return the address  @throws failure
    void* map_again(std::size_t offset, std::size_t bytes, void* wish, int protection, int flags) const;

 private:
    void* at_;
    std::size_t bytes_;
    descriptor file_; ///< where mremap() cannot map memory again, as under valgrind
};

/// Any thread may call; commands are executed one at a time.
class context final : public open_file {
 public:
    /// @param flags  of open()  @throws failure
    context(node& of, int flags);
    ~context() override;

    ssize_t execute(int number, const void* command, std::size_t bytes) noexcept override;
    int control(unsigned long request, const void* argument) noexcept override; ///< see methods.hpp
    int map(void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address) noexcept override;
    /// Polls the objects and sends their events to the program.
    void poll() noexcept override;

    // Used by the commands.
    node& of;
    std::optional<event_channel> asynchronous; ///< set by GET_CONTEXT
    std::uint8_t cqe_version = 0;
    bool link_was_up = false; ///< link state that was reported to the program
    table<domain> domains;
    table<region> regions;
    table<window> windows;
    table<channel> channels; ///< by the number of the program's descriptor
    table<completions> completion_queues;
    table<shared> shared_queues;
    table<pair> pairs;
    table<address> addresses;
    std::uint32_t next_handle() noexcept { return ++last_handle_; }
    /// The errno for a missing handle, as in the kernel: EINVAL if an object of another kind has it, else ENOENT.
    int why_missing(std::uint32_t handle) const;
    /// Removes the channel when the program has closed its end.
    void watch_channel(std::uint32_t number, const std::shared_ptr<channel>& made);
    /// Called before the program maps its doorbell pages. @throws failure, error
    void make_doorbells(unsigned pages);
    /// The doorbell page for the next queue pair: the one with the fewest queue pairs.
    std::shared_ptr<const unsigned> next_doorbell() const;
    const memory& doorbell_bytes() const noexcept { return *doorbell_bytes_; } ///< all pages
    /// Logs accesses to memory that is stale. @pre the mutex is held
    void tell_stale();
    std::mutex mutex; ///< guards all members above

 private:
    void forget_channel(std::uint32_t number, const std::weak_ptr<channel>& which);

    const shared_pages doorbell_pages_;
    std::optional<memory> doorbell_bytes_;
    std::vector<std::shared_ptr<const unsigned>> doorbells_; ///< numbers of pages; queue pairs share them
    std::uint32_t last_handle_ = 0;
};

} // namespace weftio::verbs
