#include "rdma_cm/commands.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "core/guarded.hpp"
#include "core/log.hpp"
#include "engine/failure.hpp"
#include "engine/verbs_values.hpp"
#include "rdma_cm/service.hpp"

namespace weftio::verbs::rdma_cm {

command::command(const void* written, std::size_t bytes)
{
    require(bytes >= sizeof header_, EINVAL);
    require(core::guarded_copy(&header_, written, sizeof header_), EFAULT);
    require(header_.in <= bytes - sizeof header_ && header_.in <= bytes_.size(), EINVAL);
    require(core::guarded_copy(bytes_.data(), static_cast<const std::byte*>(written) + sizeof header_, header_.in),
            EFAULT);
}

template <class Response>
void command::respond_at(std::uint64_t to, const Response& what, std::size_t least) const
{
    require(room() >= least, ENOSPC);
    require(core::guarded_copy(reinterpret_cast<void*>(to), &what, std::min(room(), sizeof what)), EFAULT);
}

namespace {

template <class Address>
socket_address required_address(const Address& from, std::size_t bytes)
{
    const auto all = std::as_bytes(std::span(&from, 1));
    const auto found = read_address(all.first(std::min(bytes, all.size())));
    require(found.has_value(), EINVAL);
    return *found;
}

/// A source address may be missing.
template <class Address>
std::optional<socket_address> optional_address(const Address& from, std::size_t bytes)
{
    const auto all = std::as_bytes(std::span(&from, 1));
    return read_address(all.first(std::min(bytes, all.size())));
}

std::span<const std::uint8_t> data_of(const std::uint8_t (&bytes)[RDMA_MAX_PRIVATE_DATA], std::size_t length)
{
    return std::span(bytes).first(std::min<std::size_t>(length, RDMA_MAX_PRIVATE_DATA));
}

void create_id(const command& what, service& of, file& in, int number)
{
    constexpr std::uint8_t datagrams = 4; // enum ibv_qp_type
    const auto asked = what.request<rdma_ucm_create_id>();
    const auto space = static_cast<cm::port_space>(asked.ps);
    bool is_datagrams = false;
    switch (asked.ps) {
        case RDMA_PS_TCP: break;
        case RDMA_PS_UDP:
        case RDMA_PS_IPOIB: is_datagrams = true; break;
        case RDMA_PS_IB: is_datagrams = asked.qp_type == datagrams; break;
        default: throw failure{EINVAL};
    }
    const std::uint32_t made = of.create(in, asked.uid, space, is_datagrams);
    try {
        what.respond_at(asked.response, rdma_ucm_create_id_resp{.id = made});
    } catch (...) {
        of.destroy(in, number, made);
        throw;
    }
}

void destroy_id(const command& what, service& of, file& in, int number)
{
    require(what.room() >= sizeof(rdma_ucm_destroy_id_resp), ENOSPC);
    const auto asked = what.request<rdma_ucm_destroy_id>();
    what.respond(rdma_ucm_destroy_id_resp{.events_reported = of.destroy(in, number, asked.id)});
}

void bind_ip(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_bind_ip>();
    of.bind(of.find(in, asked.id), required_address(asked.addr, sizeof asked.addr));
}

void bind(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_bind>();
    require(asked.reserved == 0, EINVAL);
    of.bind(of.find(in, asked.id), required_address(asked.addr, asked.addr_size));
}

/// The program's number is an int.
std::chrono::milliseconds timeout_of(std::uint32_t asked)
{
    return std::chrono::milliseconds(static_cast<std::int32_t>(asked));
}

void resolve_ip(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_resolve_ip>();
    of.resolve_address(of.find(in, asked.id), optional_address(asked.src_addr, sizeof asked.src_addr),
                       required_address(asked.dst_addr, sizeof asked.dst_addr), timeout_of(asked.timeout_ms));
}

void resolve_addr(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_resolve_addr>();
    require(asked.reserved == 0, EINVAL);
    of.resolve_address(of.find(in, asked.id), optional_address(asked.src_addr, asked.src_size),
                       required_address(asked.dst_addr, asked.dst_size), timeout_of(asked.timeout_ms));
}

void resolve_route(const command& what, service& of, file& in, int)
{
    of.resolve_route(of.find(in, what.request<rdma_ucm_resolve_route>().id));
}

void connect(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_connect>();
    require(asked.conn_param.valid != 0, EINVAL);
    of.connect(of.find(in, asked.id), asked.conn_param);
}

void listen(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_listen>();
    of.listen(of.find(in, asked.id), asked.backlog);
}

void accept(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_accept>();
    of.accept(of.find(in, asked.id), asked.uid, asked.conn_param);
}

void reject(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_reject>();
    of.reject(of.find(in, asked.id), asked.reason, data_of(asked.private_data, asked.private_data_len));
}

void disconnect(const command& what, service& of, file& in, int)
{
    of.disconnect(of.find(in, what.request<rdma_ucm_disconnect>().id));
}

void init_qp_attr(const command& what, service& of, file& in, int)
{
    const auto asked = what.request<rdma_ucm_init_qp_attr>();
    const identifier& one = of.find(in, asked.id);
    require(one.device.has_value(), EINVAL);
    what.respond(attributes_for(one, of.device_of(one), asked.qp_state));
}

/// An option of this size at this address.
template <class Value>
Value option_value(const rdma_ucm_set_option& asked)
{
    Value made{};
    require(asked.optlen == sizeof made, EINVAL);
    require(core::guarded_copy(&made, reinterpret_cast<const void*>(asked.optval), sizeof made), EFAULT);
    return made;
}

void set_option(const command& what, service& of, file& in, int)
{
    constexpr std::uint8_t most_timeout = 31;
    const auto asked = what.request<rdma_ucm_set_option>();
    identifier& one = of.find(in, asked.id);
    if (asked.level == RDMA_OPTION_IB && asked.optname == RDMA_OPTION_IB_PATH)
        return of.resolve_route(one); // there is one way only
    require(asked.level == RDMA_OPTION_ID, ENOSYS);
    switch (asked.optname) {
        case RDMA_OPTION_ID_TOS: one.traffic_class = option_value<std::uint8_t>(asked); return;
        case RDMA_OPTION_ID_REUSEADDR: {
            const bool reuses = option_value<std::uint32_t>(asked) != 0;
            require(one.now == phase::idle || (reuses && one.now != phase::listening), EINVAL);
            one.reuses_address = reuses;
            return;
        }
        case RDMA_OPTION_ID_AFONLY: {
            const bool only = option_value<std::uint32_t>(asked) != 0;
            require(one.now == phase::idle || one.now == phase::bound, EINVAL);
            one.family_only = only;
            return;
        }
        case RDMA_OPTION_ID_ACK_TIMEOUT: {
            const auto code = option_value<std::uint8_t>(asked);
            require(code <= most_timeout, EINVAL);
            one.ack_timeout = code;
            return;
        }
        default: throw failure{ENOSYS};
    }
}

void notify(const command& what, service& of, file& in, int)
{
    constexpr std::uint32_t communication_established = 4; // IBV_EVENT_COMM_EST
    const auto asked = what.request<rdma_ucm_notify>();
    identifier& one = of.find(in, asked.id);
    require(asked.event == communication_established, EINVAL);
    of.notice(one);
}

void join_group(const command& what, service& of, file& in, int number, std::uint32_t id, std::uint64_t user_handle,
                const socket_address& group)
{
    require(what.room() >= sizeof(rdma_ucm_create_id_resp), ENOSPC);
    const std::uint32_t made = of.join(of.find(in, id), user_handle, group);
    try {
        what.respond(rdma_ucm_create_id_resp{.id = made});
    } catch (...) {
        of.leave(in, number, made);
        throw;
    }
}

void join_ip_mcast(const command& what, service& of, file& in, int number)
{
    const auto asked = what.request<rdma_ucm_join_ip_mcast>();
    join_group(what, of, in, number, asked.id, asked.uid, required_address(asked.addr, sizeof asked.addr));
}

void join_mcast(const command& what, service& of, file& in, int number)
{
    const auto asked = what.request<rdma_ucm_join_mcast>();
    require(asked.join_flags < RDMA_MC_JOIN_FLAG_RESERVED, EINVAL);
    join_group(what, of, in, number, asked.id, asked.uid, required_address(asked.addr, asked.addr_size));
}

void leave_mcast(const command& what, service& of, file& in, int number)
{
    require(what.room() >= sizeof(rdma_ucm_destroy_id_resp), ENOSPC);
    const auto asked = what.request<rdma_ucm_destroy_id>();
    what.respond(rdma_ucm_destroy_id_resp{.events_reported = of.leave(in, number, asked.id)});
}

void migrate_id(const command& what, service& of, file& in, int)
{
    require(what.room() >= sizeof(rdma_ucm_migrate_resp), ENOSPC);
    const auto asked = what.request<rdma_ucm_migrate_id>();
    what.respond(rdma_ucm_migrate_resp{.events_reported = of.migrate(in, static_cast<int>(asked.fd), asked.id)});
}

constexpr std::uint16_t default_partition_be = 0xffff;
constexpr std::uint32_t no_index = UINT32_MAX; // librdmacm then finds the device by its GUID

void copy_address(const socket_address& from, __kernel_sockaddr_storage& to, std::uint16_t& bytes)
{
    std::array<std::byte, most_address_bytes> made{};
    bytes = static_cast<std::uint16_t>(write_address(from, made));
    std::memcpy(&to, made.data(), bytes);
}

rdma_ucm_query_addr_resp describe_addresses(const service& of, const identifier& one)
{
    rdma_ucm_query_addr_resp says{};
    copy_address(one.local, says.src_addr, says.src_size);
    copy_address(one.remote, says.dst_addr, says.dst_size);
    says.ibdev_index = no_index;
    if (!one.device)
        return says;
    says.node_guid = guid_of(of.device_of(one));
    says.port_num = 1;
    says.pkey = default_partition_be;
    return says;
}

rdma_ucm_query_addr_resp describe_gids(const service& of, const identifier& one)
{
    rdma_ucm_query_addr_resp says = describe_addresses(of, one);
    const auto copy = [&](const net::roce_gid& gid, std::uint16_t port, __kernel_sockaddr_storage& to) {
        std::array<std::byte, most_address_bytes> made{};
        const std::size_t bytes = write_infiniband(gid, cm::service_of(one.space, port), made);
        std::memset(&to, 0, sizeof to);
        std::memcpy(&to, made.data(), bytes);
        return static_cast<std::uint16_t>(bytes);
    };
    says.src_size = copy(one.route.local, one.local.port, says.src_addr);
    says.dst_size = copy(one.route.peer, one.remote.port, says.dst_addr);
    return says;
}

constexpr std::uint8_t exactly = 2; // selector of a value in a path record
constexpr std::uint8_t rate_100_gb = 16, packet_life = 18;

std::uint8_t code_of_mtu(const node& device)
{
    return static_cast<std::uint8_t>(std::countr_zero(device.rdma.most_path_mtu()) - 7);
}

/// rdma_ucm_query_path_resp with one path.
struct path_response {
    std::uint32_t paths = 0, reserved = 0;
    ib_path_rec_data path{};
};
static_assert(sizeof(rdma_ucm_query_path_resp) == offsetof(path_response, path));

/// A path record as it is on an InfiniBand wire (IBTA 15.2.5.16).
path_response describe_path(const service& of, const identifier& one)
{
    constexpr std::uint32_t global_primary_bidirectional = 1 | 1u << 1 | 1u << 3 | 1u << 5;
    constexpr std::size_t peer_at = 8, local_at = 24, hop_limit_at = 47, traffic_class_at = 48, path_count_at = 49,
                          partition_at = 50, mtu_at = 54, rate_at = 55, life_at = 56;
    path_response says{};
    if (one.now < phase::routed || !one.device)
        return says;
    says.paths = 1;
    says.path.flags = global_primary_bidirectional;
    std::array<std::uint8_t, 64> record{};
    std::copy(one.route.peer.begin(), one.route.peer.end(), &record[peer_at]);
    std::copy(one.route.local.begin(), one.route.local.end(), &record[local_at]);
    record[hop_limit_at] = 64;
    record[traffic_class_at] = one.traffic_class;
    record[path_count_at] = 0x81; // reversible, one path
    record[partition_at] = record[partition_at + 1] = 0xff;
    record[mtu_at] = static_cast<std::uint8_t>(exactly << 6 | code_of_mtu(of.device_of(one)));
    record[rate_at] = exactly << 6 | rate_100_gb;
    record[life_at] = exactly << 6 | packet_life;
    std::memcpy(says.path.path_rec, record.data(), record.size());
    return says;
}

void query(const command& what, service& of, file& in, int)
{
    constexpr std::size_t without_index = offsetof(rdma_ucm_query_addr_resp, ibdev_index);
    const auto asked = what.request<rdma_ucm_query>();
    const identifier& one = of.find(in, asked.id);
    switch (asked.option) {
        case RDMA_USER_CM_QUERY_ADDR: return what.respond(describe_addresses(of, one), without_index);
        case RDMA_USER_CM_QUERY_GID: return what.respond(describe_gids(of, one), without_index);
        case RDMA_USER_CM_QUERY_PATH: return what.respond(describe_path(of, one), sizeof(rdma_ucm_query_path_resp));
        default: throw failure{ENOSYS};
    }
}

void query_route(const command& what, service& of, file& in, int)
{
    const identifier& one = of.find(in, what.request<rdma_ucm_query>().id);
    rdma_ucm_query_route_resp says{};
    says.ibdev_index = no_index;
    const auto copy = [](const socket_address& from, sockaddr_in6& to) {
        std::array<std::byte, most_address_bytes> made{};
        std::memcpy(&to, made.data(), std::min(write_address(from, made), sizeof to));
        std::memcpy(&to, made.data(), sizeof to);
    };
    copy(one.local, says.src_addr);
    copy(one.remote, says.dst_addr);
    if (one.device) {
        const node& device = of.device_of(one);
        says.node_guid = guid_of(device);
        says.port_num = 1;
        ib_user_path_rec& path = says.ib_route[0];
        std::copy(one.route.peer.begin(), one.route.peer.end(), path.dgid);
        std::copy(one.route.local.begin(), one.route.local.end(), path.sgid);
        path.pkey = default_partition_be;
        path.reversible = 1;
        path.numb_path = 1;
        path.hop_limit = 64;
        path.traffic_class = one.traffic_class;
        path.mtu_selector = path.rate_selector = path.packet_life_time_selector = exactly;
        path.mtu = code_of_mtu(device);
        path.rate = rate_100_gb;
        path.packet_life_time = packet_life;
        says.num_paths = one.now < phase::routed ? 0 : 1;
    }
    what.respond(says, offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

void not_known(const command&, service&, file&, int)
{
    throw failure{ENOSYS};
}

/// By number. GET_EVENT is not here: it waits.
constexpr void (*const functions[])(const command&, service&, file&, int) = {
    create_id,     destroy_id,  bind_ip,    resolve_ip,   resolve_route, query_route,  connect,    listen,
    accept,        reject,      disconnect, init_qp_attr, not_known,     not_known,    set_option, notify,
    join_ip_mcast, leave_mcast, migrate_id, query,        bind,          resolve_addr, join_mcast};
static_assert(std::size(functions) == RDMA_USER_CM_CMD_JOIN_MCAST + 1);

} // namespace

void command::execute(service& of, file& in, int number) const
{
    require(header_.cmd < std::size(functions), EINVAL);
    functions[header_.cmd](*this, of, in, number);
}

} // namespace weftio::verbs::rdma_cm
