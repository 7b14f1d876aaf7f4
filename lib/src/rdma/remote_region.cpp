#include <fmt/format.h>

#include "rdma/blob.hpp"
#include "weftio/error.hpp"
#include "weftio/rdma.hpp"

namespace weftio {

namespace {

constexpr rdma::blob_kind region_blob{"WFRM", "remote_region", "remote_region::to_bytes() or text()",
                                      remote_region::size_bytes};
constexpr std::size_t region_rights = rdma::blob_body, region_address = 8, region_length = 16, region_key = 24;
constexpr access rdma_peer_rights = access::remote_write | access::remote_read | access::remote_atomic;

} // namespace

remote_region remote_region::of(const memory_region& region, std::size_t offset, std::size_t bytes)
{
    if (offset > region.bytes() || bytes > region.bytes() - offset)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: remote_region: {} bytes at offset {} exceed the region of {} bytes", bytes,
                                offset, region.bytes()));
    if ((region.rights() & rdma_peer_rights) == access::none)
        throw error(errc::invalid_argument,
                    "weftio: remote_region: the region grants a peer no rights; add access::remote_write, remote_read "
                    "or remote_atomic to region_options::rights");
    return {.address = region.iova() + offset,
            .bytes = bytes == 0 ? region.bytes() - offset : bytes,
            .rkey = region.lkey(), // a region has one number for lkey and rkey
            .rights = region.rights()};
}

std::array<std::uint8_t, remote_region::size_bytes> remote_region::to_bytes() const
{
    std::array<std::uint8_t, size_bytes> blob{};
    blob[region_rights] = static_cast<std::uint8_t>(rights);
    rdma::put_be(&blob[region_address], address, 8);
    rdma::put_be(&blob[region_length], bytes, 8);
    rdma::put_be(&blob[region_key], rkey, 4);
    rdma::seal(region_blob, blob);
    return blob;
}

std::string remote_region::text() const
{
    return rdma::to_hex(to_bytes());
}

remote_region remote_region::of_text(std::string_view text)
{
    std::array<std::uint8_t, size_bytes> blob{};
    rdma::from_hex(region_blob, text, blob);
    return of_bytes(blob);
}

remote_region remote_region::of_bytes(std::span<const std::uint8_t> bytes)
{
    rdma::require_sealed(region_blob, bytes);
    return {.address = rdma::get_be(&bytes[region_address], 8),
            .bytes = rdma::get_be(&bytes[region_length], 8),
            .rkey = static_cast<std::uint32_t>(rdma::get_be(&bytes[region_key], 4)),
            .rights = static_cast<access>(bytes[region_rights])};
}

weftio_dev_remote remote_region::on_device() const noexcept
{
    return {.address = address, .bytes = bytes, .rkey_be = weftio_swap32(rkey), .reserved = 0};
}

} // namespace weftio
