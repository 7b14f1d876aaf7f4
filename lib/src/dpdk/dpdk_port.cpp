#include "dpdk/dpdk_port.hpp"

#include <fmt/format.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/log.hpp"
#include "core/undying.hpp"
#include "dpdk/close_on_exec.hpp"
#include "dpdk/dma_mapping.hpp"
#include "dpdk/environment.hpp"
#include "dpdk/hotplug.hpp"
#include "dpdk/port_refusals.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t descriptors = 1024;
constexpr std::uint16_t nic_tx_descriptors = 512;

/// This driver returns sent mbufs only inside a burst call, also one of no frames, and not on
/// rte_eth_tx_done_cleanup().
constexpr std::string_view polls_in_bursts = "net_vmxnet3";

/// Whether the driver sends mbufs of any length. These drivers have no call for the MTU, and take the one that they
/// are configured with.
bool takes_any_length(std::string_view driver, const port_spec& spec)
{
    return driver == "net_ring" || (driver == "net_pcap" && spec.sends);
}

constexpr std::uint32_t mtu_of_a_wire = 4200; ///< packets of the largest path MTU fit, 4096

static_assert(tagged_header_bytes == RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN);
/// Bytes before the packet in a frame of an AF_PACKET ring (TPACKET_V2): header, address, padding.
constexpr std::uint32_t ring_header_bytes = 66;

/// Length of a frame in the AF_PACKET ring: net_af_packet's argument "framesz", 2,048 without it.
std::uint32_t ring_frame_bytes(const std::string& arguments)
{
    constexpr std::string_view key = "framesz=";
    const std::size_t at = arguments.find(key);
    const unsigned long bytes = at == std::string::npos ? 0 : std::strtoul(&arguments[at + key.size()], nullptr, 10);
    return bytes > ring_header_bytes + tagged_header_bytes + 1 && bytes <= UINT16_MAX
               ? static_cast<std::uint32_t>(bytes)
               : 2048;
}

/// The MTU to use. Drivers start with 1500, whatever the interface behind them has.
std::uint16_t mtu_behind(const kernel_interface& interface, std::uint16_t of_driver, std::uint32_t most)
{
    const std::uint32_t of_interface = interface.read_state().mtu;
    return static_cast<std::uint16_t>(std::min(of_interface != 0 ? of_interface : of_driver, most));
}

} // namespace

dpdk_port::dpdk_port(std::string_view spec, const port_spec& parsed, const port_options& options,
                     slot_pool_maker& slot_pools)
    : settings_(parsed.interface), pools_(slot_pools)
{
    if (struct stat file{}; !parsed.capture.empty() && ::stat(parsed.capture.c_str(), &file) == 0)
        read_.take(spec, parsed.capture, file, capture_claim::use::read);
    if (!parsed.wire.empty())
        shared_ = std::make_unique<dpdk::shared_wire>(spec, parsed.wire, parsed.loss);
    if (!options.dump.empty())
        dump_ = std::make_unique<frame_dump>(spec, options.dump);
    if (const bool lossy = shared_ && shared_->is_lossy(); lossy || dump_)
        core::log(log_level::info,
                  fmt::format("weftio: port {}: {}{}{} frames, also between queue pairs of this process", spec,
                              lossy ? "loses" : "", lossy && dump_ ? " and " : "", dump_ ? "dumps" : ""));
    dpdk::forget_driver_log();
    if (!parsed.note.text.empty())
        core::log(parsed.note.level, parsed.note.text);
    for (const port_candidate& candidate : parsed.candidates) {
        const auto begin = std::chrono::steady_clock::now();
        std::string why;
        do {
            try {
                if (candidate.device.starts_with("net_af_xdp"))
                    hook_ = std::make_unique<xdp_hook>(parsed.interface, parsed.all_queues ? options.engines : 0);
                probe(spec, candidate);
                configure(spec, parsed, options);
                if (!parsed.written.empty())
                    file_ = std::make_unique<capture_writer>(spec, parsed.written);
                interface_ = std::make_unique<kernel_interface>(parsed.interface);
                if (shared_)
                    driver_ = "wire";
                for (const packet_socket& socket : packet_sockets_)
                    packet_rings_.push_back(std::make_unique<packet_ring>(socket, ring_frame_bytes_, *interface_));
                if (hook_ && parsed.note.text.empty())
                    core::log(log_level::info, fmt::format("weftio: port {}: AF_XDP takes all packets of {} away from "
                                                           "Linux while the port is open",
                                                           spec, parsed.interface));
                return;
            } catch (const std::exception& reason) {
                take_down();
                why = cause(spec, reason.what());
                comes_back_ = comes_back_ && std::chrono::steady_clock::now() - begin < 3s;
                if (comes_back_)
                    std::this_thread::sleep_for(10ms);
                else if (&candidate == &parsed.candidates.back())
                    throw;
            }
        } while (std::exchange(comes_back_, false));
        core::log(log_level::warning,
                  fmt::format("weftio: port {}: {} is unavailable: {}; falling back to {}; {}", spec, candidate.device,
                              why, (&candidate)[1].device, af_packet_alters));
    }
}

dpdk_port::~dpdk_port()
{
    take_down();
}

/// Uses the device of that name if it exists, else makes it.
void dpdk_port::probe(std::string_view spec, const port_candidate& candidate)
{
    device_ = candidate.device;
    if (rte_eth_dev_get_port_by_name(device_.c_str(), &id_) == 0)
        return claim(spec);
    if (hook_)
        hook_->require_free(spec);
    bus_ = candidate.pci ? "pci" : "vdev";
    ring_frame_bytes_ = candidate.device.starts_with("net_af_packet") ? ring_frame_bytes(candidate.arguments) : 0;
    if (int result = make_device(candidate.arguments); result != 0) {
        if (candidate.pci && result != -ENODEV)
            require_physical_addresses(spec, device_);
        if (!candidate.pci && result == -EFAULT)
            refuse_without_driver(spec, device_);
        fail_to_open(spec, "opening the device", meaning_of(result));
    }
    if (rte_eth_dev_get_port_by_name(device_.c_str(), &id_) != 0)
        fail_to_open(spec, "finding a network port in the device", -ENODEV);
    claim(spec);
}

/// Makes the device. One port at a time, because the sockets that appear meanwhile are taken to be this driver's.
int dpdk_port::make_device(const std::string& arguments)
{
    struct makers {
        std::mutex one_at_a_time;
    };
    std::scoped_lock lock(core::undying<makers>().one_at_a_time);
    const std::vector<packet_socket> before = packet_sockets();
    if (int result = add_device(bus_, device_, arguments); result != 0)
        return result;
    ours_ = true; // take_down() removes it from now on, also if it is no network device
    packet_sockets_.clear();
    if (ring_frame_bytes_ != 0)
        std::ranges::set_difference(packet_sockets(), before, std::back_inserter(packet_sockets_));
    return 0;
}

void dpdk_port::claim(std::string_view spec)
{
    if (!claim_.take(id_))
        throw error(errc::in_use,
                    fmt::format("weftio: port {}: {} is already open in a Weftio port; close that port first, or "
                                "name another device",
                                spec, device_));
}

void dpdk_port::configure(std::string_view spec, const port_spec& parsed, const port_options& options)
{
    rte_eth_dev_info info{};
    if (int result = rte_eth_dev_info_get(id_, &info); result != 0)
        fail_to_open(spec, "reading the device's capabilities", result);
    driver_ = info.driver_name;
    queue_count_ = static_cast<std::uint16_t>(options.engines);
    most_mtu_ = std::min(info.max_mtu, most_mtu_of(spec));
    if (ring_frame_bytes_ != 0)
        most_mtu_ = std::min(most_mtu_, ring_frame_bytes_ - ring_header_bytes - tagged_header_bytes - 1);
    require_queues(spec, info, queue_count_);
    find_reach(info);
    const std::uint32_t mtu = shared_ && options.mtu == 0 ? mtu_of_a_wire : options.mtu;
    const bool any_length = takes_any_length(driver_, parsed);
    if (!pools_.make(driver_, {.socket = rte_eth_dev_socket_id(id_),
                               .queues = queue_count_,
                               .frame_bytes = shared_ ? mtu + tagged_header_bytes : ring_frame_bytes_,
                               .sent_bytes = mtu + tagged_header_bytes,
                               .holds_none = shared_ != nullptr,
                               .on_bus = dma_ != nullptr}))
        refuse_for_want_of_memory(spec, queue_count_);
    if (shared_)
        shared_->receive_into(*pools_.received(0));

    const close_on_exec descriptors;
    const rte_eth_conf configuration = configuration_for(info, any_length ? mtu : 0);
    if (int result = rte_eth_dev_configure(id_, queue_count_, queue_count_, &configuration); result != 0)
        fail_to_open(spec, "configuring the device", result);
    if (options.mtu != 0 && !any_length)
        if (int result = rte_eth_dev_set_mtu(id_, options.mtu); result != 0)
            refuse_mtu(spec, driver_, options.mtu, result);
    settings_.have_been_changed();
    make_queues(spec);
    if (int result = rte_eth_dev_start(id_); result != 0)
        fail_to_open(spec, "starting the device", result);
    started_ = true;
    if (dma_ && driver_ != polls_in_bursts)
        zero_copy_ = zero_copy_ && rte_eth_tx_done_cleanup(id_, 0, 0) != -ENOTSUP;
    rte_eth_promiscuous_enable(id_); // drivers without promiscuous mode receive everything anyway
    settings_.have_been_changed();
}

/// What the device is asked for, of all that it can do. @param mtu  0: the driver's own
rte_eth_conf dpdk_port::configuration_for(const rte_eth_dev_info& info, std::uint32_t mtu)
{
    rte_eth_conf configuration{};
    configuration.rxmode.mtu = mtu;
    configuration.rxmode.offloads = info.rx_offload_capa & (RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_TIMESTAMP |
                                                            RTE_ETH_RX_OFFLOAD_SCATTER);
    if (std::uint64_t spread_by = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
        queue_count_ > 1 && spread_by != 0) {
        configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        configuration.rx_adv_conf.rss_conf.rss_hf = spread_by;
    }
    sends_on_time_ = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) != 0;
    if (sends_on_time_) {
        configuration.txmode.offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
        rte_mbuf_dyn_tx_timestamp_register(nullptr, nullptr); // mlx5 needs it before the port starts
    }
    if (dma_) // drivers with multi-segment sends return mbufs on request; others only once their ring is full
        configuration.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    return configuration;
}

/// Decides whether the device can read frames where they lie. Otherwise frames are copied to DPDK's memory, also where
/// nothing is known of the device.
void dpdk_port::find_reach(const rte_eth_dev_info& info) noexcept
{
    if (std::string_view(rte_bus_name(rte_dev_bus(info.device))) == "vdev") {
        zero_copy_ = !stands_before_others();
        return;
    }
    dma_ = info.device;
    zero_copy_ = rte_eal_iova_mode() == RTE_IOVA_VA; // with physical addresses, consecutive pages may be scattered
}

/// Waits until the driver has sent the copies it holds, since they already count as sent. Drivers without
/// rte_eth_tx_done_cleanup() get 100 ms, in which a full ring is sent.
void dpdk_port::wait_for_copies() const noexcept
{
    const auto end = std::chrono::steady_clock::now() + (zero_copy_ ? 1000ms : 100ms);
    while (dma_ && pools_.copies() && rte_mempool_full(pools_.copies()) == 0 &&
           std::chrono::steady_clock::now() < end) {
        for (std::uint16_t queue = 0; queue < queue_count_; ++queue)
            if (rte_eth_tx_done_cleanup(id_, queue, 0) == -ENOTSUP)
                rte_eth_tx_burst(id_, queue, nullptr, 0);
        std::this_thread::sleep_for(1ms);
    }
}

void dpdk_port::make_queues(std::string_view spec)
{
    std::uint16_t rx = descriptors, tx = dma_ ? nic_tx_descriptors : descriptors;
    if (int result = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx); result != 0)
        fail_to_open(spec, "setting the size of the driver's rings", result);
    for (std::uint16_t queue = 0; queue < queue_count_; ++queue) {
        if (int result = make_receive_queue(queue, rx); result != 0)
            fail_to_open(spec, "creating the driver's receive queue", result);
        if (int result = rte_eth_tx_queue_setup(id_, queue, tx, static_cast<unsigned>(SOCKET_ID_ANY), nullptr);
            result != 0)
            fail_to_open(spec, "creating the driver's send queue", result);
    }
}

/// Makes the driver's receive queue. For af_xdp it records the objects that appear: DPDK 22.11 never deletes its UMEM,
/// whose socket holds the interface's queue, nor all of its BPF objects. After they are closed, the kernel releases the
/// queue asynchronously, so the next port may find it busy. The retry uses a new device: after a failure the driver
/// continues in its fill ring where it was, while the kernel starts from the beginning.
int dpdk_port::make_receive_queue(std::uint16_t queue, std::uint16_t entries)
{
    rte_mempool* pool = pools_.received(queue);
    auto make = [&] {
        return rte_eth_rx_queue_setup(id_, queue, entries, static_cast<unsigned>(SOCKET_ID_ANY), nullptr, pool);
    };
    if (driver_ != "net_af_xdp")
        return make();
    struct xdp_ports {
        std::mutex one_at_a_time;
        std::set<std::uint32_t> known; // indices of interfaces on which this process has had an AF_XDP port
    };
    auto& [one_at_a_time, known] = core::undying<xdp_ports>();
    std::scoped_lock lock(one_at_a_time);
    rte_eth_dev_info info{};
    if (int result = rte_eth_dev_info_get(id_, &info); result != 0)
        return result;
    constexpr std::size_t most_made = 64; // about six objects appear
    const xdp_objects before = xdp_objects_open();
    xdp_objects now; // reserved before the driver makes objects, so that out-of-memory cannot lose them
    now.reserve(before.size() + most_made);
    xdp_objects_.reserve(xdp_objects_.size() + now.capacity());
    const int result = make();
    list_xdp_objects(now);
    std::erase_if(
        now, [&](const xdp_object& object) { return std::find(before.begin(), before.end(), object) != before.end(); });
    xdp_objects_.insert(xdp_objects_.end(), now.begin(), now.end());
    comes_back_ = result != 0 && ours_ && known.contains(info.if_index);
    if (result == 0 && hook_)
        hook_->adopt();
    if (result == 0 && queue + 1 == queue_count_) {
        known.insert(info.if_index);
        xdp_sockets_ = sockets_among(xdp_objects_);
    }
    return result;
}

void dpdk_port::take_down() noexcept
{
    const bool removed = claim_.removed();
    settings_.are_let_go();
    if (std::exchange(started_, false) && !removed) {
        wait_for_copies();
        rte_eth_dev_stop(id_);
    }
    claim_.release();
    shared_.reset(); // gives back its mbufs
    if (std::exchange(ours_, false)) {
        if (hook_)
            hook_->let_go([&] { close_device(removed); });
        else
            close_device(removed);
        if (const rte_device* device = std::exchange(dma_, nullptr)) // removed already
            forget_device(*device);
        xdp_sockets_.clear();
        close_descriptors(std::exchange(xdp_objects_, {}));
    }
    hook_.reset();
    settings_.restore();
    pools_.let_go(device_);
}

/// @param removed  somebody else has removed the device
void dpdk_port::close_device(bool removed) noexcept
{
    std::uint16_t other = 0;
    if (!removed)
        remove_device();
    else if (rte_eth_dev_get_port_by_name(device_.c_str(), &other) != 0) // no other device has taken the name
        dpdk::remove_device(bus_, device_);                              // removes what rte_eth_dev_close() leaves
    if (!removed || rte_eth_dev_get_port_by_name(device_.c_str(), &other) != 0)
        free_rings_of(device_);
}

void dpdk_port::remove_device() noexcept
{
    empty_rings_of(device_);
    if (const rte_device* device = std::exchange(dma_, nullptr)) {
        rte_eth_dev_close(id_); // the device does no DMA from now on
        forget_device(*device);
    }
    const int result = dpdk::remove_device(bus_, device_);
    if (result == 0)
        return;
    rte_eth_dev_close(id_); // makes the driver release the pools
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: device {} is closed, but DPDK could not remove it ({}); its name stays in use",
                           device_, rte_strerror(-result));
    });
}

bool dpdk_port::stands_before_others() const noexcept
{
    return driver_ == "net_bonding" || driver_ == "net_failsafe";
}

/// DPDK's af_packet driver joins a fanout group that joins fragments, and puts tags back without their type.
port_info dpdk_port::info() const
{
    const bool packet = driver_ == "net_af_packet";
    return {
        .driver = driver_, .linux_receives_too = packet, .joins_fragments = packet, .rewrites_service_tags = packet};
}

std::array<std::uint8_t, 6> dpdk_port::mac() const noexcept
{
    if (shared_)
        return shared_->member().address();
    rte_ether_addr address{};
    if (!claim_.removed())
        rte_eth_macaddr_get(id_, &address);
    std::array<std::uint8_t, 6> bytes{};
    std::copy_n(address.addr_bytes, bytes.size(), bytes.begin());
    return bytes;
}

std::uint16_t dpdk_port::mtu() const noexcept
{
    std::uint16_t mtu = 0;
    if (!claim_.removed())
        rte_eth_dev_get_mtu(id_, &mtu);
    return mtu_behind(*interface_, mtu, most_mtu_);
}

bool dpdk_port::link_up() const noexcept
{
    if (interface_->known()) {
        const kernel_interface::state seen = interface_->read_state();
        return seen.there && seen.up;
    }
    rte_eth_link link{};
    return !claim_.removed() && rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::uint64_t dpdk_port::tx_dropped() const noexcept
{
    if (driver_ == "net_tap") // frames that the interface sends are the ones that the port receives
        return 0;
    if (shared_)
        return shared_->member().dropped() + shared_->lost();
    const std::uint64_t counted = interface_->tx_dropped();
    std::uint64_t again = 0;
    for (const auto& ring : packet_rings_)
        again += ring->tried_again();
    return counted - std::min(counted, again);
}

std::vector<port_queue> dpdk_port::port_queues() const
{
    std::uint16_t mtu = 0;
    if (int result = rte_eth_dev_get_mtu(id_, &mtu); result != 0) // without the MTU no frame can be refused as too long
        fail_to_open(device_, "reading the device's MTU", result);
    port_queue queue{.port = id_,
                     .queue = 0,
                     .mtu = mtu_behind(*interface_, mtu, most_mtu_),
                     .most_mtu = most_mtu_,
                     .file = file_.get(),
                     .dump = dump_.get(),
                     .hook = hook_.get(),
                     .shared = shared_.get(),
                     .copies = pools_.copies(),
                     .bounces = !dma_ && zero_copy_,
                     .empty_bursts = dma_ && driver_ == polls_in_bursts,
                     .timestamp_offset = -1,
                     .timestamp_flag = 0};
    if (sends_on_time_)
        rte_mbuf_dyn_tx_timestamp_register(&queue.timestamp_offset, &queue.timestamp_flag);
    std::vector<port_queue> queues;
    for (; queue.queue < queue_count_; ++queue.queue) {
        queue.ring = queue.queue < packet_rings_.size() ? packet_rings_[queue.queue].get() : nullptr;
        queues.push_back(queue);
    }
    return queues;
}

std::uint32_t dpdk_port::cut_bytes() const noexcept
{
    return ring_frame_bytes_ != 0 ? ring_frame_bytes_ - ring_header_bytes : UINT32_MAX;
}

std::uint64_t dpdk_port::missed() const noexcept
{
    rte_eth_stats stats{};
    if (claim_.removed())
        return 0;
    if (shared_)
        return shared_->missed();
    for (const packet_socket& socket : packet_sockets_) // their driver does not read this counter
        missed_by_sockets_.fetch_add(missed_since_asked(socket), std::memory_order_relaxed);
    std::uint64_t by_driver = rte_eth_stats_get(id_, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
    if (driver_ == "net_af_xdp") {
        // The driver leaves out full rings. Some interfaces count what its sockets lose, so take the larger count.
        std::uint64_t by_sockets = 0;
        for (const int socket : xdp_sockets_)
            by_sockets += lost_at(socket);
        by_driver = std::max({by_driver, by_sockets, interface_->rx_dropped()});
    }
    return by_driver + missed_by_sockets_.load(std::memory_order_relaxed);
}

} // namespace weftio::dpdk
