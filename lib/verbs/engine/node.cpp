#include "node.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "verbs_values.hpp"

namespace weftio::verbs {

namespace {

// Limits of the software NIC, in verbs' terms.
constexpr std::uint32_t most_pairs = 16384, most_blocks = 32768, most_completions = (1u << 22) - 1,
                        most_groups = 1u << 16, most_members = 240, most_regions = 1u << 24, most_segments = 30,
                        most_reads = 16;

// Values of verbs that the kernel's user headers do not define.
constexpr std::uint8_t port_active = 4, link_up = 5, link_ethernet = 2, width_4x = 2, speed_25_gb = 32;
constexpr std::uint32_t atomic_within_device = 1;
constexpr std::uint32_t ip_based_gids = 1u << 26;
constexpr std::uint32_t longest_message = 1u << 31;
constexpr std::uint32_t length_of_gid_table = 16; // entries behind the device's addresses are empty

std::uint8_t code_of_mtu(std::uint32_t bytes) noexcept
{
    return static_cast<std::uint8_t>(std::countr_zero(bytes) - 7); // 256 is 1, 4096 is 5
}

/// The sysfs format of an address that inet_pton() reads; IPv4 as ::ffff:a.b.c.d.
std::string long_form(const std::string& address)
{
    std::array<std::uint8_t, 16> gid{};
    if (inet_pton(AF_INET, address.c_str(), &gid[12]) == 1)
        gid[10] = gid[11] = 0xff;
    else
        inet_pton(AF_INET6, address.c_str(), gid.data());
    std::string text;
    for (std::size_t at = 0; at != gid.size(); at += 2)
        text += fmt::format("{}{:02x}{:02x}", at == 0 ? "" : ":", gid[at], gid[at + 1]);
    return text;
}

/// The system's network interface behind a port, if there is one: programs query such interfaces by name. Options of
/// the port stand behind a comma.
std::string interface_of(const std::string& spec)
{
    constexpr std::string_view kinds[] = {"iface:", "tap:"};
    for (const std::string_view kind : kinds)
        if (spec.starts_with(kind))
            return spec.substr(kind.size(), spec.find(',') - kind.size());
    return {};
}

} // namespace

std::uint64_t guid_of(const node& of) noexcept
{
    const auto mac = of.port.mac();
    const std::uint8_t bytes[8] = {
        static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    return std::bit_cast<std::uint64_t>(bytes);
}

ib_uverbs_query_device_resp describe_device(const node& of) noexcept
{
    ib_uverbs_query_device_resp says{};
    says.fw_ver = std::uint64_t{firmware[0]} << 32 | firmware[1] << 16 | firmware[2];
    says.node_guid = guid_of(of);
    says.sys_image_guid = says.node_guid;
    says.max_mr_size = ~std::uint64_t{0};
    says.page_size_cap = 0xfffff000;
    says.vendor_id = 0x02c9;
    says.vendor_part_id = 0x1021; // ConnectX-7
    says.max_qp = most_pairs;
    says.max_qp_wr = most_blocks;
    says.device_cap_flags = IB_UVERBS_DEVICE_CURR_QP_STATE_MOD | IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
                            IB_UVERBS_DEVICE_RC_RNR_NAK_GEN | IB_UVERBS_DEVICE_BAD_PKEY_CNTR |
                            IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS |
                            IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B;
    says.max_sge = most_segments;
    says.max_sge_rd = most_segments;
    says.max_srq = most_pairs;
    says.max_srq_wr = most_shared_receives;
    says.max_srq_sge = most_shared_segments;
    says.max_cq = 1u << 16;
    says.max_cqe = most_completions;
    says.max_mr = most_regions;
    says.max_mw = most_regions;
    says.max_pd = most_regions;
    says.max_ah = most_regions;
    says.max_mcast_grp = most_groups;
    says.max_mcast_qp_attach = most_members;
    says.max_total_mcast_qp_attach = most_groups * most_members;
    says.max_qp_rd_atom = most_reads;
    says.max_qp_init_rd_atom = most_reads;
    says.max_res_rd_atom = most_reads * most_pairs;
    says.atomic_cap = atomic_within_device;
    says.max_pkeys = 1;
    says.local_ca_ack_delay = 16;
    says.phys_port_cnt = 1;
    return says;
}

ib_uverbs_query_port_resp describe_port(const node& of)
{
    ib_uverbs_query_port_resp says{};
    says.port_cap_flags = ip_based_gids;
    says.max_msg_sz = longest_message;
    says.gid_tbl_len = length_of_gid_table;
    says.pkey_tbl_len = 1;
    says.state = of.port.link_up() ? port_active : 1;
    says.max_mtu = code_of_mtu(4096);
    says.active_mtu = code_of_mtu(of.rdma.most_path_mtu());
    says.active_width = width_4x;
    says.active_speed = speed_25_gb;
    says.phys_state = of.port.link_up() ? link_up : 3;
    says.link_layer = link_ethernet;
    return says;
}

/// Each page has two doorbells. There are as many pages as an idle engine polls in one turn, or as many as the program
/// requests.
mlx5_ib_alloc_ucontext_resp describe_context(const node& of, const mlx5_ib_alloc_ucontext_req_v2& asked) noexcept
{
    constexpr std::uint32_t least_doorbells = 128, most_doorbells = 512;
    mlx5_ib_alloc_ucontext_resp says{};
    says.qp_tab_size = 1u << 17;
    says.bf_reg_size = of.doorbell_bytes == 64 ? 512 : 0; // 0: 8-byte doorbells, one in each page
    says.tot_bfregs = std::clamp(asked.total_num_bfregs / 4 * 4, least_doorbells, most_doorbells);
    says.cache_line_size = 64;
    says.max_sq_desc_sz = 63 * 16; // an entry's number of segments has 6 bits
    says.max_rq_desc_sz = 512;
    says.max_send_wqebb = most_blocks;
    says.max_recv_wr = most_blocks;
    says.max_srq_recv_wr = most_shared_receives;
    says.num_ports = 1;
    says.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH; // else libmlx5 resolves MACs by Linux's neighbor table
    says.cqe_version = std::min<std::uint8_t>(asked.max_cqe_version, 1);
    says.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
    says.log_uar_size = 12;
    says.num_uars_per_page = 1;
    return says;
}

device_description describe_files(const node& of, unsigned number)
{
    device_description says;
    says.name = fmt::format("mlx5_{}", number);
    says.guid = be64toh(guid_of(of));
    says.firmware = fmt::format("{}.{}.{:04}", firmware[0], firmware[1], firmware[2]);
    says.mtu_bytes = of.port.mtu();
    says.mac = of.port.mac();
    for (const std::string& address : of.rdma.gids())
        says.gids.push_back({.gid = long_form(address), .interface = interface_of(of.port.spec())});
    while (says.gids.size() < length_of_gid_table)
        // Linux gives EINVAL for the type of such an entry, of which libibverbs makes this.
        says.gids.push_back({.gid = long_form("::"), .type = "IB/RoCE v1", .interface = {}});
    return says;
}

} // namespace weftio::verbs
