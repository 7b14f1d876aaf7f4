// Rings in memory of a test.
#pragma once

#include <cstddef>
#include <memory>

#include "nic/rings.hpp"

namespace weftio::test {

/// Describes memory of the test as the memory of a ring on a CPU device. The test keeps ownership.
template <class T>
nic::ring_memory ring_at(T* first, std::size_t count = 1)
{
    auto block = std::make_shared<devices::memory_block>(devices::open_cpu());
    block->at.cpu = block->at.device = const_cast<std::remove_const_t<T>*>(first);
    block->bytes = count * sizeof(T);
    block->adopted = true;
    return {std::move(block)};
}

} // namespace weftio::test
