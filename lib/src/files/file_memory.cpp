#include <fmt/format.h>

#include <algorithm>

#include "storage/context.hpp"
#include "storage/vendor_library.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio {

struct file_buffer::state {
    explicit state(std::shared_ptr<storage::context> of) : engine(std::move(of)) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    /// Calls `body` with the memory's device current in this thread.
    template <class Body>
    bool on_device(Body&& body)
    {
        devices::device_backend* const owner = at.owner.get();
        if (owner)
            owner->enter_thread();
        const bool answer = body();
        if (owner)
            owner->leave_thread();
        return answer;
    }
    ~state()
    {
        if (vendors)
            on_device([&] { return engine->vendor()->leave_memory(at.device), true; });
        if (bytes != 0) {
            engine->buffers.leave(at);
            count(-1, ~bytes + 1);
        }
        engine->rings.leave_memory(at.registered);
    }
    void enter(void* first, std::size_t many)
    {
        using owner = storage::registrations::owner;
        if (at.cpu)
            at.registered = engine->rings.enter_memory({at.cpu, many},
                                                       at.block && !at.block->adopted ? owner::engine : owner::program);
        if (!engine->buffers.enter(at, many))
            throw error(errc::invalid_argument, fmt::format("weftio: file_buffer: the {} bytes at {} overlap another "
                                                            "file_buffer of the engine; destroy that one first",
                                                            many, first));
        address = first;
        bytes = many;
        count(1, bytes);
        if (at.device && engine->vendor())
            vendors = on_device([&] { return engine->vendor()->enter_memory(at.device, bytes); });
    }

    /// A child of fork() leaves the counts alone: they are its parent's.
    void count(int buffers, std::uint64_t of_bytes) const noexcept
    {
        if (!engine->same_process())
            return;
        auto& registered = engine->counts.registered();
        registered.buffers.fetch_add(static_cast<std::uint64_t>(buffers), std::memory_order_relaxed);
        registered.buffer_bytes.fetch_add(of_bytes, std::memory_order_relaxed);
    }

    std::shared_ptr<storage::context> engine;
    storage::place at{};
    void* address = nullptr;
    std::size_t bytes = 0;
    bool vendors = false; ///< NVIDIA's library knows the memory
};

file_memory::file_memory(const memory& memory, std::size_t offset) noexcept
    : address_(memory.device_address()), offset_(offset), bytes_(memory.bytes()),
      block_(detail::internals::block(memory))
{}

file_memory::file_memory(const file_buffer& buffer, std::size_t offset) noexcept
    : address_(buffer.address()), offset_(offset), bytes_(buffer.bytes()), block_(buffer.state_->at.block)
{}

storage::place detail::internals::place(const file_memory& memory, std::size_t further)
{
    storage::place made{.cpu = static_cast<std::byte*>(memory.address_), .bytes = memory.bytes_};
    if (memory.block_)
        made = storage::place_of(memory.block_);
    const std::size_t room = std::min(made.bytes, memory.bytes_);
    const bool within = memory.offset_ <= room && further <= room - memory.offset_;
    const std::size_t offset = within ? memory.offset_ + further : 0; // beyond: nowhere, and no bytes there
    (made.device ? made.device : made.cpu) += offset;
    made.bytes = within ? room - offset : 0;
    return made;
}

file_buffer::file_buffer(const file_engine& engine, void* address, std::size_t bytes)
    : state_(std::make_unique<state>(detail::internals::share(engine)))
{
    if (!address || bytes == 0 || bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address))
        throw error(errc::invalid_argument, fmt::format("weftio: file_buffer: {} bytes at {}; the address must be "
                                                        "non-null, the size > 0, and the end within the address space",
                                                        bytes, address));
    storage::find_cuda_driver();
    state_->at = storage::find_by_cuda(static_cast<std::byte*>(address));
    if (state_->at.bytes < bytes)
        throw error(
            errc::not_reachable,
            fmt::format("weftio: file_buffer: {} bytes at {} exceed the CUDA allocation, which has {} left there",
                        bytes, address, state_->at.bytes));
    state_->enter(address, bytes);
}

file_buffer::file_buffer(const file_engine& engine, const memory& memory)
    : state_(std::make_unique<state>(detail::internals::share(engine)))
{
    if (!memory)
        throw error(errc::invalid_argument, "weftio: file_buffer: the memory is empty; allocate() it first");
    state_->at = storage::place_of(detail::internals::block(memory));
    state_->enter(memory.device_address(), memory.bytes());
}

file_buffer::file_buffer(file_buffer&&) noexcept = default;
file_buffer& file_buffer::operator=(file_buffer&&) noexcept = default;
file_buffer::~file_buffer() = default;

void* file_buffer::address() const noexcept
{
    return state_->address;
}
std::size_t file_buffer::bytes() const noexcept
{
    return state_->bytes;
}

} // namespace weftio
