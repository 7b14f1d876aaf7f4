// Any commands that a program could write to /dev/infiniband/rdma_cm of weftio-run, executed by its service on a port
// that has the program itself as its peer.
//
// The input is a row of commands: a byte, then so many times 4 bytes. Its highest bit names one of two files. No bytes:
// the program waits for an event. Addresses of answers are moved into memory of the fuzzer's, or into a hole beside it.
// Each command has an answer that Linux gives, and the end of the files ends every identifier.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "core/guarded.hpp"
#include "engine/settings.hpp"
#include "expect.hpp"
#include "only_ports.hpp"
#include "program_memory.hpp"
#include "rdma_cm/service.hpp"
#include "seam.hpp"

namespace weftio::fuzz {

namespace {

using verbs::rdma_cm::service;

constexpr std::size_t most_commands = 64;
constexpr int patience_ms = 3;

std::string wire()
{
    return fmt::format("fuzz-{}", getpid());
}

/// Where the service keeps who has which port.
void remove_ports()
{
    for (const char* parent : {"/dev/shm", "/tmp"})
        std::filesystem::remove_all(fmt::format("{0}/weftio-ports-{1}-wire-{1}-{2}", parent, geteuid(), wire()));
}

std::deque<verbs::node>& nodes()
{
    static verbs::watcher& events = *new verbs::watcher;
    static std::deque<verbs::node>& made = *[] {
        core::guard_memory();
        port opened = port::open("loopback", {.idle = idle_policy::adaptive, .eal_arguments = {"--no-telemetry"}});
        rdma_device rdma(opened, {.address = "198.18.0.1", .link_local = true});
        std::atexit(remove_ports);
        auto* const all = new std::deque<verbs::node>;
        all->push_back({opened, rdma, device::open("cpu"), events, verbs::settings{}.doorbell_bytes, wire()});
        return all;
    }();
    return made;
}

/// One command of the input, whose addresses and descriptors are made good ones or holes.
class written {
 public:
    /// @param descriptors  of the program's files  @param before  number of the identifier before the input's first
    written(std::span<const std::uint8_t> bytes, std::array<int, 2> descriptors, std::uint32_t before)
        : bytes_(bytes.size())
    {
        std::copy(bytes.begin(), bytes.end(), room_.begin());
        if (bytes_ < sizeof head_)
            return;
        std::memcpy(&head_, room_.data(), sizeof head_);
        if (const auto at = place_of_address(head_.cmd))
            change<std::uint64_t>(*at, [](std::uint64_t value) {
                return reinterpret_cast<std::uint64_t>(arena()) + value % (arena_bytes + 8192);
            });
        if (const auto at = place_of_number(head_.cmd))
            change<std::uint32_t>(*at, [&](std::uint32_t value) { return value + before; });
        if (head_.cmd == RDMA_USER_CM_CMD_MIGRATE_ID)
            change<std::uint32_t>(offsetof(rdma_ucm_migrate_id, fd), [&](std::uint32_t value) {
                return static_cast<std::uint32_t>(descriptors[value & 1]);
            });
    }
    const void* data() const noexcept { return room_.data(); }
    std::size_t size() const noexcept { return bytes_; }

 private:
    /// Where the number of an identifier or of a membership stands.
    static std::optional<std::size_t> place_of_number(unsigned command) noexcept
    {
        switch (command) {
            case RDMA_USER_CM_CMD_DESTROY_ID:
            case RDMA_USER_CM_CMD_LEAVE_MCAST: return offsetof(rdma_ucm_destroy_id, id);
            case RDMA_USER_CM_CMD_BIND_IP: return offsetof(rdma_ucm_bind_ip, id);
            case RDMA_USER_CM_CMD_BIND: return offsetof(rdma_ucm_bind, id);
            case RDMA_USER_CM_CMD_RESOLVE_IP: return offsetof(rdma_ucm_resolve_ip, id);
            case RDMA_USER_CM_CMD_RESOLVE_ADDR: return offsetof(rdma_ucm_resolve_addr, id);
            case RDMA_USER_CM_CMD_RESOLVE_ROUTE: return offsetof(rdma_ucm_resolve_route, id);
            case RDMA_USER_CM_CMD_QUERY:
            case RDMA_USER_CM_CMD_QUERY_ROUTE: return offsetof(rdma_ucm_query, id);
            case RDMA_USER_CM_CMD_CONNECT: return offsetof(rdma_ucm_connect, id);
            case RDMA_USER_CM_CMD_LISTEN: return offsetof(rdma_ucm_listen, id);
            case RDMA_USER_CM_CMD_ACCEPT: return offsetof(rdma_ucm_accept, id);
            case RDMA_USER_CM_CMD_REJECT: return offsetof(rdma_ucm_reject, id);
            case RDMA_USER_CM_CMD_DISCONNECT: return offsetof(rdma_ucm_disconnect, id);
            case RDMA_USER_CM_CMD_INIT_QP_ATTR: return offsetof(rdma_ucm_init_qp_attr, id);
            case RDMA_USER_CM_CMD_SET_OPTION: return offsetof(rdma_ucm_set_option, id);
            case RDMA_USER_CM_CMD_NOTIFY: return offsetof(rdma_ucm_notify, id);
            case RDMA_USER_CM_CMD_JOIN_IP_MCAST: return offsetof(rdma_ucm_join_ip_mcast, id);
            case RDMA_USER_CM_CMD_JOIN_MCAST: return offsetof(rdma_ucm_join_mcast, id);
            case RDMA_USER_CM_CMD_MIGRATE_ID: return offsetof(rdma_ucm_migrate_id, id);
            default: return std::nullopt;
        }
    }
    static std::optional<std::size_t> place_of_address(unsigned command) noexcept
    {
        switch (command) {
            case RDMA_USER_CM_CMD_CREATE_ID: return offsetof(rdma_ucm_create_id, response);
            case RDMA_USER_CM_CMD_DESTROY_ID:
            case RDMA_USER_CM_CMD_LEAVE_MCAST:
            case RDMA_USER_CM_CMD_QUERY:
            case RDMA_USER_CM_CMD_QUERY_ROUTE:
            case RDMA_USER_CM_CMD_INIT_QP_ATTR:
            case RDMA_USER_CM_CMD_GET_EVENT:
            case RDMA_USER_CM_CMD_SET_OPTION:
            case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
            case RDMA_USER_CM_CMD_JOIN_MCAST:
            case RDMA_USER_CM_CMD_MIGRATE_ID: return 0;
            default: return std::nullopt;
        }
    }
    /// @param at  behind the header
    template <class Value, class Change>
    void change(std::size_t at, Change&& change_to)
    {
        at += sizeof head_;
        Value value = 0;
        if (at + sizeof value > bytes_)
            return;
        std::memcpy(&value, &room_[at], sizeof value);
        value = change_to(value);
        std::memcpy(&room_[at], &value, sizeof value);
    }

    std::array<std::uint8_t, 512> room_{};
    std::size_t bytes_;
    rdma_ucm_cmd_hdr head_{};
};

/// The number of an identifier that is made, and removed.
std::uint32_t next_number(service& managed, verbs::open_file& in)
{
    const std::scoped_lock lock(managed.mutex);
    auto& file = static_cast<verbs::rdma_cm::file&>(in);
    const std::uint32_t made = managed.create(file, 0, cm::port_space::tcp, false);
    managed.destroy(file, in.program(), made);
    return made;
}

void execute_all(std::span<const std::uint8_t> input)
{
    // The last is for the preloaded library, which waits for an event.
    constexpr std::array errors{EINVAL,        EFAULT,      ENOENT,      EBUSY,           ENOSPC, ENOMEM,
                                ENOSYS,        EAGAIN,      EMFILE,      ENODEV,          EACCES, EADDRINUSE,
                                EADDRNOTAVAIL, EINPROGRESS, ENETUNREACH, verbs::must_wait};
    static service& managed = *new service(nodes());
    std::array files{managed.open(O_NONBLOCK), managed.open(O_NONBLOCK)};
    const std::array descriptors{files[0]->program(), files[1]->program()};
    const std::uint32_t before = next_number(managed, *files[0]);
    for (std::size_t count = 0; count != most_commands && !input.empty(); ++count) {
        const unsigned which = input[0] >> 7;
        const std::size_t bytes = std::min<std::size_t>((input[0] & 0x7f) * std::size_t{4}, input.size() - 1);
        if (bytes == 0) {
            pollfd event{descriptors[which], POLLIN, 0};
            poll(&event, 1, patience_ms);
        } else {
            const written one(input.subspan(1, bytes), descriptors, before);
            const ssize_t result = files[which]->execute(descriptors[which], one.data(), one.size());
            expect(result == static_cast<ssize_t>(bytes) || std::ranges::count(errors, -result) == 1,
                   "an answer that Linux gives");
        }
        input = input.subspan(1 + bytes);
    }
    for (unsigned which = 0; which != files.size(); ++which) {
        close(descriptors[which]);
        files[which].reset();
    }
    expect(managed.show().empty(), "no identifier outlives its file");
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::execute_all({data, bytes});
    return 0;
}
