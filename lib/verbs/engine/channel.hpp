// Where a program reads events: a descriptor that is its own, from which it reads one record at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include <sys/types.h>

namespace weftio::verbs {

/// A descriptor of the engine's, closed at the end.
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

/// The identity of an open socket, whatever its numbers are (SO_COOKIE). 0: the descriptor is none.
std::uint64_t identity_of(int number) noexcept;

/// Whether the other end of a socket has been closed.
bool has_hung_up(int number) noexcept;

/// A connection within the process, of which the program gets one end. Records stay whole.
struct connection {
    descriptor ours;
    int program = -1; ///< number of the program's end, which is the program's: to duplicate and close as it likes
    std::uint64_t identity = 0; ///< of the program's end
};
/// @param flags  O_CLOEXEC, O_NONBLOCK: of the program's end  @throws failure EMFILE, ENFILE, ENOMEM
connection make_connection(int flags);

/// Records of one size, in order. Any thread.
class event_channel {
 public:
    /// @param record_bytes  8 or 16; the first 8 of a record name the object that it is about
    /// @throws failure
    explicit event_channel(std::size_t record_bytes);

    /// Number of the program's end.
    int program() const noexcept { return connection_.program; }
    /// Our end, which hears when the program has closed all of its own (EPOLLHUP).
    int ours() const noexcept { return connection_.ours.number(); }
    /// Tells the program. Never blocks: what finds no room waits for flush().
    void push(std::span<const std::byte> record);
    /// Takes back the records about an object that the program has not read. Returns how many.
    std::uint32_t withdraw(std::uint64_t object);
    /// Tries again what found no room. Returns whether something still waits.
    bool flush();

 private:
    using record = std::vector<std::byte>;
    bool send(const record& one) const noexcept;
    void send_waiting() noexcept;
    void take_back_unread(std::deque<record>& into);

    const std::size_t record_bytes_;
    const connection connection_;
    std::mutex mutex_;
    std::deque<record> waiting_;
};

} // namespace weftio::verbs
