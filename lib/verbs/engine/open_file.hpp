// What an open node is to the program: a descriptor whose calls are executed here.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "channel.hpp"

namespace weftio::verbs {

/// Any thread. The calls return a negative errno on failure.
class open_file {
 public:
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    virtual ~open_file() = default;

    /// The program's descriptor as created, and its identity.
    int program() const noexcept { return end_.program; }
    std::uint64_t identity() const noexcept { return end_.identity; }
    /// Our end, which is notified when the program has closed all descriptors of its end.
    int ours() const noexcept { return end_.ours.number(); }

    /// Executes a write(): returns `bytes`. @param number  the program's descriptor  @param bytes  length of the
    /// program's buffer at `command`
    virtual ssize_t execute(int number, const void* command, std::size_t bytes) noexcept = 0;
    /// Executes an ioctl().
    virtual int control(unsigned long, const void*) noexcept { return -ENOTTY; }
    /// Executes an mmap(): returns 0.
    virtual int map(void*, std::size_t, int, int, off_t, void**) noexcept { return -ENODEV; }
    /// Looks for what does not notify. Returns at once while a command is executed.
    virtual void poll() noexcept {}

 protected:
    /// @param flags  of open()  @param lowest  number of the program's descriptor  @throws failure
    explicit open_file(int flags, int lowest = 0) : end_(make_connection(flags, lowest)) {}

 private:
    const connection end_;
};

} // namespace weftio::verbs
