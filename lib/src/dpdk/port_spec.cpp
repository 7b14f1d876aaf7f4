#include "dpdk/port_spec.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <rte_mbuf_core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "dpdk/bounded_retry.hpp"
#include "dpdk/capture.hpp"
#include "dpdk/capture_writer.hpp"
#include "dpdk/interface_spec.hpp"
#include "dpdk/packet_pools.hpp"
#include "dpdk/spec_parts.hpp"
#include "weftio/error.hpp"
#include "wires/loss_number.hpp"
#include "wires/wire_file.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::string_view known_forms =
    "pcap:FILE, pcap:rx=FILE,tx=FILE, pcap:builtin, iface:NAME, tap:NAME, wire:NAME, loopback, "
    "null, a PCI address, or DPDK devargs such as "
    "net_null0,size=64";

port_spec tap_spec(std::string_view spec, const std::string& name)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: a tap interface's name has 1 to {} characters", spec, IFNAMSIZ - 1));
    const std::string interface = plain(spec, name);
    if (!bounded_retry([&] { return if_nametoindex(interface.c_str()) == 0; }))
        throw error(
            errc::in_use,
            fmt::format("weftio: port {}: interface {} exists already; choose another name, or open it with iface:{}",
                        spec, name, name));
    if (access("/dev/net/tun", R_OK | W_OK) != 0)
        throw error(
            errno == ENOENT ? errc::not_found : errc::permission_denied,
            fmt::format("weftio: port {}: /dev/net/tun: {}; run as root, and load the module with \"modprobe tun\"",
                        spec, std::strerror(errno)));
    require_raw_sockets(spec);
    return {.candidates = {{device_name("net_tap"), fmt::format("iface={}", name)}}, .interface = name, .capture = {}};
}

struct capture_names {
    std::string rx, tx;
};

/// Parses "rx=FILE,tx=FILE" or one of the two; any other text is the name of a file to read.
capture_names names_of(std::string_view words)
{
    const std::string_view first = words.substr(0, words.find(','));
    const std::string_view rest = words.substr(std::min(first.size() + 1, words.size()));
    if (first.starts_with("tx=") && rest.empty())
        return {.rx = {}, .tx = std::string(first.substr(3))};
    if (first.starts_with("rx=") &&
        (rest.empty() || (rest.starts_with("tx=") && rest.find(',') == std::string_view::npos)))
        return {.rx = std::string(first.substr(3)),
                .tx = std::string(rest.substr(std::min<std::size_t>(3, rest.size())))};
    return {.rx = std::string(words), .tx = {}};
}

constexpr std::string_view capture_prefix = "pcap:";

port_spec capture_spec(std::string_view spec, std::string_view words)
{
    auto [rx, tx] = names_of(words);
    if (rx.empty() && tx.empty())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: no file named; write pcap:FILE or pcap:rx=FILE,tx=FILE", spec));
    if (rx == "builtin")
        rx = builtin_capture_path();
    std::string arguments = "tx_pcap=/dev/null"; // the driver needs rx_ or tx_pcap; capture_writer writes the file
    if (!rx.empty()) {
        require_capture(spec, rx);
        arguments = "rx_pcap=" + plain(spec, rx);
    }
    if (!tx.empty())
        require_writable(spec, tx);
    return {.candidates = {{device_name("net_pcap"), arguments}},
            .interface = {},
            .capture = rx,
            .written = tx,
            .sends = !tx.empty()};
}

/// The number behind "loss=" or "seed=". @throws error it is none, or larger than `most`
template <class Number>
Number wire_number(std::string_view spec, std::string_view word, std::string_view key, Number most)
{
    if (const std::optional<Number> value = wires::number_up_to(most, word.substr(key.size())))
        return *value;
    throw error(
        errc::invalid_argument,
        fmt::format("weftio: port {}: {} is not a number from 0 to {}; write it as in wire:lab,loss=0.01,seed=7", spec,
                    word, most));
}

/// "loss=SHARE" and "seed=NUMBER", in any order.
wires::loss loss_of(std::string_view spec, std::string_view words)
{
    double share = 0;
    std::uint64_t seed = 0;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(','));
        words.remove_prefix(std::min(word.size() + 1, words.size()));
        if (word.starts_with("loss="))
            share = wire_number(spec, word, "loss=", 1.0);
        else if (word.starts_with("seed="))
            seed = wire_number(spec, word, "seed=", std::numeric_limits<std::uint64_t>::max());
        else
            throw error(
                errc::invalid_argument,
                fmt::format(
                    "weftio: port {}: \"{}\" is not an option of a wire; the options are loss=SHARE and seed=NUMBER",
                    spec, word));
    }
    return {share, seed};
}

/// The device of a wire's port is a ring that no frame passes: it has the rest of what a DPDK port is.
port_spec wire_spec(std::string_view spec, std::string_view words, unsigned queues)
{
    const std::string name(words.substr(0, words.find(',')));
    wires::path_of(fmt::format("port {}", spec), name);
    if (queues > 1)
        throw error(
            errc::not_supported,
            fmt::format("weftio: port {}: engines is {}, but a port of a wire has one; open it with .engines = 1", spec,
                        queues));
    return {.candidates = {{device_name("net_ring"), ""}},
            .interface = {},
            .capture = {},
            .loss = loss_of(spec, words.substr(std::min(name.size() + 1, words.size()))),
            .wire = name};
}

/// Matches "3b:00.0" or "0000:3b:00.0", also with arguments behind a comma.
bool is_pci_address(std::string_view text)
{
    const std::string_view address = text.substr(0, text.find(','));
    const std::string_view form = address.size() == 12 ? "hhhh:hh:hh.d" : "hh:hh.d";
    return std::ranges::equal(address, form, [](char letter, char wanted) {
        if (wanted == 'h')
            return std::isxdigit(static_cast<unsigned char>(letter)) != 0;
        return wanted == 'd' ? letter >= '0' && letter <= '7' : letter == wanted;
    });
}

/// The values of `key`, which ends with "=", in a driver's arguments.
std::vector<std::string> values_of(std::string_view key, std::string_view arguments)
{
    std::vector<std::string> values;
    while (!arguments.empty()) {
        const std::string_view word = arguments.substr(0, arguments.find(','));
        if (word.starts_with(key))
            values.emplace_back(word.substr(key.size()));
        arguments.remove_prefix(std::min(word.size() + 1, arguments.size()));
    }
    return values;
}

/// Refuses a size with which net_null would write beyond its buffers.
void require_room_for_frames(std::string_view spec, std::string_view arguments)
{
    for (const std::string& size : values_of("size=", arguments))
        if (std::strtoull(size.c_str(), nullptr, 0) > RTE_MBUF_DEFAULT_DATAROOM)
            throw error(errc::invalid_argument,
                        fmt::format("weftio: port {}: net_null would write frames of {} bytes into buffers of {}; "
                                    "write size={} or less",
                                    spec, size, RTE_MBUF_DEFAULT_DATAROOM, RTE_MBUF_DEFAULT_DATAROOM));
}

port_spec devargs_spec(std::string_view spec)
{
    const std::string name(spec.substr(0, spec.find(',')));
    const std::string arguments(spec.substr(std::min(name.size() + 1, spec.size())));
    port_spec result{.candidates = {{name, arguments, is_pci_address(spec)}}, .interface = {}, .capture = {}};
    const std::vector<std::string> interfaces = values_of("iface=", arguments);
    if (name.starts_with("net_null"))
        require_room_for_frames(spec, arguments);
    if (name.starts_with("net_pcap")) // without these arguments the driver drops frames and reports them as sent
        result.sends = arguments.find("tx_") != std::string::npos || !interfaces.empty();
    if ((name.starts_with("net_af_packet") || name.starts_with("net_af_xdp")) && !interfaces.empty()) {
        result.interface = interfaces.front();
        require_interface(spec, result.interface);
        require_raw_sockets(spec);
    }
    return result;
}

[[noreturn]] void refuse(std::string_view spec)
{
    throw error(errc::invalid_argument, fmt::format("weftio: port \"{}\": unknown form; write {}", spec, known_forms));
}

bool is_a_device(std::string_view spec)
{
    return spec == "cpu" || spec == "opencl" || spec.starts_with("opencl:") || spec.starts_with("cuda:");
}

/// Refuses a single word that names neither a DPDK port nor a device: names of devices have more than letters and
/// digits, and EAL's own error would not help. The application may have made a port of that name.
void refuse_plain_word(std::string_view spec)
{
    std::uint16_t port = 0;
    if (rte_eth_dev_get_port_by_name(std::string(spec).c_str(), &port) == 0)
        return;
    if (spec.size() < IFNAMSIZ && if_nametoindex(std::string(spec).c_str()) != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: this is an interface; did you mean iface:{}?", spec, spec));
    if (std::ranges::all_of(spec, [](unsigned char letter) { return std::isalnum(letter) != 0; }))
        throw error(errc::not_found,
                    fmt::format("weftio: port {}: neither a port nor an interface (have: {}); write {}", spec,
                                interface_names(), known_forms));
}

} // namespace

std::uint16_t most_mtu_of(std::string_view spec)
{
    const bool writes_file =
        spec.starts_with(capture_prefix) && !names_of(spec.substr(capture_prefix.size())).tx.empty();
    return writes_file ? most_mtu_of_a_file : most_mtu;
}

port_spec parse_port_spec(std::string_view spec, unsigned queues, std::uint32_t mtu)
{
    auto after = [&](std::string_view prefix) { return std::string(spec.substr(prefix.size())); };
    if (const std::size_t zero = spec.find('\0'); zero != std::string_view::npos)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port: byte {} of the spec is 0; write {}", zero, known_forms));
    if (spec.starts_with(capture_prefix))
        return capture_spec(spec, after(capture_prefix));
    if (spec.starts_with("iface:"))
        return interface_spec(spec, after("iface:"), queues, mtu);
    if (spec.starts_with("tap:"))
        return tap_spec(spec, after("tap:"));
    if (spec.starts_with("wire:"))
        return wire_spec(spec, after("wire:"), queues);
    if (spec == "loopback")
        return {.candidates = {{device_name("net_ring"), ""}}, .interface = {}, .capture = {}};
    if (spec == "null")
        return {.candidates = {{device_name("net_null"), "size=64"}}, .interface = {}, .capture = {}};
    if (is_a_device(spec))
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: port {}: this is a device; pass it to device::open (-g), and write {} for the port",
                        spec, known_forms));
    const bool unknown =
        spec.find(':') < spec.size() && spec.find(',') == std::string_view::npos && !is_pci_address(spec);
    if (spec.empty() || spec.starts_with(',') || spec.find(' ') != std::string_view::npos || unknown)
        refuse(spec);
    refuse_plain_word(spec);
    return devargs_spec(spec);
}

} // namespace weftio::dpdk
