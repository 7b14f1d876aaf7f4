// The commands that librdmacm writes (rdma/rdma_user_cm.h).
#pragma once

#include <rdma/rdma_user_cm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weftio::verbs::rdma_cm {

class file;
class service;

/// A command, copied once, because the program may change its own copy at any time.
class command {
 public:
    /// @throws failure EINVAL, EFAULT
    command(const void* written, std::size_t bytes);

    bool is_get_event() const noexcept { return header_.cmd == RDMA_USER_CM_CMD_GET_EVENT; }
    /// Address of the program's buffer for the response of a command that begins with it, and its size.
    std::uint64_t response() const noexcept { return request<std::uint64_t>(); }
    std::size_t room() const noexcept { return header_.out; }
    /// Executes any other command. @pre the mutex of the service is held
    /// @param number  the program's descriptor  @throws failure, error
    void execute(service& of, file& in, int number) const;

    /// What the program has omitted is 0.
    template <class Request>
    Request request() const noexcept
    {
        static_assert(sizeof(Request) <= most_bytes);
        Request made;
        std::memcpy(&made, bytes_.data(), sizeof made);
        return made;
    }
    /// Writes a response, cut to the program's buffer. @param least  bytes that it must have room for
    /// @throws failure ENOSPC, EFAULT
    template <class Response>
    void respond(const Response& what, std::size_t least = sizeof(Response)) const
    {
        respond_at(response(), what, least);
    }
    /// The same for a command that does not begin with the address.
    template <class Response>
    void respond_at(std::uint64_t to, const Response& what, std::size_t least = sizeof(Response)) const;

 private:
    static constexpr std::size_t most_bytes = 1024;

    rdma_ucm_cmd_hdr header_{};
    std::array<std::byte, most_bytes> bytes_{}; ///< behind the header
};

} // namespace weftio::verbs::rdma_cm
