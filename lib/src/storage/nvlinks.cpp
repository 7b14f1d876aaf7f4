// NVLinks, from NVIDIA's management library.
#include "devices/cuda/management.hpp"
#include "storage/topology.hpp"

namespace weftio::storage {

std::string add_nvlinks(topology& to)
{
    const std::vector<std::size_t> gpus = to.all(topology_node::kind::gpu);
    if (gpus.size() < 2)
        return {};
    const devices::cuda::management_library library;
    if (!library.is_ready())
        return library.is_there() ? "libnvidia-ml.so.1 cannot be initialized" : "libnvidia-ml.so.1 cannot be loaded";
    for (std::size_t first = 0; first < gpus.size(); ++first)
        for (std::size_t second = first + 1; second < gpus.size(); ++second) {
            void* device = library.device(to.nodes()[gpus[first]].address);
            void* other = library.device(to.nodes()[gpus[second]].address);
            if (device && other && library.has_nvlink(device, other))
                to.connect(gpus[first], gpus[second]);
        }
    return {};
}

} // namespace weftio::storage
