#include "dpdk/interface_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dpdk/interface_facts.hpp"
#include "dpdk/kernel_interface.hpp"
#include "dpdk/packet_sockets.hpp"
#include "dpdk/spec_parts.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint32_t most_of_xdp = 3500;     // a frame and its headers lie in one page
constexpr std::uint32_t most_of_packet = 16256; // only lo has more, and no mode serves packets that long

/// Length of a frame in AF_PACKET's rings so that packets of `mtu` bytes fit with their headers: a power of two that
/// divides a block. One of 16 KiB holds the longest frame that Weftio sends.
std::uint32_t ring_frame_for(std::uint32_t mtu)
{
    constexpr std::uint32_t headers = 128, shortest = 2048, longest = 16384;
    return std::bit_ceil(std::clamp(mtu + headers, shortest, longest));
}

/// What to do so that AF_XDP can serve all receive queues with `queues` port queues; empty: nothing helps.
std::string remedy(const std::string& name, const interface_facts& facts, unsigned queues)
{
    if (!facts.has_channels)
        return {};
    if (facts.combined_queues == 0)
        return fmt::format("type \"ethtool -L {} rx 1 tx 1\", at both ends of a veth pair{}", name,
                           queues > 1 ? " and open it with .engines = 1" : "");
    return fmt::format("type \"ethtool -L {} combined {}\" or open it with .engines = {}", name, queues,
                       facts.receive_queues);
}

struct objection {
    std::string why;    ///< empty: there is none
    std::string remedy; ///< what the user can do; empty: nothing
    log_level level = log_level::info;
};

/// What speaks against AF_XDP, of all that can be known before it is tried.
objection objection_to_xdp(const std::string& name, const interface_facts& facts, unsigned queues, std::uint32_t mtu)
{
    // DPDK's driver opens the first queues only, and more than one only of combined queues.
    const unsigned served = facts.combined_queues != 0 ? queues : 1;
    if (facts.receive_queues > served)
        return {.why = fmt::format("{} has {} receive queues, of which AF_XDP would serve {}", name,
                                   facts.receive_queues, served),
                .remedy = remedy(name, facts, queues),
                .level = log_level::warning};
    if (mtu > most_of_xdp && mtu <= most_of_packet)
        return {.why = fmt::format("the MTU of {} is {}, and a frame of AF_XDP must fit into a page", name, mtu),
                .remedy = fmt::format("type \"ip link set {} mtu {}\"", name, most_of_xdp)};
    return {};
}

port_candidate af_xdp(const std::string& name, const interface_facts& facts, unsigned queues)
{
    // Without a device there is nothing to poll: the driver would only make a system call each time that nothing has
    // come. With one, no budget would let the driver sleep for as long as a second.
    std::string words = fmt::format("iface={}{}", name, facts.is_virtual ? ",busy_budget=0" : "");
    if (queues > 1)
        words += fmt::format(",queue_count={}", queues);
    return {.device = device_name("net_af_xdp"), .arguments = words};
}

port_candidate af_packet(const std::string& name, unsigned queues, std::uint32_t mtu)
{
    constexpr std::uint32_t ring_bytes = 4 * 1024 * 1024, fewest_frames = 512;
    const std::uint32_t frame = ring_frame_for(mtu);
    std::string words = fmt::format("iface={},blocksz=65536,framesz={},framecnt={}", name, frame,
                                    std::max(fewest_frames, ring_bytes / frame));
    if (queues > 1)
        words += fmt::format(",qpairs={}", queues);
    return {.device = device_name("net_af_packet"), .arguments = words};
}

/// Whether the words behind the name are "xdp=only". Throws weftio::error errc::invalid_argument for other words.
bool is_xdp_only(std::string_view spec, std::string_view option)
{
    if (!option.empty() && option != "xdp=only")
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: port {}: \"{}\" is not an option of an interface; the only option is xdp=only, "
                        "and DPDK's own go behind net_af_xdp0,iface=NAME or net_af_packet0,iface=NAME",
                        spec, option));
    return !option.empty();
}

} // namespace

port_spec interface_spec(std::string_view spec, std::string_view words, unsigned queues, std::uint32_t mtu)
{
    const std::string name(words.substr(0, words.find(',')));
    const bool only = is_xdp_only(spec, words.substr(std::min(name.size() + 1, words.size())));
    require_interface(spec, plain(spec, name));
    require_raw_sockets(spec);
    mtu = mtu != 0 ? mtu : kernel_interface(name).read_state().mtu;
    const interface_facts facts = read_facts(name);
    port_spec result{.candidates = {}, .interface = name, .capture = {}, .all_queues = true};
    auto note = [&](log_level level, std::string text) {
        result.note = {level, fmt::format("weftio: port {}: {}", spec, text)};
    };
    const objection against = objection_to_xdp(name, facts, queues, mtu);
    if (only && !against.why.empty())
        throw error(
            errc::not_supported,
            fmt::format("weftio: port {}: {}; {}", spec, against.why,
                        against.remedy.empty() ? "nothing changes that here: leave out xdp=only" : against.remedy));
    if (only || (against.why.empty() && facts.used_by_linux.empty()))
        result.candidates.push_back(af_xdp(name, facts, queues));
    if (!only)
        result.candidates.push_back(af_packet(name, queues, mtu));
    if (only && !facts.used_by_linux.empty())
        note(log_level::warning,
             fmt::format("{} {}, and Linux receives nothing there while the port is open: ping, TCP "
                         "and SSH over it stop",
                         name, facts.used_by_linux));
    else if (!against.why.empty())
        note(against.level,
             fmt::format("AF_PACKET, because {}{}{}; {}", against.why, against.remedy.empty() ? "" : "; for AF_XDP ",
                         against.remedy, af_packet_alters));
    else if (!only && !facts.used_by_linux.empty())
        note(log_level::info,
             fmt::format("AF_PACKET, because {} {}, and Linux goes on receiving there; for AF_XDP, which "
                         "takes all packets from Linux, open iface:{},xdp=only; {}",
                         name, facts.used_by_linux, name, af_packet_alters));
    return result;
}

} // namespace weftio::dpdk
