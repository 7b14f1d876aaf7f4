#include "nic/soft/files/soft_files.hpp"

#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "devices/unfinished_copies.hpp"
#include "nic/soft/files/soft_file_queue.hpp"

namespace weftio::nic::soft {

namespace {

/// Memory registered with an engine of file queues.
class file_region final : public region {
 public:
    file_region(std::shared_ptr<soft_files> files, const region_request& wanted)
        : files_(std::move(files)), block_(wanted.block), key_(wanted.process_key), granted_(key_ != 0)
    {
        if (!block_->at.cpu)
            files_->reach(block_->owner);
        if (granted_)
            grant();
    }
    file_region(const file_region&) = delete;
    file_region& operator=(const file_region&) = delete;
    ~file_region() override { revoke(); }

    std::uint32_t key() const noexcept override { return key_; }
    void revoke() noexcept override
    {
        if (!std::exchange(granted_, false) || !files_->may_end())
            return;
        files_->unit().name_memory(key_, 0);
        files_->engine().between_turns([&] { files_->keys().forget(key_); });
        if (!block_->unfinished || !files_->leave_copies(key_, *block_))
            files_->wait_for(key_);
        files_->context().rings.leave_memory(registered_);
    }
    void renew(const region_request& now) noexcept override
    {
        key_ = now.process_key;
        granted_ = true;
        grant();
    }

 private:
    void grant() noexcept
    {
        files_->keys().grant(key_, false);
        if (!block_->at.cpu || block_->adopted) // adopted memory may be unmapped, and reads of it must fail then
            return;
        registered_ = files_->context().rings.enter_memory({static_cast<std::byte*>(block_->at.cpu), block_->bytes});
        files_->unit().name_memory(key_, registered_);
    }

    const std::shared_ptr<soft_files> files_;
    const std::shared_ptr<const devices::memory_block> block_;
    std::uint32_t key_;
    std::uint64_t registered_ = 0; ///< see storage::registrations
    bool granted_;
};

/// Converts the options to those of the engine of a port.
port_options of_engine(const file_engine_options& options)
{
    return {.mode = options.mode, .idle = options.idle, .core = options.core, .realtime = options.realtime};
}

std::shared_ptr<const devices::memory_block> make_slots(const std::shared_ptr<devices::device_backend>& device)
{
    constexpr std::size_t page = 4096;
    auto made = std::make_shared<devices::memory_block>(device);
    const std::size_t bytes = std::size_t{staging_stream::slots} * staging_stream::slot_bytes;
    made->at = device->allocate(bytes, page, memory_kind::cpu_device);
    made->bytes = bytes;
    return made;
}

} // namespace

bool context_files::find(std::uint32_t key, held_file& out) const noexcept
{
    return context_->named.find(key, out);
}

void context_files::count(storage::io::kind what, const file_result& result,
                          const storage::measured& how) const noexcept
{
    file_result counted = result;
    if (counted.fall == file_fall::none)
        counted.fall = context_->without_uring();
    context_->account(what, counted, how);
}

soft_files::soft_files(std::shared_ptr<storage::context> context)
    : files_(std::move(context)),
      unit_(files_.context().make_way(), files_.context().options().only != file_way::uring),
      engine_({&unit_}, of_engine(files_.context().options()), "weftio/files")
{
    enter();
}

void soft_files::reach(const std::shared_ptr<devices::device_backend>& device)
{
    const std::scoped_lock one_at_a_time(reaching_);
    bool reached = false;
    engine_.between_turns([&] { reached = unit_.streams().find(device.get()) != nullptr; });
    if (reached)
        return;
    auto stream = std::make_unique<staging_stream>(device->make_copy_queue(device), make_slots(device)); // slow
    engine_.between_turns([&] { unit_.streams().add(device, std::move(stream)); });
}

void soft_files::collect()
{
    engine_.between_turns([&] { unit_.collect(); });
}

void soft_files::wait_for(std::uint32_t key) noexcept
{
    auto used = [&] {
        return engine_.between_turns([&] {
            unit_.collect();
            return unit_.uses(key);
        });
    };
    while (used())
        std::this_thread::sleep_for(std::chrono::microseconds(20));
}

bool soft_files::leave_copies(std::uint32_t key, const devices::memory_block& memory) noexcept
try {
    engine_.between_turns([&] {
        const staging_stream* const stream = unit_.streams().find(memory.owner.get());
        if (!stream) // the CPU reads and writes the memory
            return;
        memory.unfinished->add([self = shared_from_this(), stream, last = stream->copies().ended()] {
            return stream->copies().is_over(last);
        });
        unit_.abandon(key);
    });
    return !memory.at.cpu;
} catch (const std::bad_alloc&) {
    return false;
}

std::unique_ptr<region> soft_files::register_memory(const region_request& wanted)
{
    return std::make_unique<file_region>(shared_from_this(), wanted);
}

std::shared_ptr<file_send_queue> soft_files::make_queue(const send_ring& ring)
{
    return std::make_shared<soft_file_queue>(shared_from_this(), ring);
}

} // namespace weftio::nic::soft

std::shared_ptr<weftio::nic::file_backend> weftio::nic::make_soft_files(std::shared_ptr<storage::context> files)
{
    return core::make_shared_here<soft::soft_files>(std::move(files));
}
