// Event channels: a program reads events from its own descriptor, one record at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include <sys/types.h>

namespace weftio::verbs {

/// A descriptor that the engine owns. The destructor closes it.
class descriptor {
 public:
    descriptor() = default;
    explicit descriptor(int number) noexcept : number_(number) {}
    descriptor(descriptor&& other) noexcept : number_(other.release()) {}
    descriptor& operator=(descriptor&& other) noexcept;
    ~descriptor();
    int number() const noexcept { return number_; }
    int release() noexcept;

 private:
    int number_ = -1;
};

/// Moves a descriptor of the engine to a number above the program's limit (ulimit -n), if the hard limit allows it:
/// those below are the program's. Returns it as it is otherwise.
descriptor out_of_the_way(descriptor own) noexcept;

/// The identity of an open socket, the same for all its descriptors (SO_COOKIE). 0: the descriptor is not a socket.
std::uint64_t identity_of(int number) noexcept;

/// Whether the other end of a socket has been closed.
bool has_hung_up(int number) noexcept;

/// A socket pair within the process; the program gets one end. It keeps record boundaries.
struct connection {
    descriptor ours;
    int program = -1;           ///< number of the program's end; the program may duplicate and close it freely
    std::uint64_t identity = 0; ///< identity of the program's end
};
/// @param flags  O_CLOEXEC, O_NONBLOCK for the program's end  @param lowest  of its number, where the limit allows it
/// @throws failure EMFILE, ENFILE, ENOMEM
connection make_connection(int flags, int lowest = 0);

/// Records of one size, in order. Any thread.
class event_channel {
 public:
    /// @param record_bytes  8 or 16; the first 8 bytes of a record name its object
    /// @throws failure
    explicit event_channel(std::size_t record_bytes);

    /// Number of the program's end.
    int program() const noexcept { return connection_.program; }
    /// Our end, which gets EPOLLHUP when the program has closed all descriptors of its end.
    int ours() const noexcept { return connection_.ours.number(); }
    /// Sends a record to the program. Never blocks: a record that finds no room waits for flush().
    void push(std::span<const std::byte> record);
    /// Removes the unread records about an object. Returns how many.
    std::uint32_t withdraw(std::uint64_t object);
    /// Sends records that found no room before. Returns whether some still wait.
    bool flush();

 private:
    using record = std::vector<std::byte>;
    bool send(std::span<const std::byte> one) const noexcept;
    void send_waiting() noexcept;
    void take_back_unread(std::deque<record>& into);

    const std::size_t record_bytes_;
    const connection connection_;
    std::mutex mutex_;
    std::deque<record> waiting_;
};

} // namespace weftio::verbs
