#include "counter_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "weftio/counters.hpp"

namespace weftio::verbs {

namespace {

/// What the files are made from.
struct counts {
    rdma_port_counters port;
    std::uint64_t dropped = 0; ///< instead of being sent
    std::uint64_t downs = 0;   ///< how often the link went down
};

struct counter_row {
    const char* name; ///< with its folder
    std::uint64_t (*value)(const counts&);
};

template <std::uint64_t rdma_counters::*Member>
constexpr std::uint64_t of_queues(const counts& from)
{
    return from.port.queues.*Member;
}

template <std::uint64_t rdma_port_counters::*Member>
constexpr std::uint64_t of_port(const counts& from)
{
    return from.port.*Member;
}

constexpr std::uint64_t always_0(const counts&)
{
    return 0;
}

/// Data is counted in words of 4 bytes.
constexpr auto rows = std::to_array<counter_row>({
    {"counters/port_xmit_data", [](const counts& from) { return from.port.sent_bytes / 4; }},
    {"counters/port_rcv_data", [](const counts& from) { return from.port.received_bytes / 4; }},
    {"counters/port_xmit_packets", of_port<&rdma_port_counters::sent>},
    {"counters/port_rcv_packets", of_port<&rdma_port_counters::received>},
    {"counters/port_rcv_errors", of_port<&rdma_port_counters::damaged>},
    {"counters/port_xmit_discards", [](const counts& from) { return from.dropped; }},
    {"counters/excessive_buffer_overrun_errors", of_port<&rdma_port_counters::lost>},
    {"counters/port_xmit_wait", always_0},
    {"counters/symbol_error", always_0},
    {"counters/link_downed", [](const counts& from) { return from.downs; }},
    {"counters/link_error_recovery", always_0},
    {"hw_counters/duplicate_request", of_queues<&rdma_counters::duplicate_request>},
    {"hw_counters/implied_nak_seq_err", of_queues<&rdma_counters::implied_nak_seq_err>},
    {"hw_counters/local_ack_timeout_err", of_queues<&rdma_counters::local_ack_timeout_err>},
    {"hw_counters/np_cnp_sent", always_0},
    {"hw_counters/out_of_buffer", of_queues<&rdma_counters::not_ready>},
    {"hw_counters/out_of_sequence", of_queues<&rdma_counters::out_of_sequence>},
    {"hw_counters/packet_seq_err", of_queues<&rdma_counters::packet_seq_err>},
    {"hw_counters/req_cqe_error", of_queues<&rdma_counters::failed>},
    {"hw_counters/req_cqe_flush_error", of_queues<&rdma_counters::flushed>},
    {"hw_counters/resp_cqe_error", of_queues<&rdma_counters::receive_failed>},
    {"hw_counters/resp_cqe_flush_error", of_queues<&rdma_counters::receive_flushed>},
    {"hw_counters/rnr_nak_retry_err", of_queues<&rdma_counters::rnr_nak_retry_err>},
    {"hw_counters/rp_cnp_handled", always_0},
    {"hw_counters/rp_cnp_ignored", of_port<&rdma_port_counters::congestion>},
    {"hw_counters/rx_icrc_encapsulated", of_port<&rdma_port_counters::rx_icrc_encapsulated>},
});

/// Counters only grow, so no file gets shorter.
bool write_file(const std::string& path, std::uint64_t value, int flags)
{
    const descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644));
    const std::string text = fmt::format("{}\n", value);
    return file.number() >= 0 &&
           pwrite(file.number(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

} // namespace

counter_files::counter_files(const std::string& device, node& of)
    : port_(device + "/ports/1/"), of_(of), was_up_(of.port.link_up()), written_(rows.size())
{
    for (const char* folder : {"counters", "hw_counters"})
        std::filesystem::create_directory(port_ + folder);
    for (const counter_row& row : rows)
        if (!write_file(port_ + row.name, 0, O_CREAT))
            throw std::system_error(errno, std::generic_category(), port_ + row.name);
}

void counter_files::write() noexcept
try {
    const std::scoped_lock lock(mutex_);
    count_link();
    const counts now{.port = of_.rdma.counters(), .dropped = of_.port.counters().tx_dropped, .downs = downs_};
    for (std::size_t at = 0; at != rows.size(); ++at)
        if (const std::uint64_t value = rows[at].value(now);
            value > written_[at] && write_file(port_ + rows[at].name, value, 0))
            written_[at] = value;
} catch (const std::exception&) { // no memory: the next call writes them
}

void counter_files::look_at_link() noexcept
{
    const std::scoped_lock lock(mutex_);
    count_link();
}

void counter_files::count_link() noexcept
{
    const bool up = of_.port.link_up();
    downs_ += std::exchange(was_up_, up) && !up;
}

} // namespace weftio::verbs
