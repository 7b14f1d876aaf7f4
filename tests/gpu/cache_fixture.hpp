// A registration cache for memory of the GPU, at an engine of its own.
#pragma once

#include <cstdint>

#include "devices/cuda/cuda_device.hpp"
#include "fixture.hpp"
#include "nic/soft/dma/soft_dma.hpp"
#include "weftio/dma.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {

constexpr access peer_writes = access::local_write | access::remote_write;

class gpu_cache_fixture : public gpu_fixture {
 protected:
    explicit gpu_cache_fixture(registration_cache_options options = {}) : cache(options) {}
    void SetUp() override
    {
        gpu_fixture::SetUp();
        if (IsSkipped())
            return;
        cache.register_with(engine);
        cache.add_memory_of(gpu());
    }
    devices::cuda::cuda_device& backend() const
    {
        return static_cast<devices::cuda::cuda_device&>(detail::internals::backend(gpu()));
    }
    /// Whether the engine would use memory by this key.
    bool knows(std::uint32_t key) const
    {
        return dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine)).keys().find(key).has_value();
    }

    dma_engine engine;
    registration_cache cache;
};

} // namespace weftio::test
