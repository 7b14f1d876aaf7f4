// A burst without kernel-owned queues: the CPU copies it to the GPU, launches a kernel for it, copies the answers back
// and waits, as programs on rte_gpudev do. There is no driver and no engine: frames begin and end in the CPU's memory.
#include <dlfcn.h>

#include <cstring>

#include "devices/cuda/driver.hpp"
#include "gpu_bench.kernel.h"
#include "measure.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(read_burst, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(answer_burst, "gpu_bench.kernel.h");

namespace weftio::bench {

namespace {

using namespace weftio::devices;
constexpr std::uint32_t burst_bytes = burst * frame_bytes;

/// The library's context, from memory of the GPU that it has allocated.
cuda::context context_of(const memory& memory)
{
    const cuda::driver& cuda = cuda::the_driver();
    cuda::context found = nullptr;
    cuda.check(cuda.cuPointerGetAttribute(&found, cuda::pointer_context,
                                          reinterpret_cast<cuda::device_pointer>(memory.device_address())),
               "asking for the context of memory");
    return found;
}

class cpu_centric {
 public:
    /// With `answers` the kernel answers every frame, and the answers are copied back. Without, the kernel only reads
    /// the frames.
    cpu_centric(const device& device, bool answers)
        : cuda_(cuda::the_driver()), answers_(answers), pinned_(device.allocate(burst_bytes, memory_kind::cpu_device)),
          frames_(device.allocate(burst_bytes, memory_kind::device)), sink_(device.allocate(64, memory_kind::device))
    {
        const auto& kernel = answers ? answer_burst_kernel : read_burst_kernel;
        cuda_.check(cuda_.cuStreamCreate(&stream_, cuda::stream_non_blocking), "making a stream");
        cuda_.check(cuda_.cuModuleLoadData(&module_, kernel.cuda_image.data()), "loading kernels");
        cuda_.check(cuda_.cuModuleGetFunction(&function_, module_, answers ? "answer_burst" : "read_burst"),
                    "finding the kernel");
    }
    ~cpu_centric()
    {
        cuda_.cuStreamDestroy_v2(stream_);
        cuda_.cuModuleUnload(module_);
    }
    cpu_centric(const cpu_centric&) = delete;
    cpu_centric& operator=(const cpu_centric&) = delete;

    /// Processes one burst: pinned memory, GPU, kernel, and back.
    void turn()
    {
        auto* to = static_cast<std::byte*>(pinned_.cpu_address());
        for (std::uint32_t at = 0; at < burst; ++at)
            std::memcpy(to + at * frame_bytes, frame_.data(), frame_bytes);
        auto device_address = reinterpret_cast<cuda::device_pointer>(frames_.device_address());
        cuda_.cuMemcpyHtoDAsync_v2(device_address, to, burst_bytes, stream_);
        void *frames = frames_.device_address(), *sink = sink_.device_address();
        std::uint32_t bytes = burst_bytes;
        std::array<void*, 3> arguments{&frames, &sink, &bytes};
        cuda_.cuLaunchKernel(function_, 1, 1, 1, 128, 1, 1, 0, stream_, arguments.data(), nullptr);
        if (answers_)
            copy_back_(to, device_address, burst_bytes, stream_);
        cuda_.check(cuda_.cuStreamSynchronize(stream_), "running the kernel of a burst");
    }
    /// Whether the last frame has the expected bytes.
    bool is_right() const
    {
        frame_type expected = answers_ ? answered(frame_) : frame_;
        return std::memcmp(static_cast<std::byte*>(pinned_.cpu_address()) + burst_bytes - frame_bytes, expected.data(),
                           frame_bytes) == 0;
    }

 private:
    using copy_back = cuda::result (*)(void*, cuda::device_pointer, std::size_t, cuda::stream);

    const cuda::driver& cuda_;
    const copy_back copy_back_ =
        reinterpret_cast<copy_back>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyDtoHAsync_v2"));
    const frame_type frame_ = some_frame();
    const bool answers_;
    memory pinned_, frames_, sink_;
    const cuda::current_context current_{cuda_, context_of(frames_)};
    cuda::stream stream_ = nullptr;
    cuda::module module_ = nullptr;
    cuda::function function_ = nullptr;
};

/// Median time of a burst, and packets per second.
struct figures {
    double p50_ns = 0, mpps = 0;
};
figures measure(cpu_centric&& way, const settings& settings)
{
    for (int warm = 0; warm < 100; ++warm)
        way.turn();
    std::vector<std::uint64_t> times;
    auto end = clock_type::now() + std::chrono::duration<double>(settings.seconds);
    auto start = clock_type::now(), now = start;
    while (now < end) {
        way.turn();
        auto after = clock_type::now();
        times.push_back(static_cast<std::uint64_t>((after - now).count()));
        now = after;
    }
    if (!way.is_right())
        return {};
    return {quantile(times, 0.5),
            static_cast<double>(times.size()) * burst / std::chrono::duration<double>(now - start).count() / 1e6};
}

} // namespace

std::vector<sample> without_queues(const device& device, const settings& settings)
{
    if (!device.name().starts_with("cuda"))
        return {};
    figures read = measure({device, false}, settings), answered = measure({device, true}, settings);
    return {{"CPU-centric burst of 32 x 64 B, read, p50", "ns", read.p50_ns},
            {"CPU-centric burst of 32 x 64 B, answered, p50", "ns", answered.p50_ns},
            {"CPU-centric receive 64 B, bursts of 32", "Mpps", read.mpps}};
}

} // namespace weftio::bench
