#include "weftio/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "nic/dma_backend.hpp"
#include "nic/file_backend.hpp"
#include "regions/named_region.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio {

namespace {

void check(access rights)
{
    constexpr access all =
        access::local_write | access::remote_write | access::remote_read | access::remote_atomic | access::bind;
    constexpr access changing = access::remote_write | access::remote_atomic;
    const auto bits = static_cast<unsigned>(rights);
    if ((rights & all) != rights)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: memory_region: rights are {:#x}, which has unknown bits; combine values of weftio::access",
                bits));
    if ((rights & changing) != access::none && (rights & access::local_write) == access::none)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_region: rights are {:#x}, which lets a peer write but not the NIC that "
                                "writes for it; add access::local_write",
                                bits));
}

/// What a region may be registered as. @param bytes  of the region
void check(const devices::memory_block& block, const region_options& options, std::size_t bytes)
{
    check(options.rights);
    if (!block.at.writable && (options.rights & access::local_write) != access::none)
        throw error(errc::not_reachable,
                    fmt::format("weftio: memory_region: the {} bytes at {} are read-only, but rights have "
                                "access::local_write; register them with access::none, or use writable memory",
                                block.bytes, block.at.device));
    if (options.iova && *options.iova + bytes - 1 < *options.iova)
        throw error(errc::invalid_argument, fmt::format("weftio: memory_region: iova is {:#x}, and {} bytes from there "
                                                        "exceed the address space; use a smaller one",
                                                        *options.iova, bytes));
}

std::uint32_t lkey_at(const regions::named_region& region, const nic::memory_user& nic, const std::string& name)
{
    const auto key = region.lkey(nic);
    if (!key)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: memory_region: it is not registered with {} and has no key there; call register_with() first",
                name));
    return *key;
}

} // namespace

namespace {

void require_open(const regions::named_region& region, const char* call)
{
    if (region.closed())
        throw error(errc::closed,
                    fmt::format("weftio: memory_region: {}: the region was closed; make another one", call));
}

} // namespace

struct memory_region::state {
    state(std::shared_ptr<const devices::memory_block> block, const region_options& options)
        : region(std::move(block), regions::region_use::entries, options)
    {}

    regions::named_region region;
};

memory_region::memory_region(const memory& memory, region_options options)
{
    if (!memory)
        throw error(errc::invalid_argument, "weftio: memory_region: the memory is empty; allocate it first");
    check(*detail::internals::block(memory), options, memory.bytes());
    state_ = std::make_unique<state>(detail::internals::block(memory), options);
}

memory_region::memory_region(const port& port, const memory& memory, region_options options)
    : memory_region(memory, options)
{
    register_with(port);
}

memory_region::memory_region(const dma_engine& engine, const memory& memory, region_options options)
    : memory_region(memory, options)
{
    register_with(engine);
}

memory_region::memory_region(const file_engine& engine, const memory& memory, region_options options)
    : memory_region(memory, options)
{
    register_with(engine);
}

memory_region::memory_region(memory_region&&) noexcept = default;
memory_region& memory_region::operator=(memory_region&&) noexcept = default;
memory_region::~memory_region() = default;

void memory_region::register_with(const port& port)
{
    require_open(state_->region, "register_with");
    state_->region.register_with(detail::internals::backend(port));
}

void memory_region::register_with(const dma_engine& engine)
{
    require_open(state_->region, "register_with");
    state_->region.register_with(detail::internals::backend(engine));
}

void memory_region::register_with(const file_engine& engine)
{
    require_open(state_->region, "register_with");
    state_->region.register_with(*detail::internals::backend(engine));
}

void memory_region::close()
{
    state_->region.require_no_windows("close");
    state_->region.revoke();
}

std::uint32_t memory_region::windows() const noexcept
{
    return state_->region.windows();
}

std::uint32_t memory_region::rereg(const region_options& options, std::size_t offset, std::size_t bytes)
{
    require_open(state_->region, "rereg");
    const devices::memory_block& block = state_->region.block();
    if (offset >= block.bytes || bytes > block.bytes - offset)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_region: rereg: {} bytes at offset {} exceed the memory of {} bytes",
                                bytes, offset, block.bytes));
    const std::size_t count = bytes == 0 ? block.bytes - offset : bytes;
    check(block, options, count);
    state_->region.rereg(options, offset, count);
    return lkey();
}

void memory_region::replace(const memory& memory, const region_options& options)
{
    require_open(state_->region, "replace");
    if (!memory)
        throw error(errc::invalid_argument, "weftio: memory_region: replace: the memory is empty; allocate it first");
    check(*detail::internals::block(memory), options, memory.bytes());
    state_->region.replace(detail::internals::block(memory), options);
}

std::uint32_t memory_region::lkey() const noexcept
{
    return state_->region.lkey();
}

std::uint32_t memory_region::lkey(const port& port) const
{
    return lkey_at(state_->region, detail::internals::backend(port), "port " + port.spec());
}

std::uint32_t memory_region::lkey(const dma_engine& engine) const
{
    return lkey_at(state_->region, detail::internals::backend(engine), "this DMA engine");
}

std::uint32_t memory_region::lkey(const file_engine& engine) const
{
    return lkey_at(state_->region, *detail::internals::backend(engine), "this file engine");
}

std::uint32_t detail::internals::lkey(const memory_region& region, const nic::backend& port) noexcept
{
    const regions::named_region& named = region.state_->region;
    return named.lkey(port).value_or(named.process_key());
}

void* memory_region::device_address() const noexcept
{
    return static_cast<std::byte*>(state_->region.block().at.device) + state_->region.offset();
}

std::uint64_t memory_region::iova() const noexcept
{
    return state_->region.iova();
}

std::size_t memory_region::bytes() const noexcept
{
    return state_->region.bytes();
}

access memory_region::rights() const noexcept
{
    return state_->region.rights();
}

const std::shared_ptr<const devices::memory_block>& detail::internals::block(const memory_region& region) noexcept
{
    return region.state_->region.share();
}

std::size_t detail::internals::offset(const memory_region& region) noexcept
{
    return region.state_->region.offset();
}

weftio_dev_buf memory_region::buffer(std::size_t offset, std::size_t count) const
{
    if (offset > bytes() || count > bytes() - offset || count > UINT32_MAX)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: memory_region: no buffer of {} bytes at offset {}: the region has {}, and a buffer at most {}",
                count, offset, bytes(), UINT32_MAX));
    const std::size_t rest = std::min<std::size_t>(bytes() - offset, UINT32_MAX);
    return {.address = reinterpret_cast<weftio_u8*>(iova() + offset),
            .bytes = static_cast<weftio_u32>(count == 0 ? rest : count),
            .lkey_be = weftio_swap32(lkey())};
}

namespace {

constexpr std::uint32_t longest_buffer = 0xffffffc0; // the last multiple of 64

buf_arr_options checked(buf_arr_options options)
{
    if (options.count == 0 || options.buffer_bytes == 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: buf_arr: {} buffers of {} bytes; set both to at least 1", options.count,
                                options.buffer_bytes));
    if (options.stride_bytes == 0 && options.buffer_bytes > longest_buffer)
        throw error(errc::invalid_argument, fmt::format("weftio: buf_arr: buffers of {} bytes; set {} at most",
                                                        options.buffer_bytes, longest_buffer));
    if (options.stride_bytes == 0)
        options.stride_bytes = (options.buffer_bytes + 63) / 64 * 64;
    if (options.stride_bytes < options.buffer_bytes)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: buf_arr: stride_bytes is {}, less than a buffer of {} bytes; leave it 0 for the default",
                options.stride_bytes, options.buffer_bytes));
    return options;
}

buf_arr_options in_own_memory(const buf_arr_options& options)
{
    if (options.offset_bytes != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: buf_arr: offset_bytes is {}, but the array allocates its own memory; leave it "
                                "0, or create the array in a memory_region",
                                options.offset_bytes));
    return options;
}

buf_arr_options in_region(const memory_region& region, const device& device, const buf_arr_options& options)
{
    if (options.domain != protection_domain{})
        throw error(errc::invalid_argument, "weftio: buf_arr: domain is set, but buffers in a memory_region have the "
                                            "region's; set region_options::domain instead");
    regions::require_within("buf_arr", region, device,
                            {.count = options.count,
                             .bytes = options.buffer_bytes,
                             .stride_bytes = options.stride_bytes,
                             .offset_bytes = options.offset_bytes});
    return options;
}

} // namespace

/// Where the buffers lie, and by which key entries name them.
struct buf_arr::state {
    /// In memory of its own.
    template <class At>
    state(const At& at, const device& device, const buf_arr_options& wanted)
        : options(in_own_memory(checked(wanted))),
          own(std::in_place, at,
              device.allocate(std::size_t{options.count} * options.stride_bytes, memory_kind::cpu_device),
              region_options{.domain = options.domain}),
          block(detail::internals::block(*own)), lkey(own->lkey(at)),
          handle(device.allocate(sizeof(weftio_dev_buf_arr), memory_kind::device))
    {
        fill_handle();
    }
    /// In the caller's.
    state(const memory_region& region, const device& device, const buf_arr_options& wanted)
        : options(in_region(region, device, checked(wanted))), block(detail::internals::block(region)),
          first(detail::internals::offset(region) + options.offset_bytes), lkey(region.lkey()),
          handle(device.allocate(sizeof(weftio_dev_buf_arr), memory_kind::device))
    {
        fill_handle();
    }
    void fill_handle()
    {
        weftio_dev_buf_arr made{};
        made.base = static_cast<std::uint8_t*>(block->at.device) + first;
        made.stride_bytes = options.stride_bytes;
        made.count = options.count;
        made.lkey_be = weftio_swap32(lkey);
        made.buffer_bytes = options.buffer_bytes;
        made.abi = WEFTIO_DEV_ABI_BUF_ARR;
        handle.upload(&made, sizeof made);
    }

    buf_arr_options options;
    std::optional<memory_region> own;
    std::shared_ptr<const devices::memory_block> block;
    std::size_t first = 0; ///< where buffer 0 begins in the block
    std::uint32_t lkey;
    memory handle;
};

buf_arr::buf_arr(const port& port, const device& device, buf_arr_options options)
    : state_(std::make_unique<state>(port, device, options))
{}

buf_arr::buf_arr(const dma_engine& engine, const device& device, buf_arr_options options)
    : state_(std::make_unique<state>(engine, device, options))
{}

buf_arr::buf_arr(const file_engine& engine, const device& device, buf_arr_options options)
    : state_(std::make_unique<state>(engine, device, options))
{}

buf_arr::buf_arr(const memory_region& region, const device& device, buf_arr_options options)
    : state_(std::make_unique<state>(region, device, options))
{}

buf_arr::buf_arr(buf_arr&&) noexcept = default;
buf_arr& buf_arr::operator=(buf_arr&&) noexcept = default;
buf_arr::~buf_arr() = default;

weftio_dev_buf_arr* buf_arr::handle() const noexcept
{
    return static_cast<weftio_dev_buf_arr*>(state_->handle.device_address());
}

std::uint32_t buf_arr::count() const noexcept
{
    return state_->options.count;
}

std::uint32_t buf_arr::lkey() const noexcept
{
    return state_->lkey;
}

void* buf_arr::cpu_address(std::uint32_t index) const noexcept
{
    auto* const base = static_cast<std::byte*>(state_->block->at.cpu);
    const buf_arr_options& options = state_->options;
    return base ? base + state_->first + std::size_t{index} * options.stride_bytes : nullptr;
}

} // namespace weftio
