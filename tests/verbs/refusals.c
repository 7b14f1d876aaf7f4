/*
 * Calls that fail under weftio-run, for tests/scripts/run_refusals.sh, which compares them with the tables of
 * docs/verbs.md.
 *
 *   refusals --list   prints the names of all calls, as the page has them
 *   refusals NAME     makes the call twice and prints both errno; "-": it did not fail, "none": it failed without errno
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "ends.h"

static struct end one;
static char bytes[256];

/* The errno of a function that returns a pointer, or 0. */
#define OF_POINTER(call) (errno = 0, (call) ? 0 : errno ? errno : -1)
/* The errno of a function that returns it, or -1 and sets it. */
#define OF_NUMBER(call) (errno = 0, of_number(call))

static int of_number(int result)
{
    return result < 0 && errno != 0 ? errno : abs(result);
}

static int reg_mr(unsigned rights)
{
    return OF_POINTER(ibv_reg_mr(pd, memory, sizeof memory, (int)rights));
}

static int create_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr wanted = {.send_cq = one.cq, .recv_cq = one.cq, .cap = {1, 1, 1, 1, 0}, .qp_type = type};
    return OF_POINTER(ibv_create_qp(pd, &wanted));
}

static struct ibv_qp_init_attr_ex extended(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr_ex wanted = {.send_cq = one.cq,
                                         .recv_cq = one.cq,
                                         .cap = {1, 1, 1, 1, 0},
                                         .qp_type = type,
                                         .comp_mask = IBV_QP_INIT_ATTR_PD,
                                         .pd = pd};
    return wanted;
}

static int create_flagged(uint32_t flags)
{
    struct ibv_qp_init_attr_ex wanted = extended(IBV_QPT_RC);
    wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.create_flags = flags;
    return OF_POINTER(ibv_create_qp_ex(context, &wanted));
}

static int create_dv(uint32_t flags)
{
    struct ibv_qp_init_attr_ex wanted = extended(IBV_QPT_RC);
    struct mlx5dv_qp_init_attr more = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS, .create_flags = flags};
    return OF_POINTER(mlx5dv_create_qp(context, &wanted, &more));
}

static int create_dc(enum mlx5dv_dc_type type)
{
    struct ibv_qp_init_attr_ex wanted = extended(IBV_QPT_DRIVER);
    struct mlx5dv_qp_init_attr more = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC, .dc_init_attr = {.dc_type = type}};
    struct ibv_srq unused = {.context = context, .handle = 1};
    if (type == MLX5DV_DCTYPE_DCT)
        wanted.srq = &unused, wanted.cap = (struct ibv_qp_cap){0};
    else
        wanted.cap.max_recv_wr = wanted.cap.max_recv_sge = 0;
    return OF_POINTER(mlx5dv_create_qp(context, &wanted, &more));
}

static int resize_srq(void)
{
    struct ibv_srq_init_attr wanted = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq_attr larger = {.max_wr = 64};
    struct ibv_srq* made = ibv_create_srq(pd, &wanted);
    const int status = OF_NUMBER(ibv_modify_srq(made, &larger, IBV_SRQ_MAX_WR));
    ibv_destroy_srq(made);
    return status;
}

static int create_cq_ex(uint64_t fields)
{
    struct ibv_cq_init_attr_ex wanted = {.cqe = 8, .wc_flags = fields};
    return OF_POINTER(ibv_create_cq_ex(context, &wanted));
}

static int create_dv_cq(struct mlx5dv_cq_init_attr more)
{
    struct ibv_cq_init_attr_ex wanted = {.cqe = 8};
    return OF_POINTER(mlx5dv_create_cq(context, &wanted, &more));
}

static struct ibv_ah_attr way(void)
{
    const struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}};
    return to;
}

static int advise_mr(void)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = 4096, .lkey = mr->lkey};
    return OF_NUMBER(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1));
}

static struct ibv_wq_init_attr receive_ring(void)
{
    const struct ibv_wq_init_attr wanted = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = one.cq};
    return wanted;
}

static int create_dv_wq(void)
{
    struct ibv_wq_init_attr wanted = receive_ring();
    return OF_POINTER(mlx5dv_create_wq(context, &wanted, &(struct mlx5dv_wq_init_attr){0}));
}

static int create_table(void)
{
    struct ibv_wq* ring = &(struct ibv_wq){.context = context, .handle = 1};
    return OF_POINTER(ibv_create_rwq_ind_table(context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &ring}));
}

static int create_matcher(void)
{
    struct {
        struct mlx5dv_flow_match_parameters of;
        uint64_t more[8];
    } mask = {.of = {.match_sz = 64}};
    struct mlx5dv_flow_matcher_attr wanted = {.type = IBV_FLOW_ATTR_NORMAL, .match_mask = &mask.of};
    return OF_POINTER(mlx5dv_create_flow_matcher(context, &wanted));
}

static int create_flow(void)
{
    struct {
        struct ibv_flow_attr attributes;
        struct ibv_flow_spec_eth first;
    } all = {.attributes = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof all, .num_of_specs = 1, .port = 1},
             .first = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof all.first}};
    return OF_POINTER(ibv_create_flow(one.qp, &all.attributes));
}

static int modify_rate(void)
{
    to_state(one.qp, IBV_QPS_RESET);
    to_init(one.qp, all_rights);
    to_rtr(one.qp, one.qp);
    to_rts(one.qp);
    struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000};
    return OF_NUMBER(ibv_modify_qp_rate_limit(one.qp, &limit));
}

static int modify_qp(int mask, struct ibv_qp_attr to)
{
    return OF_NUMBER(ibv_modify_qp(one.qp, &to, mask));
}

static int alternate_path(void)
{
    to_state(one.qp, IBV_QPS_RESET);
    to_init(one.qp, all_rights);
    struct ibv_qp_attr to = rtr_to(one.qp->qp_num);
    to.alt_ah_attr = to.ah_attr;
    to.alt_port_num = 1;
    return modify_qp(rtr_mask_rc | IBV_QP_ALT_PATH, to);
}

static int set_rate(void)
{
    to_state(one.qp, IBV_QPS_RESET);
    to_init(one.qp, all_rights);
    to_rtr(one.qp, one.qp);
    struct ibv_qp_attr to = rts_values();
    to.rate_limit = 1000;
    return modify_qp(rts_mask_rc | IBV_QP_RATE_LIMIT, to);
}

static int open_xrcd(void)
{
    struct ibv_xrcd_init_attr wanted = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    return OF_POINTER(ibv_open_xrcd(context, &wanted));
}

static int open_qp(void)
{
    struct ibv_qp_open_attr wanted = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                      .qp_num = 1,
                                      .qp_type = IBV_QPT_XRC_RECV};
    struct {
        struct ibv_context* of;
        uint64_t more[8];
    } domain = {.of = context};
    wanted.xrcd = (struct ibv_xrcd*)&domain;
    return OF_POINTER(ibv_open_qp(context, &wanted));
}

static int devx_open(void)
{
    struct ibv_device** all = ibv_get_device_list(NULL);
    struct mlx5dv_context_attr wanted = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    const int result = OF_POINTER(mlx5dv_open_device(all[0], &wanted));
    ibv_free_device_list(all);
    return result;
}

static int create_mkey(void)
{
    struct mlx5dv_mkey_init_attr wanted = {
        .pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 1};
    return OF_POINTER(mlx5dv_create_mkey(&wanted));
}

/* Makes the call of this name, or prints all names. */
#define TRY(name, call)                                                                                                \
    do {                                                                                                               \
        if (!wanted)                                                                                                   \
            puts(name);                                                                                                \
        else if (strcmp(wanted, name) == 0)                                                                            \
            return call;                                                                                               \
    } while (0)

enum { other_name = -2, flush_global = 1 << 8, flush_persistent = 1 << 9 }; /* later versions of verbs.h have names */

static int try_memory(const char* wanted)
{
    struct ibv_alloc_dm_attr piece = {.length = 64};
    struct mlx5dv_alloc_dm_attr of_device = {.type = MLX5DV_DM_TYPE_MEMIC},
                                of_steering = {.type = MLX5DV_DM_TYPE_STEERING_SW_ICM};
    TRY("ibv_advise_mr", advise_mr());
    TRY("ibv_alloc_dm", OF_POINTER(ibv_alloc_dm(context, &piece)));
    TRY("mlx5dv_alloc_dm", OF_POINTER(mlx5dv_alloc_dm(context, &piece, &of_device)));
    TRY("mlx5dv_alloc_dm MLX5DV_DM_TYPE_STEERING_SW_ICM", OF_POINTER(mlx5dv_alloc_dm(context, &piece, &of_steering)));
    TRY("ibv_alloc_null_mr", OF_POINTER(ibv_alloc_null_mr(pd)));
    TRY("ibv_reg_mr IBV_ACCESS_FLUSH_GLOBAL", reg_mr(flush_global));
    TRY("ibv_reg_mr IBV_ACCESS_FLUSH_PERSISTENT", reg_mr(flush_persistent));
    TRY("ibv_reg_mr IBV_ACCESS_HUGETLB", reg_mr(IBV_ACCESS_HUGETLB));
    TRY("ibv_reg_mr IBV_ACCESS_ON_DEMAND", reg_mr(IBV_ACCESS_ON_DEMAND));
    TRY("ibv_reg_mr IBV_ACCESS_RELAXED_ORDERING", reg_mr(IBV_ACCESS_RELAXED_ORDERING));
    TRY("ibv_rereg_mr IBV_ACCESS_ON_DEMAND",
        OF_NUMBER(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND)));
    TRY("ibv_import_device", OF_POINTER(ibv_import_device(dup(context->cmd_fd))));
    TRY("ibv_import_dm", OF_POINTER(ibv_import_dm(context, 1)));
    TRY("ibv_import_mr", OF_POINTER(ibv_import_mr(pd, mr->handle)));
    TRY("ibv_import_pd", OF_POINTER(ibv_import_pd(context, pd->handle)));
    return other_name;
}

static int try_queues(const char* wanted)
{
    struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};
    struct ibv_values_ex clock = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct mlx5dv_cq_init_attr compressed = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
                                             .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH},
                               padded = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS,
                                         .flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD};
    struct ibv_wq_init_attr ring = receive_ring();
    TRY("ibv_create_cq_ex IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK",
        create_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
    TRY("mlx5dv_create_cq MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE", create_dv_cq(compressed));
    TRY("mlx5dv_create_cq MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD", create_dv_cq(padded));
    TRY("ibv_modify_cq", OF_NUMBER(ibv_modify_cq(one.cq, &moderation)));
    TRY("ibv_query_rt_values_ex", OF_NUMBER(ibv_query_rt_values_ex(context, &clock)));
    TRY("mlx5dv_get_clock_info", OF_NUMBER(mlx5dv_get_clock_info(context, &(struct mlx5dv_clock_info){0})));
    TRY("ibv_alloc_td", OF_POINTER(ibv_alloc_td(context, &(struct ibv_td_init_attr){0})));
    TRY("ibv_modify_srq IBV_SRQ_MAX_WR", resize_srq());
    TRY("ibv_open_xrcd", open_xrcd());
    TRY("ibv_create_wq", OF_POINTER(ibv_create_wq(context, &ring)));
    TRY("mlx5dv_create_wq", create_dv_wq());
    TRY("ibv_create_rwq_ind_table", create_table());
    return other_name;
}

static int try_pairs(const char* wanted)
{
    TRY("ibv_create_qp IBV_QPT_RAW_PACKET", create_qp(IBV_QPT_RAW_PACKET));
    TRY("ibv_create_qp IBV_QPT_XRC_SEND", create_qp(IBV_QPT_XRC_SEND));
    TRY("ibv_create_qp IBV_QPT_XRC_RECV", create_qp(IBV_QPT_XRC_RECV));
    TRY("ibv_create_qp IBV_QPT_DRIVER", create_qp(IBV_QPT_DRIVER));
    TRY("ibv_create_qp_ex IBV_QP_CREATE_PCI_WRITE_END_PADDING", create_flagged(IBV_QP_CREATE_PCI_WRITE_END_PADDING));
    TRY("mlx5dv_create_qp MLX5DV_DCTYPE_DCI", create_dc(MLX5DV_DCTYPE_DCI));
    TRY("mlx5dv_create_qp MLX5DV_DCTYPE_DCT", create_dc(MLX5DV_DCTYPE_DCT));
    TRY("mlx5dv_create_qp MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE",
        create_dv(MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE));
    TRY("mlx5dv_create_qp MLX5DV_QP_CREATE_SIG_PIPELINING", create_dv(MLX5DV_QP_CREATE_SIG_PIPELINING));
    TRY("mlx5dv_create_qp MLX5DV_QP_CREATE_TUNNEL_OFFLOADS", create_dv(MLX5DV_QP_CREATE_TUNNEL_OFFLOADS));
    TRY("ibv_open_qp", open_qp());
    TRY("ibv_modify_qp IBV_QP_ALT_PATH", alternate_path());
    TRY("ibv_modify_qp IBV_QP_RATE_LIMIT", set_rate());
    TRY("ibv_modify_qp_rate_limit", modify_rate());
    TRY("ibv_set_ece", OF_NUMBER(ibv_set_ece(one.qp, &(struct ibv_ece){.vendor_id = 0x15b3})));
    TRY("mlx5dv_dci_stream_id_reset", OF_NUMBER(mlx5dv_dci_stream_id_reset(one.qp, 0)));
    TRY("mlx5dv_modify_qp_lag_port", OF_NUMBER(mlx5dv_modify_qp_lag_port(one.qp, 1)));
    TRY("mlx5dv_query_qp_lag_port", OF_NUMBER(mlx5dv_query_qp_lag_port(one.qp, &(uint8_t){0}, &(uint8_t){0})));
    TRY("mlx5dv_modify_qp_sched_elem", OF_NUMBER(mlx5dv_modify_qp_sched_elem(one.qp, NULL, NULL)));
    TRY("mlx5dv_modify_qp_udp_sport", OF_NUMBER(mlx5dv_modify_qp_udp_sport(one.qp, 50000)));
    TRY("mlx5dv_reserved_qpn_alloc", OF_NUMBER(mlx5dv_reserved_qpn_alloc(context, &(uint32_t){0})));
    TRY("mlx5dv_sched_node_create", OF_POINTER(mlx5dv_sched_node_create(context, &(struct mlx5dv_sched_attr){0})));
    return other_name;
}

static int try_ways(const char* wanted)
{
    struct ibv_flow_action_esp_attr encryption = {0};
    struct mlx5dv_flow_action_esp more = {0};
    struct ibv_ah_attr to = way();
    TRY("ibv_resolve_eth_l2_from_gid",
        OF_NUMBER(ibv_resolve_eth_l2_from_gid(context, &to, (uint8_t[6]){0}, &(uint16_t){0})));
    TRY("ibv_create_counters", OF_POINTER(ibv_create_counters(context, &(struct ibv_counters_init_attr){0})));
    TRY("ibv_create_flow", create_flow());
    TRY("ibv_create_flow_action_esp", OF_POINTER(ibv_create_flow_action_esp(context, &encryption)));
    TRY("mlx5dv_create_flow_action_esp", OF_POINTER(mlx5dv_create_flow_action_esp(context, &encryption, &more)));
    TRY("mlx5dv_create_flow_action_modify_header", OF_POINTER(mlx5dv_create_flow_action_modify_header(
                                                       context, 8, (uint64_t[]){0}, MLX5DV_FLOW_TABLE_TYPE_NIC_RX)));
    TRY("mlx5dv_create_flow_action_packet_reformat",
        OF_POINTER(mlx5dv_create_flow_action_packet_reformat(context, 8, bytes,
                                                             MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
                                                             MLX5DV_FLOW_TABLE_TYPE_NIC_TX)));
    TRY("mlx5dv_create_flow_matcher", create_matcher());
    TRY("mlx5dv_create_steering_anchor",
        OF_POINTER(mlx5dv_create_steering_anchor(context, &(struct mlx5dv_steering_anchor_attr){0})));
    return other_name;
}

static int try_driver(const char* wanted)
{
    struct mlx5dv_crypto_login_attr_ex credentials = {.credential = bytes, .credential_len = 40};
    struct mlx5dv_devx_umem_in user_memory = {.addr = memory, .size = 4096, .access = all_rights, .pgsz_bitmap = 4096};
    const uint16_t query_hca_cap[8] = {htobe16(0x100)};
    TRY("mlx5dv_alloc_var", OF_POINTER(mlx5dv_alloc_var(context, 0)));
    TRY("mlx5dv_pp_alloc", OF_POINTER(mlx5dv_pp_alloc(context, 16, bytes, 0)));
    TRY("mlx5dv_create_mkey", create_mkey());
    TRY("mlx5dv_crypto_login", OF_NUMBER(mlx5dv_crypto_login(context, &(struct mlx5dv_crypto_login_attr){0})));
    TRY("mlx5dv_crypto_login_create", OF_POINTER(mlx5dv_crypto_login_create(context, &credentials)));
    TRY("mlx5dv_dek_create", OF_POINTER(mlx5dv_dek_create(context, &(struct mlx5dv_dek_init_attr){.pd = pd})));
    TRY("mlx5dv_devx_alloc_uar", OF_POINTER(mlx5dv_devx_alloc_uar(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF)));
    TRY("mlx5dv_devx_alloc_uar MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC",
        OF_POINTER(mlx5dv_devx_alloc_uar(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)));
    TRY("mlx5dv_devx_alloc_msi_vector", OF_POINTER(mlx5dv_devx_alloc_msi_vector(context)));
    TRY("mlx5dv_devx_create_eq", OF_POINTER(mlx5dv_devx_create_eq(context, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_cq_modify", OF_NUMBER(mlx5dv_devx_cq_modify(one.cq, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_cq_query", OF_NUMBER(mlx5dv_devx_cq_query(one.cq, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_create_cmd_comp", OF_POINTER(mlx5dv_devx_create_cmd_comp(context)));
    TRY("mlx5dv_devx_create_event_channel", OF_POINTER(mlx5dv_devx_create_event_channel(context, 0)));
    TRY("mlx5dv_devx_general_cmd", OF_NUMBER(mlx5dv_devx_general_cmd(context, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_general_cmd QUERY_HCA_CAP",
        OF_NUMBER(mlx5dv_devx_general_cmd(context, query_hca_cap, sizeof query_hca_cap, bytes, 16)));
    TRY("mlx5dv_devx_obj_create", OF_POINTER(mlx5dv_devx_obj_create(context, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_qp_modify", OF_NUMBER(mlx5dv_devx_qp_modify(one.qp, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_qp_query", OF_NUMBER(mlx5dv_devx_qp_query(one.qp, bytes, 16, bytes, 16)));
    TRY("mlx5dv_devx_query_eqn", OF_NUMBER(mlx5dv_devx_query_eqn(context, 0, &(uint32_t){0})));
    TRY("mlx5dv_devx_umem_reg", OF_POINTER(mlx5dv_devx_umem_reg(context, memory, 4096, all_rights)));
    TRY("mlx5dv_devx_umem_reg_ex", OF_POINTER(mlx5dv_devx_umem_reg_ex(context, &user_memory)));
    TRY("mlx5dv_open_device MLX5DV_CONTEXT_FLAGS_DEVX", devx_open());
    TRY("mlx5dv_query_port", OF_NUMBER(mlx5dv_query_port(context, 1, &(struct mlx5dv_port){0})));
    return other_name;
}

static int try_kernel(const char* wanted)
{
    TRY("open /dev/infiniband/umad0", OF_NUMBER(open("/dev/infiniband/umad0", O_RDWR | O_CLOEXEC)));
    TRY("open /dev/infiniband/issm0", OF_NUMBER(open("/dev/infiniband/issm0", O_RDWR | O_CLOEXEC)));
    TRY("socket NETLINK_RDMA", OF_NUMBER(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA)));
    return other_name;
}

static int make(const char* wanted)
{
    int (*const all[])(const char*) = {try_memory, try_queues, try_pairs, try_ways, try_driver, try_kernel};
    for (size_t each = 0; each != sizeof all / sizeof *all; ++each) {
        const int error = all[each](wanted);
        if (error != other_name)
            return error;
    }
    return other_name;
}

static const char* name_of(int error)
{
    return error == 0 ? "-" : error < 0 ? "none" : strerrorname_np(error);
}

int main(int count, char** arguments)
{
    if (count != 2)
        return 1;
    if (strcmp(arguments[1], "--list") == 0)
        return make(NULL) != other_name;
    open_device();
    make_end(&one, 16, IBV_QPT_RC);
    const int first = make(arguments[1]), second = make(arguments[1]);
    if (first == other_name)
        return 1;
    printf("%s %s\n", name_of(first), name_of(second));
    return 0;
}
