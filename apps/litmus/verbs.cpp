#include "verbs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weftio::litmus {

namespace {

constexpr int rights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

template <class Function>
void find(void* library, const char* name, Function& to)
{
    to = reinterpret_cast<Function>(dlsym(library, name));
    if (!to)
        throw failure(fmt::format("libibverbs has no {}; install rdma-core 28 or newer", name));
}

verbs opened()
{
    void* const library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw failure(fmt::format("no libibverbs ({}); install libibverbs1", dlerror()));
    verbs made{};
#define WEFTIO_FIND(NAME) find(library, #NAME, made.NAME)
    WEFTIO_FIND(ibv_get_device_list);
    WEFTIO_FIND(ibv_free_device_list);
    WEFTIO_FIND(ibv_get_device_name);
    WEFTIO_FIND(ibv_open_device);
    WEFTIO_FIND(ibv_close_device);
    WEFTIO_FIND(ibv_query_port);
    WEFTIO_FIND(ibv_query_device);
    WEFTIO_FIND(ibv_query_gid);
    WEFTIO_FIND(ibv_alloc_pd);
    WEFTIO_FIND(ibv_dealloc_pd);
    WEFTIO_FIND(ibv_reg_mr);
    WEFTIO_FIND(ibv_dereg_mr);
    WEFTIO_FIND(ibv_create_cq);
    WEFTIO_FIND(ibv_destroy_cq);
    WEFTIO_FIND(ibv_create_qp);
    WEFTIO_FIND(ibv_modify_qp);
    WEFTIO_FIND(ibv_destroy_qp);
    WEFTIO_FIND(ibv_wc_status_str);
#undef WEFTIO_FIND
    made.ibv_reg_mr_iova2 = reinterpret_cast<decltype(made.ibv_reg_mr_iova2)>(dlsym(library, "ibv_reg_mr_iova2"));
    made.ibv_reg_dmabuf_mr = reinterpret_cast<decltype(made.ibv_reg_dmabuf_mr)>(dlsym(library, "ibv_reg_dmabuf_mr"));
    return made;
}

std::string why()
{
    return std::strerror(errno);
}

ibv_context* open_device(const std::string& wanted, std::string& name)
{
    const verbs& api = verbs::library();
    int count = 0;
    ibv_device** const all = api.ibv_get_device_list(&count);
    std::string names;
    ibv_context* found = nullptr;
    for (int at = 0; all && at < count && !found; ++at) {
        name = api.ibv_get_device_name(all[at]);
        names += (names.empty() ? "" : ", ") + name;
        if (wanted.empty() || wanted == name)
            if (!(found = api.ibv_open_device(all[at])))
                throw failure(fmt::format("{} cannot be opened: {}", name, why()));
    }
    if (all)
        api.ibv_free_device_list(all);
    if (found)
        return found;
    if (names.empty())
        throw failure(
            "this machine has no RDMA device; weftio-run gives it one: `weftio-run --wire w -- weftio-litmus`, "
            "both with their paths where PATH has none");
    throw failure(fmt::format("there is no RDMA device {}; there are {}", wanted, names));
}

} // namespace

const verbs& verbs::library()
{
    static const verbs only = opened();
    return only;
}

region::region(ibv_pd* domain, const words& memory, bool relaxed)
{
    const verbs& api = verbs::library();
    if (relaxed && !api.ibv_reg_mr_iova2)
        throw failure("this libibverbs knows no relaxed ordering; install rdma-core 28 or newer, or give --strict");
    mr_ = by_address(domain, memory, relaxed);
    if (!mr_ && memory.in_gpu() && api.ibv_reg_dmabuf_mr) {
        const int descriptor = memory.export_dma_buf();
        mr_ = api.ibv_reg_dmabuf_mr(domain, 0, memory.bytes(), reinterpret_cast<std::uintptr_t>(memory.at(0)),
                                    descriptor, rights | (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0));
        by_dma_buf_ = true;
        const int reason = errno;
        close(descriptor);
        errno = reason;
    }
    if (!mr_ && memory.in_gpu())
        throw failure(fmt::format("memory of the GPU cannot be registered, by its address or by a dma-buf: {}; load "
                                  "nvidia-peermem, or NVIDIA's open kernel modules",
                                  why()));
    if (!mr_ && relaxed && errno != ENOMEM)
        throw failure(fmt::format("regions with relaxed ordering are refused: {}; give --strict", why()));
    if (!mr_)
        throw failure(
            fmt::format("{} bytes cannot be registered: {}; `ulimit -l` may be too low", memory.bytes(), why()));
}

ibv_mr* region::by_address(ibv_pd* domain, const words& memory, bool relaxed)
{
    const verbs& api = verbs::library();
    return relaxed ? api.ibv_reg_mr_iova2(domain, memory.at(0), memory.bytes(),
                                          reinterpret_cast<std::uintptr_t>(memory.at(0)),
                                          static_cast<unsigned>(rights) | IBV_ACCESS_RELAXED_ORDERING)
                   : api.ibv_reg_mr(domain, memory.at(0), memory.bytes(), rights);
}

region::~region()
{
    verbs::library().ibv_dereg_mr(mr_);
}

end::end(ibv_context* context, ibv_pd* domain, std::uint32_t sends, std::uint32_t receives)
{
    const verbs& api = verbs::library();
    sent_ = api.ibv_create_cq(context, static_cast<int>(sends), nullptr, nullptr, 0);
    received_ = api.ibv_create_cq(context, static_cast<int>(receives), nullptr, nullptr, 0);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = sent_;
    wanted.recv_cq = received_;
    wanted.cap = {
        .max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    wanted.qp_type = IBV_QPT_RC;
    pair_ = sent_ && received_ ? api.ibv_create_qp(domain, &wanted) : nullptr;
    if (pair_)
        return;
    const std::string reason = why();
    for (ibv_cq* const each : {sent_, received_})
        if (each)
            api.ibv_destroy_cq(each);
    throw failure(fmt::format("no queue pair of {} requests and {} receives: {}; give a smaller --pairs", sends,
                              receives, reason));
}

end::~end()
{
    const verbs& api = verbs::library();
    api.ibv_destroy_qp(pair_);
    api.ibv_destroy_cq(sent_);
    api.ibv_destroy_cq(received_);
}

void end::change(ibv_qp_attr& to, int mask, const char* what)
{
    if (const int status = verbs::library().ibv_modify_qp(pair_, &to, mask); status != 0)
        throw failure(
            fmt::format("a queue pair does not go to {}: {}; give another --gid-index", what, std::strerror(status)));
}

void end::post(ibv_send_wr& first)
{
    ibv_send_wr* refused = nullptr;
    if (const int status = pair_->context->ops.post_send(pair_, &first, &refused); status != 0)
        throw failure(fmt::format("a request is refused: {}", std::strerror(status)));
}

void end::post_receive()
{
    ibv_recv_wr empty{}, *refused = nullptr;
    if (const int status = pair_->context->ops.post_recv(pair_, &empty, &refused); status != 0)
        throw failure(fmt::format("a receive is refused: {}", std::strerror(status)));
}

unsigned end::take(ibv_cq* from, ibv_wc* to, unsigned most)
{
    const int got = from->context->ops.poll_cq(from, static_cast<int>(most), to);
    if (got < 0)
        throw failure("a completion queue cannot be read");
    for (int at = 0; at < got; ++at)
        if (to[at].status == IBV_WC_REM_ACCESS_ERR)
            throw access_refused("the NIC refuses access to its own region");
        else if (to[at].status != IBV_WC_SUCCESS)
            throw failure(fmt::format("a request failed: {}", verbs::library().ibv_wc_status_str(to[at].status)));
    return static_cast<unsigned>(got);
}

nic::nic(const port_options& options, std::uint32_t depth) : port_(options.port)
{
    const verbs& api = verbs::library();
    context_ = open_device(options.device, name_);
    try {
        if (const int status = api.ibv_query_port(context_, port_, &attributes_); status != 0)
            throw failure(fmt::format("{} has no port {}: {}", name_, port_, std::strerror(status)));
        if (attributes_.state != IBV_PORT_ACTIVE)
            throw failure(fmt::format("port {} of {} is not active; `ibv_devinfo` shows its state", port_, name_));
        choose_gid(options.gid_index);
        ibv_device_attr can{};
        if (api.ibv_query_device(context_, &can) == 0) {
            reads_ =
                static_cast<std::uint8_t>(std::clamp(std::min(can.max_qp_rd_atom, can.max_qp_init_rd_atom), 1, 16));
            firmware_.assign(can.fw_ver, strnlen(can.fw_ver, sizeof can.fw_ver));
        }
        domain_ = api.ibv_alloc_pd(context_);
        if (!domain_)
            throw failure(fmt::format("{} gives no protection domain: {}", name_, why()));
        for (unsigned at = 0; at < 4; ++at)
            ends_.push_back(std::make_unique<end>(context_, domain_, at == 0 ? depth : 16, at == 1 ? depth : 16));
        for (unsigned at = 0; at < 4; ++at)
            connect(*ends_[at], *ends_[at ^ 1]);
    } catch (...) {
        ends_.clear();
        if (domain_)
            api.ibv_dealloc_pd(domain_);
        api.ibv_close_device(context_);
        throw;
    }
}

nic::~nic()
{
    ends_.clear();
    verbs::library().ibv_dealloc_pd(domain_);
    verbs::library().ibv_close_device(context_);
}

void nic::choose_gid(int wanted)
{
    const verbs& api = verbs::library();
    const ibv_gid none{};
    int chosen = -1;
    for (int at = 0; at < attributes_.gid_tbl_len; ++at) {
        ibv_gid seen{};
        if ((wanted >= 0 && at != wanted) || api.ibv_query_gid(context_, port_, at, &seen) != 0 ||
            std::memcmp(&seen, &none, sizeof seen) == 0)
            continue;
        const bool is_ipv4 = seen.global.subnet_prefix == 0 && seen.raw[10] == 0xff && seen.raw[11] == 0xff;
        if (chosen < 0 || is_ipv4) {
            chosen = at;
            gid_ = seen;
        }
        if (is_ipv4)
            break;
    }
    if (chosen < 0)
        throw failure(wanted < 0
                          ? fmt::format("port {} of {} has no address (GID)", port_, name_)
                          : fmt::format("port {} of {} has no address (GID) of index {}; `ibv_devinfo -v` lists them",
                                        port_, name_, wanted));
    gid_index_ = chosen;
}

void nic::connect(end& from, const end& to)
{
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = port_;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    from.change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");

    attributes = {};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = attributes_.active_mtu;
    attributes.dest_qp_num = to.number();
    attributes.max_dest_rd_atomic = reads_;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.port_num = port_;
    attributes.ah_attr.dlid = attributes_.lid;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = gid_;
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    attributes.ah_attr.grh.hop_limit = 64;
    from.change(attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "RTR");

    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = reads_;
    from.change(attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                    IBV_QP_MAX_QP_RD_ATOMIC,
                "RTS");
}

} // namespace weftio::litmus
