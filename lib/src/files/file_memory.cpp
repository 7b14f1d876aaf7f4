#include "storage/place.hpp"
#include "weftio/file.hpp"

namespace weftio {

file_memory::file_memory(const memory& memory, std::size_t offset) noexcept
    : address_(memory.device_address()), offset_(offset), block_(detail::internals::block(memory))
{}

storage::place detail::internals::place(const file_memory& memory)
{
    const std::size_t offset = memory.offset_;
    if (!memory.block_)
        return {static_cast<std::byte*>(memory.address_) + offset, nullptr, ~std::size_t{0}, {}};
    const devices::memory_block& block = *memory.block_;
    const std::size_t left = block.bytes - std::min(offset, block.bytes);
    if (block.at.cpu)
        return {static_cast<std::byte*>(block.at.cpu) + offset, nullptr, left, memory.block_};
    return {nullptr, static_cast<std::byte*>(block.at.device) + offset, left, memory.block_};
}

} // namespace weftio
