#include "buf.hpp"

using namespace weftio::doca;

namespace {

/// Where `address` lies in the range, by the address of the CPU or of kernels.
/// @throws failure DOCA_ERROR_INVALID_VALUE the bytes are not within it
std::size_t offset_in(const doca_mmap::registered& range, const void* address, std::size_t bytes)
{
    for (const auto* base : {range.device_address, range.cpu_address}) {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
        if (base && offset < range.bytes && bytes <= range.bytes - offset)
            return offset;
    }
    fail(DOCA_ERROR_INVALID_VALUE, "{} bytes at {} are not within the range of the mmap, {} bytes at {}", bytes,
         fmt::ptr(address), range.bytes, fmt::ptr(range.device_address));
}

void take(doca_buf_inventory* inventory, doca_mmap* mmap, const void* address, std::size_t bytes, bool is_data,
          doca_buf** buf)
{
    const auto from = known(inventory);
    const auto memory = known(mmap);
    result(buf, "buf");
    require(address && bytes, DOCA_ERROR_INVALID_VALUE, "a buffer needs an address and bytes, not {} and {}",
            fmt::ptr(address), bytes);
    require(from->started, DOCA_ERROR_BAD_STATE, "the inventory is not started");
    require(!memory->remote, DOCA_ERROR_INVALID_VALUE, "the mmap is of a peer's memory, which only RDMA reaches");
    auto range = memory->range();
    const std::size_t offset = offset_in(*range, address, bytes);
    if (from->out->fetch_add(1) >= from->buffers) {
        --*from->out;
        fail(DOCA_ERROR_NO_MEMORY, "all {} buffers of the inventory are out", from->buffers);
    }
    make(buf, from->out, std::move(range), offset, bytes, is_data ? bytes : 0);
}

} // namespace

doca_error_t doca_buf_inventory_create(std::size_t buffers, doca_buf_inventory** inventory)
{
    return call(__func__, [&] {
        require(buffers && buffers <= 1u << 31, DOCA_ERROR_INVALID_VALUE, "{} buffers, not 1 to 2^31", buffers);
        make(inventory, buffers);
    });
}
doca_error_t doca_buf_inventory_start(doca_buf_inventory* inventory)
{
    return call(__func__, [&] {
        auto one = known(inventory);
        require(!one->started, DOCA_ERROR_BAD_STATE, "the inventory is started already");
        one->started = true;
    });
}
doca_error_t doca_buf_inventory_destroy(doca_buf_inventory* inventory)
{
    return call(__func__, [&] { living<doca_buf_inventory>::remove(inventory); });
}
doca_error_t doca_buf_inventory_buf_get_by_data(doca_buf_inventory* inventory, doca_mmap* mmap, void* data,
                                                std::size_t bytes, doca_buf** buf)
{
    return call(__func__, [&] { take(inventory, mmap, data, bytes, true, buf); });
}
doca_error_t doca_buf_inventory_buf_get_by_addr(doca_buf_inventory* inventory, doca_mmap* mmap, void* address,
                                                std::size_t bytes, doca_buf** buf)
{
    return call(__func__, [&] { take(inventory, mmap, address, bytes, false, buf); });
}

doca_error_t doca_buf_dec_refcount(doca_buf* buf, std::uint16_t* refcount)
{
    return call(__func__, [&] {
        auto one = known(buf);
        if (refcount)
            *refcount = one->references;
        if (--one->references == 0)
            living<doca_buf>::remove(buf);
    });
}
