// What a hit of a registration cache costs for memory of a GPU, beside asking for the buffer ID, which it cannot spare.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "devices/cuda/cuda_device.hpp"
#include "measure.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::bench {

namespace {

namespace cuda = devices::cuda;

/// Memory as a program has it of cudaMalloc().
class programs_memory {
 public:
    programs_memory(const device& gpu, std::size_t bytes)
        : owner_(static_cast<cuda::cuda_device&>(detail::internals::backend(gpu)))
    {
        const cuda::current_context now = owner_.use();
        owner_.api().check(owner_.api().cuMemAlloc_v2(&at_, bytes), "allocating GPU memory");
    }
    programs_memory(const programs_memory&) = delete;
    programs_memory& operator=(const programs_memory&) = delete;
    ~programs_memory()
    {
        const cuda::current_context now(owner_.api(), owner_.primary(), std::nothrow);
        owner_.api().cuMemFree_v2(at_);
    }
    void ask() const
    {
        unsigned long long id = 0;
        owner_.api().check(owner_.api().cuPointerGetAttribute(&id, cuda::buffer_id, at_), "asking for the buffer's id");
    }
    const void* address() const { return reinterpret_cast<const void*>(at_); }

 private:
    cuda::cuda_device& owner_;
    cuda::device_pointer at_ = 0;
};

/// Nanoseconds of one call: the shortest of many short series, in turn with the other.
struct two_times {
    double one = 1e9, other = 1e9;
};
template <class One, class Other>
two_times measure_in_turn(const settings& settings, One&& one, Other&& other)
{
    constexpr int calls = 2000;
    const auto time_of = [](auto& body) {
        const auto begin = clock_type::now();
        for (int call = 0; call < calls; ++call)
            body();
        return std::chrono::duration<double, std::nano>(clock_type::now() - begin).count() / calls;
    };
    two_times best;
    for (const auto end = clock_type::now() + std::chrono::duration<double>(settings.seconds);
         clock_type::now() < end;) {
        best.one = std::min(best.one, time_of(one));
        best.other = std::min(best.other, time_of(other));
    }
    return best;
}

} // namespace

std::vector<sample> registration_hits(const device& device, const settings& settings)
{
    if (detail::internals::backend(device).cuda_number() < 0)
        return {};
    constexpr std::size_t bytes = 1 << 20;
    const dma_engine engine;
    registration_cache cache;
    cache.register_with(engine);
    cache.add_memory_of(device);
    const programs_memory memory(device, bytes);
    const weftio::memory ours = device.allocate(bytes, memory_kind::device);
    const registration held = cache.get(memory.address(), bytes, access::local_write | access::remote_write);
    (void)cache.get(ours.device_address(), bytes);
    const auto ask = [&] { memory.ask(); };
    const two_times local = measure_in_turn(settings, ask, [&] { (void)cache.get(memory.address(), bytes); });
    const two_times remote = measure_in_turn(
        settings, ask, [&] { (void)cache.get(memory.address(), bytes, access::local_write | access::remote_write); });
    const two_times of_ours = measure_in_turn(settings, ask, [&] { (void)cache.get(ours.device_address(), bytes); });
    registration_cache of_host;
    of_host.register_with(engine);
    const weftio::memory host = weftio::device::open("cpu").allocate(bytes, memory_kind::cpu_device);
    (void)of_host.get(host.cpu_address(), bytes);
    const two_times beside = measure_in_turn(settings, ask, [&] { (void)of_host.get(host.cpu_address(), bytes); });
    return {{"buffer ID asked for", "ns", local.one},
            {"registration hit, local key", "ns", local.other},
            {"registration hit, remote key", "ns", remote.other},
            {"registration hit, memory of the device", "ns", of_ours.other},
            {"registration hit, memory of the host", "ns", beside.other},
            {"registration hit, local key, beside the buffer ID", "ns", local.other - local.one},
            {"registration hit, local key, of a buffer ID", "times", local.other / local.one},
            {"registration hit, remote key, of a buffer ID", "times", remote.other / remote.one}};
}

} // namespace weftio::bench
