#include "dpdk/link_messages.hpp"

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "dpdk/netlink_parts.hpp"

namespace weftio::dpdk {

namespace {

struct request {
    nlmsghdr head{};
    ifinfomsg link{};
    std::array<std::byte, 64> attributes{};

    request(std::uint16_t type, std::uint16_t flags, int index) noexcept
    {
        head.nlmsg_len = NLMSG_LENGTH(sizeof link);
        head.nlmsg_type = type;
        head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
        link.ifi_family = AF_UNSPEC;
        link.ifi_index = index;
    }
    rtattr& add(std::uint16_t type, const void* value, std::uint16_t bytes) noexcept
    {
        auto& attribute = *reinterpret_cast<rtattr*>(reinterpret_cast<std::byte*>(this) + head.nlmsg_len);
        attribute.rta_type = type;
        attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(bytes));
        if (bytes != 0)
            std::memcpy(RTA_DATA(&attribute), value, bytes);
        head.nlmsg_len += RTA_ALIGN(attribute.rta_len);
        return attribute;
    }
};

void read_programs(const void* data, std::size_t bytes, link_report& report) noexcept
{
    for_each_attribute(static_cast<const rtattr*>(data), bytes, [&](int type, const void* id, std::size_t length) {
        constexpr std::array<int, 3> of_place{IFLA_XDP_SKB_PROG_ID, IFLA_XDP_DRV_PROG_ID, IFLA_XDP_HW_PROG_ID};
        const auto place = std::ranges::find(of_place, type);
        if (place != of_place.end())
            report.programs[static_cast<std::size_t>(place - of_place.begin())] = number_in(id, length);
    });
}

/// Parses the report of an interface. Returns nothing for other messages, and for reports that leave out XDP, as those
/// of bridge ports and of wireless events do.
std::optional<link_report> report_in(const nlmsghdr& message) noexcept
{
    if (message.nlmsg_type != RTM_NEWLINK || message.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg)))
        return std::nullopt;
    const auto& link = *static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
    link_report report{.index = link.ifi_index};
    bool tells_of_programs = false;
    for_each_attribute(IFLA_RTA(&link), message.nlmsg_len - NLMSG_LENGTH(sizeof link),
                       [&](int type, const void* data, std::size_t bytes) {
                           if (type == IFLA_NUM_RX_QUEUES)
                               report.receive_queues = number_in(data, bytes);
                           report.has_master = report.has_master || type == IFLA_MASTER;
                           tells_of_programs = tells_of_programs || type == IFLA_XDP;
                           if (type == IFLA_XDP)
                               read_programs(data, bytes, report);
                       });
    return tells_of_programs && link.ifi_family == AF_UNSPEC ? std::optional(report) : std::nullopt;
}

/// A request for a family of generic netlink, by its name.
struct family_request {
    nlmsghdr head{};
    genlmsghdr command{.cmd = CTRL_CMD_GETFAMILY, .version = 1, .reserved = 0};
    rtattr name_head{.rta_len = RTA_LENGTH(sizeof ETHTOOL_GENL_NAME), .rta_type = CTRL_ATTR_FAMILY_NAME};
    char name[RTA_ALIGN(sizeof ETHTOOL_GENL_NAME)] = ETHTOOL_GENL_NAME;
};

/// Calls `visit(type, data, bytes)` for each attribute of a message of generic netlink.
template <class Visit>
void for_each_attribute_of(const nlmsghdr& message, Visit&& visit) noexcept
{
    constexpr std::size_t before = NLMSG_LENGTH(GENL_HDRLEN);
    if (message.nlmsg_type < NLMSG_MIN_TYPE || message.nlmsg_len < before)
        return;
    const auto* first = reinterpret_cast<const rtattr*>(reinterpret_cast<const std::byte*>(&message) + before);
    for_each_attribute(first, message.nlmsg_len - before, visit);
}

/// The number of ethtool's multicast group for notifications; 0: none.
std::uint32_t group_in(const nlmsghdr& family) noexcept
{
    std::uint32_t found = 0;
    auto read_group = [&](int, const void* group, std::size_t bytes) {
        std::string_view name;
        std::uint32_t number = 0;
        for_each_attribute(static_cast<const rtattr*>(group), bytes, [&](int type, const void* data, std::size_t size) {
            if (type == CTRL_ATTR_MCAST_GRP_NAME)
                name = {static_cast<const char*>(data), ::strnlen(static_cast<const char*>(data), size)};
            if (type == CTRL_ATTR_MCAST_GRP_ID)
                number = number_in(data, size);
        });
        if (name == ETHTOOL_MCGRP_MONITOR_NAME)
            found = number;
    };
    for_each_attribute_of(family, [&](int type, const void* data, std::size_t bytes) {
        if (type == CTRL_ATTR_MCAST_GROUPS)
            for_each_attribute(static_cast<const rtattr*>(data), bytes, read_group);
    });
    return found;
}

/// The receive queues in a notification; nothing if it is about something else.
std::optional<unsigned> queues_in(const nlmsghdr& message, int index) noexcept
{
    std::uint32_t about = 0, queues = 0;
    for_each_attribute_of(message, [&](int type, const void* data, std::size_t bytes) {
        if (type == ETHTOOL_A_CHANNELS_HEADER)
            for_each_attribute(static_cast<const rtattr*>(data), bytes,
                               [&](int part, const void* value, std::size_t size) {
                                   if (part == ETHTOOL_A_HEADER_DEV_INDEX)
                                       about = number_in(value, size);
                               });
        if (type == ETHTOOL_A_CHANNELS_RX_COUNT || type == ETHTOOL_A_CHANNELS_COMBINED_COUNT)
            queues += number_in(data, bytes);
    });
    const auto& command = *static_cast<const genlmsghdr*>(NLMSG_DATA(&message));
    return command.cmd == ETHTOOL_MSG_CHANNELS_NTF && about == static_cast<std::uint32_t>(index)
               ? std::optional<unsigned>(queues)
               : std::nullopt;
}

} // namespace

bool link_report::holds(std::uint32_t program) const noexcept
{
    return std::ranges::find(programs, program) != programs.end();
}

link_socket::link_socket(use wanted) noexcept : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE))
{
    sockaddr_nl at{};
    at.nl_family = AF_NETLINK;
    at.nl_groups = wanted == use::notifications ? RTMGRP_LINK : 0;
    if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
        return;
    problem_ = errno;
    if (socket_ >= 0)
        ::close(std::exchange(socket_, -1));
}

link_socket::~link_socket()
{
    if (socket_ >= 0)
        ::close(socket_);
}

std::optional<link_report> link_socket::ask(int index) const noexcept
{
    const request question(RTM_GETLINK, 0, index);
    netlink_answer room;
    const nlmsghdr* message = nullptr;
    if (::send(socket_, &question, question.head.nlmsg_len, 0) > 0)
        message = room.receive(socket_, 0);
    return message ? report_in(*message) : std::nullopt;
}

int link_socket::detach(int index, xdp_place place, int program) const noexcept
{
    constexpr std::array<std::uint32_t, 3> of_place{XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE, XDP_FLAGS_HW_MODE};
    const std::uint32_t flags = XDP_FLAGS_REPLACE | of_place[static_cast<std::size_t>(place)];
    const std::int32_t none = -1, expected = program;
    request wish(RTM_SETLINK, NLM_F_ACK, index);
    const std::uint32_t begin = wish.head.nlmsg_len;
    rtattr& nest = wish.add(NLA_F_NESTED | IFLA_XDP, nullptr, 0);
    wish.add(IFLA_XDP_FD, &none, sizeof none);
    wish.add(IFLA_XDP_EXPECTED_FD, &expected, sizeof expected);
    wish.add(IFLA_XDP_FLAGS, &flags, sizeof flags);
    nest.rta_len = static_cast<std::uint16_t>(wish.head.nlmsg_len - begin);
    netlink_answer room;
    if (::send(socket_, &wish, wish.head.nlmsg_len, 0) < 0)
        return errno;
    const nlmsghdr* message = room.receive(socket_, 0);
    if (!message || message->nlmsg_type != NLMSG_ERROR)
        return message ? EBADMSG : errno;
    return -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error;
}

link_socket::news link_socket::next(link_report& report) const noexcept
{
    netlink_answer room;
    while (true) {
        const nlmsghdr* message = room.receive(socket_, MSG_DONTWAIT);
        if (!message)
            return errno == ENOBUFS || errno == EBADMSG ? news::lost : news::none;
        const std::optional<link_report> found = report_in(*message);
        if (!found)
            continue;
        report = *found;
        return news::link;
    }
}

channel_news::channel_news() noexcept
    : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)), problem_(socket_ < 0 ? errno : 0)
{
    family_request request;
    request.head.nlmsg_len = sizeof request;
    request.head.nlmsg_type = GENL_ID_CTRL;
    request.head.nlmsg_flags = NLM_F_REQUEST;
    netlink_answer room;
    const nlmsghdr* const family =
        ::send(socket_, &request, sizeof request, 0) > 0 ? room.receive(socket_, 0) : nullptr;
    if (const std::uint32_t group = family ? group_in(*family) : 0; group != 0)
        ::setsockopt(socket_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
}

channel_news::~channel_news()
{
    if (socket_ >= 0)
        ::close(socket_);
}

std::optional<unsigned> channel_news::receive_queues(int index) const noexcept
{
    std::optional<unsigned> most;
    netlink_answer room;
    while (const nlmsghdr* message = room.receive(socket_, MSG_DONTWAIT))
        if (message->nlmsg_len >= NLMSG_LENGTH(GENL_HDRLEN))
            if (const std::optional<unsigned> queues = queues_in(*message, index))
                most = std::max(most.value_or(0), *queues);
    return most;
}

} // namespace weftio::dpdk
