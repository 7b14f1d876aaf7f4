#include "connections/management_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "cm/messages.hpp"
#include "rdma/rdma_end.hpp"
#include "weftio/device/wqe.h"

namespace weftio::connections {

namespace {

std::vector<net::roce_gid> addresses_of(const rdma_device& at)
{
    std::vector<net::roce_gid> all;
    for (const std::string& text : at.gids())
        all.push_back(rdma::address_of_host(text).value_or(net::roce_gid{}));
    return all;
}

std::uint32_t* record_of(const queue_pair& pair) noexcept
{
    return static_cast<std::uint32_t*>(pair.record());
}

} // namespace

management_queue::management_queue(const port& port, const rdma_device& at, std::function<void()> on_arrival)
    : gids_(addresses_of(at)), cpu_(device::open("cpu")), bytes_(cpu_.allocate(all_bytes, memory_kind::cpu_device)),
      region_(port, bytes_, {.rights = access::local_write}), sent_(port, cpu_, {.entries = entries, .events = false}),
      arrivals_(port, cpu_, {.entries = entries, .on_event = std::move(on_arrival)}),
      pair_(at, cpu_, sent_, arrivals_,
            {.service = rdma_service::datagram,
             .send_blocks = entries * blocks_of_an_entry,
             .receive_entries = entries,
             .signal_all = true,
             .management = true})
{
    constexpr std::uint16_t default_partition = 0xffff;
    for (std::uint32_t each = 0; each != entries; ++each)
        post_receive();
    arrivals_.arm();
    pair_.modify(rdma_state::init, {.partition_key = default_partition, .queue_key = cm::mad_queue_key});
    pair_.modify(rdma_state::ready_to_receive);
    pair_.modify(rdma_state::ready_to_send, {.send_psn = 0});
}

std::size_t management_queue::index_of(const net::roce_gid& local) const noexcept
{
    return static_cast<std::size_t>(std::find(gids_.begin(), gids_.end(), local) - gids_.begin());
}

std::uint8_t* management_queue::at(std::size_t offset) const noexcept
{
    return static_cast<std::uint8_t*>(bytes_.cpu_address()) + offset;
}

std::span<const std::uint8_t> management_queue::bytes_of(const completion& of) const noexcept
{
    if (of.failed() || of.source_queue != cm::mad_queue || of.bytes < header_bytes)
        return {};
    return {receive_at(of.index) + header_bytes, of.bytes - header_bytes};
}

cm::path management_queue::path_of(const completion& of) const noexcept
{
    constexpr std::size_t ipv4_at = header_bytes - 20;
    const std::uint8_t* const header = receive_at(of.index);
    cm::path found;
    if (header[0] >> 4 == 6) {
        std::copy_n(header + 8, found.peer.size(), found.peer.begin());
        std::copy_n(header + 24, found.local.size(), found.local.begin());
    } else {
        found.peer = net::gid_of_ipv4(std::span(header + ipv4_at + 12, 4).first<4>());
        found.local = net::gid_of_ipv4(std::span(header + ipv4_at + 16, 4).first<4>());
    }
    return found;
}

void management_queue::post_receive() noexcept
{
    const std::uint8_t* const to = receive_at(received_);
    weftio_wqe_data_segment entry{};
    entry.byte_count_be = weftio_swap32(receive_bytes);
    entry.lkey_be = weftio_swap32(region_.lkey());
    entry.address_be = weftio_swap64(reinterpret_cast<std::uint64_t>(to));
    std::memcpy(static_cast<std::uint8_t*>(pair_.receive_ring()) + received_ % entries * sizeof entry, &entry,
                sizeof entry);
    ++received_;
    // Release, pairs with the NIC's acquire of the record: the entry is written first.
    weftio_store_release_sys_u32(record_of(pair_), weftio_swap32(received_ & 0xffff));
}

management_queue::~management_queue()
{
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 1s;
    for (count_sent(); posted_ != done_ && std::chrono::steady_clock::now() < end; count_sent())
        std::this_thread::sleep_for(50us);
}

void management_queue::count_sent()
{
    std::array<completion, 32> some;
    for (std::size_t count; (count = sent_.poll(some)) != 0;)
        done_ += static_cast<std::uint32_t>(count);
}

bool management_queue::has_room()
{
    if (posted_ - done_ == entries)
        count_sent();
    return posted_ - done_ != entries;
}

void management_queue::send(const cm::path& to, const net::mac_address& mac,
                            std::span<const std::uint8_t, cm::mad_bytes> bytes)
{
    const std::size_t gid_index = index_of(to.local);
    if (gid_index == gids_.size() || !has_room())
        return;
    std::uint8_t* const place = at(sends_at + posted_ % entries * cm::mad_bytes);
    std::copy(bytes.begin(), bytes.end(), place);
    struct {
        weftio_wqe_control_segment control;
        weftio_wqe_datagram_segment peer;
        weftio_wqe_data_segment payload;
    } entry{};
    const std::uint32_t index = posted_ * blocks_of_an_entry;
    constexpr std::uint8_t hop_limit = 64;
    entry.control.opmod_index_opcode_be = weftio_swap32((index & 0xffff) << 8 | WEFTIO_OPCODE_SEND);
    entry.control.queue_ds_be = weftio_swap32(pair_.number() << 8 | sizeof entry / WEFTIO_WQE_SEGMENT_BYTES);
    entry.peer.queue_key_be = weftio_swap32(cm::mad_queue_key);
    entry.peer.queue_be = weftio_swap32(WEFTIO_DATAGRAM_EXTENDED | cm::mad_queue);
    entry.peer.hop_limit = hop_limit;
    entry.peer.gid_flow_be = weftio_swap32(static_cast<std::uint32_t>(gid_index) << 20);
    std::copy(mac.begin(), mac.end(), entry.peer.mac);
    std::copy(to.peer.begin(), to.peer.end(), entry.peer.gid);
    entry.payload.byte_count_be = weftio_swap32(cm::mad_bytes);
    entry.payload.lkey_be = weftio_swap32(region_.lkey());
    entry.payload.address_be = weftio_swap64(reinterpret_cast<std::uint64_t>(place));
    std::memcpy(static_cast<std::uint8_t*>(pair_.send_ring()) +
                    posted_ % entries * blocks_of_an_entry * WEFTIO_WQE_BLOCK_BYTES,
                &entry, sizeof entry);
    ++posted_;
    const std::uint32_t next = weftio_swap32((posted_ * blocks_of_an_entry & 0xffff));
    // Release, pairs with the NIC's acquire of the record: the entry is written first.
    weftio_store_release_sys_u32(record_of(pair_) + 1, next);
    weftio_store_doorbell_u64(pair_.doorbell(),
                              std::uint64_t{entry.control.queue_ds_be} << 32 | entry.control.opmod_index_opcode_be);
}

} // namespace weftio::connections
