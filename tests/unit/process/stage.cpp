#include "stage.hpp"

#include "kernels.h"

WEFTIO_DEFINE_KERNEL(receives_for_ever, "kernels.h");
WEFTIO_DEFINE_KERNEL(sends_for_ever, "kernels.h");
WEFTIO_DEFINE_KERNEL(sends_some, "kernels.h");

namespace weftio::test {

stage::stage(const std::string& spec, port_options options)
    : device(weftio::device::open("cpu")), port(weftio::port::open(spec, std::move(options))),
      in(port, device, {.packets = 64}), out(port, device, {.entries = 64}),
      frames(port, device, {.count = 8, .buffer_bytes = 64}), words(device.allocate(64, memory_kind::cpu_device)),
      all(port, {}, flow_action::to(in))
{}

bool stage::run()
{
    receives = device.launch(receives_for_ever_kernel, {}, in, static_cast<std::uint32_t*>(words.device_address()));
    sends = device.launch(sends_for_ever_kernel, {}, out, frames);
    return eventually([&] { return (seen() != 0 || port.exhausted()) && out.counters().sent != 0; });
}

bool stage::send(std::uint32_t count)
{
    const std::uint64_t before = out.counters().sent;
    device.launch(sends_some_kernel, {}, out, frames, count).wait_for(patience);
    return eventually([&] { return out.counters().sent == before + count; });
}

} // namespace weftio::test
