// One command as a program writes it to a node (rdma/ib_user_verbs.h): one of two header formats, then a core part and
// a driver part, in the request and in the response.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <rdma/ib_user_verbs.h>

namespace weftio::verbs {

/// Sizes of the core parts of a command, without headers and driver parts. `response` 0: there is no response.
struct command_form {
    std::size_t request = 0, response = 0;
};

/// A command, copied once, because the program may change its own copy at any time.
class call {
 public:
    /// Longest accepted command; all known commands are shorter than half of it.
    static constexpr std::size_t most_bytes = 2048;

    /// @throws failure EINVAL, EFAULT
    call(const void* command, std::size_t bytes);

    bool extended() const noexcept { return extended_; }
    std::uint32_t command() const noexcept { return command_; }
    /// Checks all lengths against the form of the command. Call it once, before the functions below.
    /// @throws failure EINVAL, ENOSPC as ib_uverbs_write() of Linux does
    void require_form(const command_form& form);

    /// The core part of the request. Structs of the old form begin with the address of the response.
    template <class Request>
    Request request() const noexcept
    {
        return read<Request>(core_);
    }
    /// The driver part; what the program has omitted is 0.
    template <class Request>
    Request driver() const noexcept
    {
        return read<Request>(driver_);
    }
    std::size_t driver_bytes() const noexcept { return driver_.size(); }

    /// Writes the response to the program's memory, each part truncated to the program's buffer.
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
    /// Responds to a command that has made an object. If the response cannot be written, calls `undo`, as the kernel
    /// does.
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
    /// Sizes of the program's buffers for the core response and the driver's response.
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
    std::size_t size_ = 0; ///< length of the command
    ib_uverbs_cmd_hdr header_{};
    ib_uverbs_ex_cmd_hdr more_{}; ///< second header of the extended form
    bool extended_ = false;
    std::uint32_t command_ = 0;
    std::span<const std::byte> core_, driver_;
    std::uint64_t core_to_ = 0, driver_to_ = 0;
    std::size_t core_room_ = 0, driver_room_ = 0;
};

} // namespace weftio::verbs
