// What messages of rtnetlink and of generic netlink are made of.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weftio::dpdk {

/// Calls `visit(type, data, bytes)` for each attribute.
template <class Visit>
void for_each_attribute(const rtattr* attribute, std::size_t bytes, Visit&& visit) noexcept
{
    for (auto left = static_cast<int>(bytes); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
        visit(attribute->rta_type & NLA_TYPE_MASK, RTA_DATA(attribute), RTA_PAYLOAD(attribute));
}

inline std::uint32_t number_in(const void* data, std::size_t bytes) noexcept
{
    std::uint32_t number = 0;
    std::memcpy(&number, data, std::min(bytes, sizeof number));
    return number;
}

/// Room for one message. The longest that is asked for, the report about an interface, has some 2 KiB.
struct netlink_answer {
    alignas(nlmsghdr) std::array<std::byte, 8192> bytes;

    /// Receives a message of the kernel's. Returns nullptr and sets errno on failure: EBADMSG if it is cut.
    const nlmsghdr* receive(int socket, int flags) noexcept
    {
        iovec piece{bytes.data(), bytes.size()};
        msghdr whole{};
        whole.msg_iov = &piece;
        whole.msg_iovlen = 1;
        const ssize_t got = ::recvmsg(socket, &whole, flags);
        const auto* message = reinterpret_cast<const nlmsghdr*>(bytes.data());
        if (got >= 0 && !NLMSG_OK(message, static_cast<std::size_t>(got)))
            errno = EBADMSG;
        return got >= 0 && NLMSG_OK(message, static_cast<std::size_t>(got)) ? message : nullptr;
    }
};

} // namespace weftio::dpdk
