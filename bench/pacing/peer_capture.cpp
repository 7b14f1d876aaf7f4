#include "pacing/peer_capture.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "pacing/pacing.kernel.h"

namespace weftio::bench {

namespace {

constexpr int ring_bytes = 64 << 20; // the reader may be preempted for a long time
constexpr int wake_up_ms = 10;
constexpr auto patience = std::chrono::seconds(2);

void require(pcap* handle, bool good, const std::string& interface)
{
    if (good)
        return;
    std::string text = fmt::format("cannot capture with nanoseconds on {}: {}", interface, pcap_geterr(handle));
    pcap_close(handle);
    throw std::runtime_error(text);
}

pcap* open(const std::string& interface)
{
    char words[PCAP_ERRBUF_SIZE] = "";
    pcap* handle = pcap_create(interface.c_str(), words);
    if (!handle)
        throw std::runtime_error(fmt::format("cannot capture on {}: {}", interface, words));
    pcap_set_snaplen(handle, FRAME_BYTES);
    pcap_set_buffer_size(handle, ring_bytes);
    pcap_set_timeout(handle, wake_up_ms);
    pcap_set_promisc(handle, 1);
    require(handle, pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO) == 0, interface);
    require(handle, pcap_activate(handle) >= 0, interface);
    bpf_program filter{};
    require(handle, pcap_compile(handle, &filter, "ether proto 0x88b5", 1, PCAP_NETMASK_UNKNOWN) == 0, interface);
    bool filtered = pcap_setfilter(handle, &filter) == 0;
    pcap_freecode(&filter);
    require(handle, filtered, interface);
    require(handle, pcap_setnonblock(handle, 1, words) == 0, interface); // libpcap's own wait has no timeout
    return handle;
}

} // namespace

peer_capture::peer_capture(const std::string& interface, std::uint32_t expected)
    : handle_(open(interface)), expected_(expected)
{
    arrivals_.reserve(expected);
    thread_ = std::thread([this] { run(); });
}

peer_capture::~peer_capture()
{
    if (thread_.joinable())
        finish();
    pcap_close(handle_);
}

void peer_capture::take(unsigned char* self, const pcap_pkthdr* header, const unsigned char* bytes)
{
    auto& capture = *reinterpret_cast<peer_capture*>(self);
    if (header->caplen < FRAME_SEQUENCE_AT + sizeof(std::uint32_t))
        return;
    arrival arrived{0, static_cast<std::uint64_t>(header->ts.tv_sec) * 1'000'000'000u +
                           static_cast<std::uint64_t>(header->ts.tv_usec)};
    std::memcpy(&arrived.sequence, bytes + FRAME_SEQUENCE_AT, sizeof arrived.sequence);
    capture.arrivals_.push_back(arrived);
    capture.seen_.store(static_cast<std::uint32_t>(capture.arrivals_.size()), std::memory_order_relaxed);
}

void peer_capture::run()
{
    auto* self = reinterpret_cast<unsigned char*>(this);
    pollfd readable{.fd = pcap_get_selectable_fd(handle_), .events = POLLIN, .revents = 0};
    while (pcap_dispatch(handle_, -1, take, self) > 0 || !ending_.load(std::memory_order_relaxed))
        poll(&readable, 1, wake_up_ms);
}

std::vector<arrival> peer_capture::finish()
{
    for (auto end = std::chrono::steady_clock::now() + patience;
         seen_.load(std::memory_order_relaxed) < expected_ && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ending_.store(true, std::memory_order_relaxed);
    thread_.join();
    if (pcap_stat counts{}; pcap_stats(handle_, &counts) == 0)
        lost_ = counts.ps_drop;
    return std::move(arrivals_);
}

} // namespace weftio::bench
