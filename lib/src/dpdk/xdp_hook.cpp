#include "dpdk/xdp_hook.hpp"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <net/if.h>
#include <rte_log.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/log.hpp"
#include "dpdk/interface_facts.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::string_view of_libxdp = "xsk_def_prog", dispatcher = "xdp_dispatcher";

long bpf(bpf_cmd command, bpf_attr& attributes) noexcept
{
    return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

/// Opens a program by its id. Returns -1 if that is not allowed or it is gone.
int open_program(std::uint32_t id) noexcept
{
    bpf_attr wanted{};
    wanted.prog_id = id;
    return static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, wanted));
}

/// The name of a program, of 15 characters at most; empty if it has none or must not be read.
std::string name_of_program(int descriptor)
{
    bpf_prog_info info{};
    bpf_attr wanted{};
    wanted.info.bpf_fd = static_cast<std::uint32_t>(descriptor);
    wanted.info.info_len = sizeof info;
    wanted.info.info = reinterpret_cast<std::uintptr_t>(&info);
    return bpf(BPF_OBJ_GET_INFO_BY_FD, wanted) == 0 ? std::string(info.name, ::strnlen(info.name, sizeof info.name))
                                                    : std::string();
}

std::string name_of_program(std::uint32_t id)
{
    const int descriptor = open_program(id);
    std::string name = name_of_program(descriptor);
    if (descriptor >= 0)
        ::close(descriptor);
    return name;
}

/// Takes CAP_NET_ADMIN from the calling thread, and gives it back at the end.
class without_net_admin {
 public:
    without_net_admin() noexcept
    {
        taken_ = ::syscall(SYS_capget, &head_, before_.data()) == 0;
        auto less = before_;
        less[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
        taken_ = taken_ && ::syscall(SYS_capset, &head_, less.data()) == 0;
    }
    without_net_admin(const without_net_admin&) = delete;
    without_net_admin& operator=(const without_net_admin&) = delete;
    ~without_net_admin()
    {
        if (taken_)
            ::syscall(SYS_capset, &head_, before_.data());
    }

 private:
    __user_cap_header_struct head_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> before_{};
    bool taken_ = false;
};

/// Lets a component of DPDK log nothing for a while, in all threads.
class without_log_of {
 public:
    explicit without_log_of(const char* component) noexcept
        : type_(::rte_log_register(component)), level_(::rte_log_get_level(static_cast<std::uint32_t>(type_)))
    {
        set(RTE_LOG_EMERG);
    }
    without_log_of(const without_log_of&) = delete;
    without_log_of& operator=(const without_log_of&) = delete;
    ~without_log_of() { set(level_); }

 private:
    void set(int level) const noexcept
    {
        if (type_ >= 0 && level_ >= 0)
            ::rte_log_set_level(static_cast<std::uint32_t>(type_), static_cast<std::uint32_t>(level));
    }

    int type_, level_;
};

} // namespace

xdp_hook::xdp_hook(const std::string& interface, unsigned all_queues)
    : interface_(interface), index_(static_cast<int>(::if_nametoindex(interface.c_str()))), all_queues_(all_queues)
{
    for (const int problem : {requests_.problem(), notifications_.problem(), channels_.problem()})
        if (problem != 0)
            throw error(errc::device_error,
                        fmt::format("weftio: interface {}: no netlink socket for it ({}), so its XDP program could "
                                    "neither be detached nor watched; raise the limit on open descriptors (ulimit -n)",
                                    interface_, std::strerror(problem)));
}

xdp_hook::~xdp_hook()
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void xdp_hook::require_free(std::string_view spec)
{
    before_ = requests_.ask(index_).value_or(link_report{});
    constexpr std::array<std::string_view, 3> words{"generic mode (xdpgeneric)", "the driver (xdp)",
                                                    "the hardware (xdpoffload)"};
    for (std::size_t place = 0; place < words.size(); ++place) {
        const std::uint32_t id = before_.programs[place];
        const std::string name = id != 0 ? name_of_program(id) : std::string(of_libxdp);
        if (!name.starts_with(of_libxdp))
            throw error(
                errc::in_use,
                fmt::format("weftio: port {}: another program has an XDP program on {} (id {}, name {}, in {}), "
                            "which AF_XDP would replace; end that program, or detach its XDP program with "
                            "\"ip link set {} xdp off\" if nobody needs it",
                            spec, interface_, id, name.empty() ? "unknown" : name, words[place], interface_));
    }
}

void xdp_hook::adopt() noexcept
{
    link_report old;
    while (notifications_.next(old) != link_socket::news::none) { // from before the driver attached it
    }
    const std::optional<link_report> now = requests_.ask(index_);
    const auto id = now ? std::ranges::find_if(now->programs, [](std::uint32_t each) { return each != 0; }) : nullptr;
    has_more_queues_ = all_queues_ != 0 && queues_of(interface_) > all_queues_; // since its facts were read
    if (!now || id == now->programs.end()) {
        lost_ = now.has_value();
        return;
    }
    program_ = *id;
    place_ = static_cast<xdp_place>(id - now->programs.begin());
    if (descriptor_ < 0 && (all_queues_ != 0 || !before_.holds(program_)))
        descriptor_ = open_program(program_);
}

const char* xdp_hook::trouble() noexcept
{
    const std::optional<unsigned> queues = channels_.receive_queues(index_);
    if (program_ != 0 && all_queues_ != 0 && queues.value_or(0) > all_queues_)
        has_more_queues_.store(true, std::memory_order_relaxed);
    if (is_lost())
        return "another program has detached or replaced its XDP program on the interface, so it would receive nothing";
    return has_more_queues_.load(std::memory_order_relaxed) ? "its interface has more receive queues now (ethtool -L), "
                                                              "and it would receive nothing from the new ones"
                                                            : nullptr;
}

bool xdp_hook::is_lost() noexcept
{
    link_report seen;
    for (auto news = link_socket::news::link; program_ != 0 && news != link_socket::news::none;) {
        news = notifications_.next(seen);
        std::optional<link_report> now = seen;
        if (news == link_socket::news::lost) {
            const std::scoped_lock lock(asking_);
            now = requests_.ask(index_);
        }
        if (news != link_socket::news::none && now && now->index == index_ && !now->holds(program_))
            lost_.store(true, std::memory_order_relaxed);
    }
    return lost_.load(std::memory_order_relaxed);
}

bool xdp_hook::is_for_libxdp_to_detach() const noexcept
try {
    return descriptor_ >= 0 && name_of_program(descriptor_) == dispatcher &&
           requests_.ask(index_).value_or(link_report{}).holds(program_);
} catch (const std::bad_alloc&) {
    return false;
}

void xdp_hook::let_go(const std::function<void()>& close_driver) noexcept
{
    if (is_for_libxdp_to_detach())
        return close_driver();
    if (const int ours = std::exchange(descriptor_, -1); ours >= 0) {
        const int why = requests_.detach(index_, place_, ours);
        ::close(ours);
        if (why != 0 && why != EEXIST && why != ENODEV)
            core::log_or_lose(log_level::warning, [&] {
                return fmt::format("weftio: interface {}: cannot detach its XDP program ({}); detach it with \"ip link "
                                   "set {} xdp off\"",
                                   interface_, std::strerror(why), interface_);
            });
    }
    const without_net_admin close_detaches_nothing;
    const without_log_of the_driver("pmd.net.af_xdp"); // it would report that it could not
    close_driver();
}

} // namespace weftio::dpdk
