#include "weftio/device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <exception>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <rte_telemetry.h>

#include "core/guarded.hpp"
#include "core/signals.hpp"
#include "core/telemetry.hpp"
#include "devices/backend.hpp"
#include "devices/watchdog.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::size_t max_alignment = std::size_t{2} << 20;

void check_allocation(std::size_t bytes, std::size_t alignment)
{
    if (bytes == 0)
        throw error(errc::invalid_argument, "weftio: device memory: bytes is 0; allocate 1 or more");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > max_alignment)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: device memory: alignment {} is not a power of two in 1..{}; 4096 suits most uses",
                        alignment, max_alignment));
}

bool is_a_port(std::string_view spec)
{
    constexpr std::string_view forms[] = {"pcap:", "iface:", "tap:", "net_"};
    return spec == "loopback" || spec == "null" ||
           std::ranges::any_of(forms, [&](std::string_view form) { return spec.starts_with(form); });
}

[[noreturn]] void refuse_spec(std::string_view spec)
{
    if (is_a_port(spec))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: device {}: this is a port; pass it to port::open (-n), and write cpu, opencl, "
                                "opencl:N, cuda:N or a PCI address for the device",
                                spec));
    throw error(errc::invalid_argument, fmt::format("weftio: device {}: unknown form; write cpu, opencl, opencl:N, "
                                                    "cuda:N or a PCI address such as 0000:3b:00.0",
                                                    spec.empty() ? "\"\"" : spec));
}

/// Whether `text` matches `form`, in which every `h` stands for a hexadecimal digit.
bool has_form(std::string_view text, std::string_view form)
{
    return std::ranges::equal(text, form, [](char character, char wanted) {
        return wanted == 'h' ? std::isxdigit(static_cast<unsigned char>(character)) != 0 : character == wanted;
    });
}

bool is_pci_address(std::string_view spec)
{
    return (has_form(spec, "hhhh:hh:hh.h") || has_form(spec, "hh:hh.h")) && spec.back() <= '7';
}

/// Parses the number behind `prefix`. Returns -1 if `spec` does not begin with `prefix`.
int number_behind(std::string_view prefix, std::string_view spec)
{
    if (!spec.starts_with(prefix))
        return -1;
    const char* end = spec.data() + spec.size();
    int number = 0;
    auto [stopped, failure] = std::from_chars(spec.data() + prefix.size(), end, number);
    if (failure != std::errc{} || stopped != end || number < 0)
        refuse_spec(spec);
    return number;
}

/// Lets the host and a watchdog wait for one kernel, although back ends serve one thread at a time: long waits are
/// split into slices.
class shared_running final : public devices::running_backend {
 public:
    /// Constructed before the kernel starts, because nothing may fail once it runs.
    explicit shared_running(const devices::launch_request& request)
        : row_(core::telemetry_kind::kernel,
               [this, name = std::string(request.name), shape = request.shape,
                lines = request.lines](rte_tel_data* dict) { describe(dict, name, shape, lines); })
    {}

    void start(std::shared_ptr<running_backend> kernel)
    {
        std::scoped_lock lock(mutex_);
        kernel_ = std::move(kernel);
    }

    bool wait_for(std::chrono::nanoseconds bound) override
    {
        constexpr std::chrono::nanoseconds slice = std::chrono::milliseconds(10);
        for (auto begin = std::chrono::steady_clock::now();;) {
            auto left = bound - (std::chrono::steady_clock::now() - begin);
            {
                std::scoped_lock lock(mutex_);
                if (!kernel_ || kernel_->wait_for(std::clamp(left, std::chrono::nanoseconds(0), slice)))
                    return true;
            }
            if (left <= slice)
                return false;
        }
    }

    bool starts_late() const noexcept override
    {
        std::scoped_lock lock(mutex_);
        return kernel_ && kernel_->starts_late();
    }

 private:
    void describe(rte_tel_data* dict, const std::string& name, grid shape,
                  const std::vector<std::shared_ptr<devices::lifeline>>& lines)
    {
        std::uint64_t beats = devices::beats_of(lines), alive = 0;
        try {
            alive = !wait_for({});
        } catch (const std::exception&) { // it ended with a fault
        }
        rte_tel_data_add_dict_string(dict, "name", name.c_str());
        core::put(dict, "blocks", shape.blocks);
        core::put(dict, "lanes", shape.lanes);
        core::put(dict, "queues", lines.size());
        core::put(dict, "beats_of_its_queues", beats);
        core::put(dict, "alive", alive);
    }

    mutable std::mutex mutex_;
    std::shared_ptr<running_backend> kernel_; ///< empty until the kernel is started
    core::telemetry_row row_;                 ///< last member: destroyed first, so that no page reads a dead object
};

std::shared_ptr<devices::device_backend> open_opencl_backend([[maybe_unused]] std::string_view spec,
                                                             [[maybe_unused]] int number)
{
#if defined(WEFTIO_WITH_OPENCL)
    return devices::open_opencl(number);
#else
    throw error(errc::not_supported, fmt::format("weftio: device {}: this build has no OpenCL support; install "
                                                 "ocl-icd-opencl-dev and opencl-headers and build again, or use cpu",
                                                 spec));
#endif
}

std::shared_ptr<devices::device_backend> open_backend(std::string_view spec)
{
    if (spec == "cpu")
        return devices::open_cpu();
    if (spec == "opencl")
        return open_opencl_backend(spec, -1);
    if (int number = number_behind("opencl:", spec); number >= 0)
        return open_opencl_backend(spec, number);
    if (int number = number_behind("cuda:", spec); number >= 0 || is_pci_address(spec))
        return devices::open_cuda(spec, number);
    refuse_spec(spec);
}

/// Refuses arguments on another device: a kernel reaches the memory of its own device only.
void require_reach(const devices::launch_request& request, const devices::device_backend& device,
                   const devices::lifeline& line)
{
    if (!device.shares_memory_with(line.backend()))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: kernel {}: it is launched on device {}, but its argument \"{}\" is on {} {}; "
                                "use the same device object or a copy of it (each device::open makes a new one)",
                                request.name, device.name(), line.describe(),
                                device.name() == line.backend().name() ? "another" : "device", line.backend().name()));
}

/// What the first word of a handle says (weftio/device/handle.h).
std::string handle_words(std::uint32_t abi)
{
    constexpr std::uint32_t version_shift = 16, kind_shift = 24, byte = 0xff;
    constexpr std::array<std::string_view, 11> kinds{"",
                                                     "a buf_arr",
                                                     "an eth_rxq",
                                                     "an eth_txq",
                                                     "a dma_queue",
                                                     "a semaphore",
                                                     "an rdma_queue",
                                                     "the receives of an rdma_queue",
                                                     "a completion_queue",
                                                     "a file_queue",
                                                     "rdma_connections"};
    const std::uint32_t kind = abi >> kind_shift;
    if (kind == 0 || kind >= kinds.size())
        return fmt::format("not a handle ({:#010x})", abi);
    return fmt::format("{} of version {} and {} bytes", kinds[kind], abi >> version_shift & byte, abi & 0xffff);
}

/// Refuses handles that the kernel would read in another way than they were written.
void require_handle(const devices::launch_request& request, devices::device_backend& device, std::size_t position)
{
    const devices::launch_request::argument& argument = request.arguments[position];
    const void* handle = argument.abi != 0 ? *static_cast<const void* const*>(argument.value) : nullptr;
    if (!handle)
        return;
    if (!device.can_read(handle))
        throw error(errc::invalid_argument, fmt::format("weftio: kernel {}: argument {} is not a handle: memory at {} "
                                                        "cannot be read; pass the queue, semaphore or buf_arr itself",
                                                        request.name, position + 1, handle));
    std::uint32_t abi = 0;
    device.download(&abi, handle, sizeof abi);
    if (abi != argument.abi)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: kernel {}: argument {} has the wrong type: it is {}, the kernel takes {}; pass the "
                        "queue, semaphore or buf_arr itself, and compile with the headers of the linked library",
                        request.name, position + 1, handle_words(abi), handle_words(argument.abi)));
}

} // namespace

// memory

void memory::upload(const void* from, std::size_t bytes)
{
    if (bytes > bytes_)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: device memory: {} bytes do not fit into {}", bytes, bytes_));
    block_->owner->upload(block_->at, from, bytes);
}

void memory::download(void* to, std::size_t bytes) const
{
    if (bytes > bytes_)
        throw error(errc::invalid_argument, fmt::format("weftio: device memory: download: {} bytes are asked for, and "
                                                        "there are {}; ask for no more",
                                                        bytes, bytes_));
    block_->owner->download(to, block_->at.device, bytes);
}

int memory::export_dma_buf() const
{
    return block_->owner->export_dma_buf(block_->at, bytes_);
}

std::uint64_t memory::buffer_id() const
{
    return block_->owner->buffer_id(block_->at);
}

memory::memory(std::shared_ptr<const devices::memory_block> block)
    : block_(std::move(block)), cpu_(block_->at.cpu), device_(block_->at.device), bytes_(block_->bytes),
      kind_(block_->kind)
{}

// device

device device::open(std::string_view spec)
{
    if (const std::size_t zero = spec.find('\0'); zero != std::string_view::npos)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: device: byte {} of the spec is 0; write cpu, opencl, opencl:N or cuda:N", zero));
    const core::signals_blocked for_its_threads; // also for threads that an OpenCL platform starts
    return device(open_backend(spec));
}

memory device::allocate(std::size_t bytes, memory_kind kind, std::size_t alignment) const
{
    check_allocation(bytes, alignment);
    devices::require_kind("device memory: kind", kind);
    auto block = std::make_shared<devices::memory_block>(backend_);
    block->at = backend_->allocate(bytes, alignment, kind);
    block->bytes = bytes;
    block->kind = kind;
    return memory(std::move(block));
}

memory device::adopt(void* address, std::size_t bytes) const
{
    if (!address || bytes == 0)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: device {}: cannot adopt {} bytes at {}; the address must be non-null and the size > 0",
                        name(), bytes, address));
    auto block = std::make_shared<devices::memory_block>(backend_);
    block->adopted = true;
    block->bytes = bytes;
    std::tie(block->at, block->kind) = backend_->adopt(address, bytes);
    core::guard_memory();
    return memory(std::move(block));
}

running_kernel device::launch_erased(const devices::launch_request& request) const
{
    if (request.shape.blocks == 0 || request.shape.lanes == 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: kernel {}: {} blocks of {} lanes; launch at least 1 of each", request.name,
                                request.shape.blocks, request.shape.lanes));
    for (const auto& line : request.lines) {
        if (!line)
            throw error(
                errc::invalid_argument,
                fmt::format("weftio: kernel {}: an argument is an object that was moved from; name the one that "
                            "it was moved to",
                            request.name));
        require_reach(request, *backend_, *line);
    }
    for (std::size_t position = 0; position < request.arguments.size(); ++position)
        require_handle(request, *backend_, position);
    for (weftio_dev_control* control : request.controls)
        weftio_store_release_sys_u32(&control->abort, 0);
    const core::signals_blocked for_its_threads;
    auto shared = core::make_shared_here<shared_running>(request);
    running_kernel started(shared, request);
    shared->start(backend_->launch(request, backend_));
    return started;
}

const std::string& device::name() const noexcept
{
    return backend_->name();
}

const weftio_dev_clock* device::clock() const noexcept
{
    return backend_->clock();
}

// What only the library reaches.

devices::device_backend& detail::internals::backend(const device& device) noexcept
{
    return *device.backend_;
}

std::shared_ptr<devices::copy_queue> detail::internals::make_copy_queue(const device& device)
{
    return device.backend_->make_copy_queue(device.backend_);
}

memory detail::internals::make_memory(std::shared_ptr<const devices::memory_block> block) noexcept
{
    return memory(std::move(block));
}

const std::shared_ptr<const devices::memory_block>& detail::internals::block(const memory& memory) noexcept
{
    return memory.block_;
}

} // namespace weftio
