#define ALLOW_EXPERIMENTAL_API // rte_dev_dma_map(), experimental since 2018
#include "dpdk/dma_mapping.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/undying.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uintptr_t large_page = 2 << 20;

/// Pages registered with DPDK, and the devices that they are mapped for. Pieces do not overlap.
struct piece {
    std::uintptr_t end = 0;
    unsigned users = 0;
    std::vector<rte_device*> devices{};
};

struct all_pieces {
    std::mutex mutex;
    std::map<std::uintptr_t, piece> pieces; // by begin
};
auto& [pieces_mutex, pieces] = core::undying<all_pieces>();

void* address(std::uintptr_t at) noexcept
{
    return reinterpret_cast<void*>(at);
}

/// Whether the device still exists: the application may have removed a device of its own.
bool is_there(const rte_device* device) noexcept
{
    for (std::uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port) {
        rte_eth_dev_info info{};
        if (rte_eth_dev_is_valid_port(port) && rte_eth_dev_info_get(port, &info) == 0 && info.device == device)
            return true;
    }
    return false;
}

void forget(std::uintptr_t begin, piece& piece) noexcept
{
    for (rte_device* device : piece.devices)
        if (is_there(device))
            rte_dev_dma_unmap(device, address(begin), begin, piece.end - begin);
    rte_extmem_unregister(address(begin), piece.end - begin);
    pieces.erase(begin);
}

[[noreturn]] void refuse(std::uintptr_t begin, std::uintptr_t end, const char* what)
{
    throw error(errc::not_supported, fmt::format("weftio: memory of {} bytes at {}: {} ({})", end - begin,
                                                 address(begin), what, rte_strerror(rte_errno)));
}

/// Registers a new piece. @pre no other piece has any of these pages
std::map<std::uintptr_t, piece>::iterator make_piece(std::uintptr_t begin, std::uintptr_t end)
{
    // DPDK uses this page size for its own table only; the IOMMU maps pages of any size.
    const std::uintptr_t page =
        (begin | end) % large_page == 0 ? large_page : static_cast<std::uintptr_t>(getpagesize());
    auto made = pieces.insert({begin, {.end = end}}).first;
    if (rte_extmem_register(address(begin), end - begin, nullptr, 0, page) == 0)
        return made;
    pieces.erase(made);
    refuse(begin, end, "DPDK cannot register it");
}

} // namespace

dma_mapping::dma_mapping(rte_device& device, const std::byte* begin, std::size_t bytes)
{
    const auto page = static_cast<std::uintptr_t>(getpagesize());
    const auto first = reinterpret_cast<std::uintptr_t>(begin), end = first + bytes;
    // A page shared with other memory is a piece of its own: it stays mapped while either uses it, and the pages beside
    // it do not.
    std::uintptr_t inner_begin = (first + page - 1) / page * page, inner_end = end / page * page;
    std::scoped_lock lock(pieces_mutex);
    try {
        if (inner_begin != first)
            cover(device, inner_begin - page, inner_begin);
        if (inner_end > inner_begin)
            cover(device, inner_begin, inner_end);
        if (inner_end != end && inner_end >= inner_begin)
            cover(device, inner_end, inner_end + page);
    } catch (...) {
        release();
        throw;
    }
}

dma_mapping::~dma_mapping()
{
    std::scoped_lock lock(pieces_mutex);
    release();
}

/// Adds a user to each piece that overlaps these pages, and makes the missing pieces.
void dma_mapping::cover(rte_device& device, std::uintptr_t begin, std::uintptr_t end)
{
    while (begin < end) {
        auto behind = pieces.upper_bound(begin);
        auto found =
            behind != pieces.begin() && std::prev(behind)->second.end > begin ? std::prev(behind) : pieces.end();
        if (found == pieces.end())
            found = make_piece(begin, behind == pieces.end() ? end : std::min(end, behind->first));
        auto& [start, piece] = *found;
        pieces_.push_back(start);
        ++piece.users;
        if (std::find(piece.devices.begin(), piece.devices.end(), &device) == piece.devices.end()) {
            if (rte_dev_dma_map(&device, address(start), start, piece.end - start) != 0)
                refuse(start, piece.end, "the device cannot map it for DMA");
            piece.devices.push_back(&device);
        }
        begin = piece.end;
    }
}

void dma_mapping::release() noexcept
{
    for (std::uintptr_t begin : pieces_)
        if (piece& piece = pieces[begin]; --piece.users == 0)
            forget(begin, piece);
    pieces_.clear();
}

void forget_device(const rte_device& device) noexcept
{
    std::scoped_lock lock(pieces_mutex);
    for (auto& [begin, piece] : pieces) {
        auto found = std::find(piece.devices.begin(), piece.devices.end(), &device);
        if (found == piece.devices.end())
            continue;
        if (piece.devices.size() == 1 &&
            is_there(*found)) // devices behind one IOMMU share a mapping, so only the last one unmaps it
            rte_dev_dma_unmap(*found, address(begin), begin, piece.end - begin);
        piece.devices.erase(found);
    }
}

} // namespace weftio::dpdk
