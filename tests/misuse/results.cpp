// Who drops what these return has done nothing, or undone it at once.
#include "weftio/weftio.hpp"

using namespace weftio;

void results(const device& device, const kernel<>& kernel, void* address, const memory& bytes)
{
    device.launch(kernel, {});                    // refused: ignoring return value
    device.allocate(64, memory_kind::cpu_device); // refused: ignoring return value
    device.adopt(address, 64);                    // refused: ignoring return value
    bytes.export_dma_buf();                       // refused: ignoring return value
    running_kernel running = device.launch(kernel, {});
    memory allocated = device.allocate(64, memory_kind::cpu_device);
    memory adopted = device.adopt(address, 64);
    int file = bytes.export_dma_buf();
    (void)file;
}
