// One command as a program writes it to a node (rdma/ib_user_verbs.h): two forms of header, a core part and a part of
// the driver, in both directions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <rdma/ib_user_verbs.h>

namespace weftio::verbs {

/// Sizes of the core parts of a command, without headers and without the driver's. `response` 0: it has none.
struct command_form {
    std::size_t request = 0, response = 0;
};

/// A command whose bytes have been copied once: the program may change its own at any time.
class call {
 public:
    /// Longest command that is taken; none that is known has half of it.
    static constexpr std::size_t most_bytes = 2048;

    /// @throws failure EINVAL, EFAULT
    call(const void* command, std::size_t bytes);

    bool extended() const noexcept { return extended_; }
    std::uint32_t command() const noexcept { return command_; }
    /// Checks all lengths against the form of the command. Call it once, before what follows.
    /// @throws failure EINVAL, ENOSPC as ib_uverbs_write() of Linux does
    void require_form(const command_form& form);

    /// The core part of the request. The structs of commands of the old form begin with the address of the response.
    template <class Request>
    Request request() const noexcept
    {
        return read<Request>(core_);
    }
    /// The driver's part; what the program has left out is 0.
    template <class Request>
    Request driver() const noexcept
    {
        return read<Request>(driver_);
    }
    std::size_t driver_bytes() const noexcept { return driver_.size(); }

    /// Writes the response into the program's memory, as much of each part as it has room for.
    /// @throws failure EFAULT
    template <class Core>
    void respond(const Core& core) const
    {
        write(core_to_, &core, std::min(sizeof core, core_room_));
    }
    template <class Core, class Driver>
    void respond(const Core& core, const Driver& of_driver) const
    {
        respond(core);
        write(driver_to_, &of_driver, std::min(sizeof of_driver, driver_room_));
    }
    /// Answers a command that has made something. What the program cannot hear of is undone, as the kernel does it.
    template <class Undo, class... Parts>
    void respond_or(Undo&& undo, const Parts&... parts) const
    {
        try {
            respond(parts...);
        } catch (...) {
            undo();
            throw;
        }
    }
    /// Room for the core response and for the driver's.
    std::size_t core_room() const noexcept { return core_room_; }
    std::size_t driver_room() const noexcept { return driver_room_; }

 private:
    template <class Request>
    static Request read(std::span<const std::byte> from) noexcept
    {
        Request request{};
        std::memcpy(&request, from.data(), std::min(sizeof request, from.size()));
        return request;
    }
    void require_old_form(const command_form& form);
    void require_extended_form(const command_form& form);
    static void write(std::uint64_t to, const void* from, std::size_t bytes);

    std::array<std::byte, most_bytes> bytes_;
    std::size_t size_ = 0; ///< of all bytes
    ib_uverbs_cmd_hdr header_{};
    ib_uverbs_ex_cmd_hdr more_{}; ///< of the extended form
    bool extended_ = false;
    std::uint32_t command_ = 0;
    std::span<const std::byte> core_, driver_;
    std::uint64_t core_to_ = 0, driver_to_ = 0;
    std::size_t core_room_ = 0, driver_room_ = 0;
};

} // namespace weftio::verbs
