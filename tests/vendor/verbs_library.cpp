// Stands in for libibverbs.so.1, with two NICs that can only write to themselves. Bytes of data are on their way for a
// while and overtake each other; flags (8 bytes or less), atomics and completions are there at once. A READ, on any
// queue pair of the same NIC, waits for all that is on its way, and so does a flush by the stand-in of NVIDIA's driver,
// whose GPUs' memory it can write. With "orderly" in STAND_IN_NIC in the environment nothing is late; with "dma_buf"
// addresses of GPUs are refused, and only a dma-buf is taken.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#undef ibv_reg_mr
#undef ibv_query_port

namespace {

bool is_asked(const char* word)
{
    const char* const wanted = std::getenv("STAND_IN_NIC");
    return wanted && std::strstr(wanted, word);
}

struct write {
    std::byte* to;
    std::vector<std::byte> bytes;
};

/// What is on its way, in the order in which it was sent.
class bus {
 public:
    bus() : late_(!is_asked("orderly"))
    {
        std::thread([this] { carry(); }).detach();
    }
    void send(std::byte* to, const std::byte* from, std::size_t bytes)
    {
        const std::lock_guard lock(mutex_);
        if (late_ && bytes > 8)
            on_its_way_.push_back({to, {from, from + bytes}});
        else
            copy(to, from, bytes);
    }
    void read(std::byte* to, const std::byte* from, std::size_t bytes)
    {
        const std::lock_guard lock(mutex_);
        arrive();
        std::memcpy(to, from, bytes);
    }
    void end()
    {
        const std::lock_guard lock(mutex_);
        arrive();
    }
    void add(std::byte* to, std::uint64_t value, std::byte* before)
    {
        const std::lock_guard lock(mutex_);
        const std::uint64_t was = __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(to), value, __ATOMIC_ACQ_REL);
        std::memcpy(before, &was, sizeof was);
    }

 private:
    /// Word by word, as others read.
    static void copy(std::byte* to, const std::byte* from, std::size_t bytes)
    {
        for (std::size_t at = 0; at < bytes; at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, from + at, 8);
            __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + at), word, __ATOMIC_RELEASE);
        }
    }
    void arrive()
    {
        for (const write& each : on_its_way_)
            copy(each.to, each.bytes.data(), each.bytes.size());
        on_its_way_.clear();
    }
    void carry()
    {
        std::mt19937 random(1);
        for (;; std::this_thread::sleep_for(std::chrono::microseconds(random() % 50))) {
            const std::lock_guard lock(mutex_);
            for (unsigned times = 0; times < 64 && !on_its_way_.empty(); ++times) {
                const auto chosen = on_its_way_.begin() + static_cast<std::ptrdiff_t>(random() % on_its_way_.size());
                bool is_first = true; // to its place: later bytes there stay the later ones
                for (auto earlier = on_its_way_.begin(); earlier != chosen; ++earlier)
                    is_first = is_first && earlier->to != chosen->to;
                if (!is_first)
                    continue;
                copy(chosen->to, chosen->bytes.data(), chosen->bytes.size());
                on_its_way_.erase(chosen);
            }
        }
    }

    const bool late_;
    std::mutex mutex_;
    std::vector<write> on_its_way_;
};

struct device : ibv_device {
    bus on_its_way;
};
std::vector<device*>& devices()
{
    static auto& all = *new std::vector<device*>{new device, new device};
    return all;
}
bus& bus_of(const ibv_qp* pair)
{
    return static_cast<device*>(pair->context->device)->on_its_way;
}

/// Of the stand-in of NVIDIA's driver, if the program has opened it.
struct driver {
    void* (*alias)(unsigned long long) = nullptr;
    bool (*is_for_nics)(unsigned long long) = nullptr;
};
const driver& the_driver()
{
    static const driver only = [] {
        driver made;
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!library)
            return made;
        made.alias = reinterpret_cast<decltype(made.alias)>(dlsym(library, "stand_in_alias"));
        made.is_for_nics = reinterpret_cast<decltype(made.is_for_nics)>(dlsym(library, "stand_in_is_for_nics"));
        if (const auto on_flush = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "stand_in_on_flush")))
            on_flush([] {
                for (device* const each : devices())
                    each->on_its_way.end();
            });
        return made;
    }();
    return only;
}

ibv_mr* region_at(ibv_pd* domain, void* memory, std::size_t bytes)
{
    auto* const made = new ibv_mr{};
    made->context = domain->context;
    made->addr = memory;
    made->length = bytes;
    made->lkey = made->rkey = 7;
    return made;
}

struct completions : ibv_cq {
    std::mutex mutex;
    std::deque<ibv_wc> done;

    void add(const ibv_wc& one)
    {
        const std::lock_guard lock(mutex);
        done.push_back(one);
    }
};

struct pair : ibv_qp {
    std::mutex mutex;
    std::deque<std::uint64_t> receives;
    std::uint32_t peer = 0;
};

std::mutex pairs_mutex;
std::map<std::uint32_t, pair*> pairs;
std::uint32_t last_number = 100;

std::byte* at(std::uint64_t address)
{
    return the_driver().alias ? static_cast<std::byte*>(the_driver().alias(address))
                              : reinterpret_cast<std::byte*>(address);
}

pair* find(std::uint32_t number)
{
    const std::lock_guard lock(pairs_mutex);
    const auto found = pairs.find(number);
    return found == pairs.end() ? nullptr : found->second;
}

void notify(pair& from, std::uint32_t immediate)
{
    pair* const to = find(from.peer);
    while (to) {
        const std::lock_guard lock(to->mutex);
        if (to->receives.empty())
            continue; // not ready: again
        ibv_wc notice{};
        notice.wr_id = to->receives.front();
        notice.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        notice.imm_data = immediate;
        to->receives.pop_front();
        static_cast<completions*>(to->recv_cq)->add(notice);
        return;
    }
}

int post_send(ibv_qp* given, ibv_send_wr* first, ibv_send_wr**)
{
    auto& from = *static_cast<pair*>(given);
    for (ibv_send_wr* each = first; each; each = each->next) {
        const ibv_sge none{}, &local = each->num_sge ? each->sg_list[0] : none;
        switch (each->opcode) {
            case IBV_WR_RDMA_WRITE:
            case IBV_WR_RDMA_WRITE_WITH_IMM:
                bus_of(given).send(at(each->wr.rdma.remote_addr), at(local.addr), local.length);
                if (each->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
                    notify(from, each->imm_data);
                break;
            case IBV_WR_RDMA_READ:
                bus_of(given).read(at(local.addr), at(each->wr.rdma.remote_addr), local.length);
                break;
            case IBV_WR_ATOMIC_FETCH_AND_ADD:
                bus_of(given).add(at(each->wr.atomic.remote_addr), each->wr.atomic.compare_add, at(local.addr));
                break;
            default: return EINVAL;
        }
        ibv_wc done{};
        done.wr_id = each->wr_id;
        if (each->send_flags & IBV_SEND_SIGNALED)
            static_cast<completions*>(from.send_cq)->add(done);
    }
    return 0;
}

int post_recv(ibv_qp* given, ibv_recv_wr* first, ibv_recv_wr**)
{
    auto& to = *static_cast<pair*>(given);
    const std::lock_guard lock(to.mutex);
    for (ibv_recv_wr* each = first; each; each = each->next)
        to.receives.push_back(each->wr_id);
    return 0;
}

int poll_cq(ibv_cq* given, int most, ibv_wc* to)
{
    auto& from = *static_cast<completions*>(given);
    const std::lock_guard lock(from.mutex);
    int got = 0;
    for (; got < most && !from.done.empty(); from.done.pop_front())
        to[got++] = from.done.front();
    return got;
}

} // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count)
{
    std::strcpy(devices()[0]->name, "stand_in_0");
    std::strcpy(devices()[1]->name, "stand_in_1");
    *count = 2;
    return new ibv_device* [3] { devices()[0], devices()[1], nullptr };
}
void ibv_free_device_list(ibv_device** list)
{
    delete[] list;
}
const char* ibv_get_device_name(ibv_device* device)
{
    return device->name;
}
ibv_context* ibv_open_device(ibv_device* device)
{
    auto* const made = new ibv_context{};
    made->device = device;
    made->ops.post_send = post_send;
    made->ops.post_recv = post_recv;
    made->ops.poll_cq = poll_cq;
    return made;
}
int ibv_close_device(ibv_context* context)
{
    delete context;
    return 0;
}
int ibv_query_device(ibv_context*, ibv_device_attr* to)
{
    *to = {};
    to->max_qp_rd_atom = to->max_qp_init_rd_atom = 16;
    return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t port, _compat_ibv_port_attr* given)
{
    auto* const to = reinterpret_cast<ibv_port_attr*>(given);
    *to = {};
    to->state = IBV_PORT_ACTIVE;
    to->active_mtu = IBV_MTU_1024;
    to->gid_tbl_len = 1;
    return port == 1 ? 0 : EINVAL;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* to)
{
    *to = {};
    to->raw[10] = to->raw[11] = 0xff;
    to->raw[15] = 1;
    return 0;
}
ibv_pd* ibv_alloc_pd(ibv_context* context)
{
    return new ibv_pd{context, 0};
}
int ibv_dealloc_pd(ibv_pd* domain)
{
    delete domain;
    return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* memory, std::size_t bytes, int)
{
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    if ((is_asked("dma_buf") && at(address) != memory) ||
        (the_driver().is_for_nics && !the_driver().is_for_nics(address))) {
        errno = EFAULT;
        return nullptr;
    }
    return region_at(domain, memory, bytes);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* memory, std::size_t bytes, std::uint64_t, unsigned)
{
    return ibv_reg_mr(domain, memory, bytes, 0);
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t, std::size_t bytes, std::uint64_t address, int, int)
{
    if (the_driver().is_for_nics && !the_driver().is_for_nics(address)) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    return region_at(domain, reinterpret_cast<void*>(address), bytes);
}
int ibv_dereg_mr(ibv_mr* region)
{
    delete region;
    return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int)
{
    auto* const made = new completions{};
    made->context = context;
    return made;
}
int ibv_destroy_cq(ibv_cq* ended)
{
    delete static_cast<completions*>(ended);
    return 0;
}
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted)
{
    auto* const made = new pair{};
    made->context = domain->context;
    made->send_cq = wanted->send_cq;
    made->recv_cq = wanted->recv_cq;
    const std::lock_guard lock(pairs_mutex);
    made->qp_num = ++last_number;
    pairs[made->qp_num] = made;
    return made;
}
int ibv_modify_qp(ibv_qp* changed, ibv_qp_attr* to, int mask)
{
    if (mask & IBV_QP_DEST_QPN)
        static_cast<pair*>(changed)->peer = to->dest_qp_num;
    return 0;
}
int ibv_destroy_qp(ibv_qp* ended)
{
    bus_of(ended).end(); // nothing of it is on its way when this returns
    const std::lock_guard lock(pairs_mutex);
    pairs.erase(ended->qp_num);
    delete static_cast<pair*>(ended);
    return 0;
}
const char* ibv_wc_status_str(ibv_wc_status)
{
    return "a request was refused";
}

} // extern "C"
