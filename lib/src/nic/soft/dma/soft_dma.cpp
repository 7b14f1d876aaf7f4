#include "nic/soft/dma/soft_dma.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "devices/unfinished_copies.hpp"
#include "nic/soft/dma/soft_dma_queue.hpp"

namespace weftio::nic::soft {

namespace {

/// Memory registered with a DMA engine.
class dma_region final : public region {
 public:
    dma_region(std::shared_ptr<soft_dma> dma, const region_request& wanted)
        : dma_(std::move(dma)), block_(wanted.block), key_(wanted.process_key), granted_(key_ != 0)
    {
        if (!block_->at.cpu)
            dma_->reach(block_->owner);
        if (granted_)
            dma_->keys().grant(key_, false);
    }
    dma_region(const dma_region&) = delete;
    dma_region& operator=(const dma_region&) = delete;
    ~dma_region() override { revoke(); }

    std::uint32_t key() const noexcept override { return key_; }
    void revoke() noexcept override
    {
        if (!std::exchange(granted_, false) || !dma_->may_end())
            return;
        dma_->engine().between_turns([&] { dma_->keys().forget(key_); });
        if (!block_->unfinished || !dma_->leave_streams(*block_->unfinished))
            dma_->wait_for_streams();
    }
    void renew(const region_request& now) noexcept override
    {
        key_ = now.process_key;
        granted_ = true;
        dma_->keys().grant(key_, false);
    }

 private:
    const std::shared_ptr<soft_dma> dma_;
    const std::shared_ptr<const devices::memory_block> block_;
    std::uint32_t key_;
    bool granted_;
};

/// Converts the options to those of the engine of a port.
port_options of_engine(const dma_engine_options& options)
{
    return {.mode = options.mode, .idle = options.idle, .core = options.core, .realtime = options.realtime};
}

} // namespace

/// The limit also holds in inline mode: entries of other queues must not make a kernel's call long.
unsigned copier::turn(const turn_budget& budget)
{
    queues_.poll_for_work(budget.busy);
    const unsigned moved = queues_.turn(std::min(budget.entries, entries_of_a_turn)).moved;
    streams_.end_batches();
    return moved;
}

soft_dma::soft_dma(const dma_engine_options& options) : engine_({&copier_}, of_engine(options), "weftio/dma")
{
    enter();
}

void soft_dma::reach(const std::shared_ptr<devices::device_backend>& device)
{
    const std::scoped_lock one_at_a_time(reaching_);
    bool reached = false;
    engine_.between_turns([&] { reached = streams().find(device.get()) != nullptr; });
    if (reached)
        return;
    auto stream = std::make_unique<copy_stream>(device->make_copy_queue(device)); // slow, so not between turns
    engine_.between_turns([&] { copier_.streams().add(device, std::move(stream)); });
}

void soft_dma::wait_for_streams() noexcept
{
    std::size_t count = 0;
    engine_.between_turns([&] { count = streams().count(); });
    for (std::size_t number = 0; number != count; ++number) {
        bool done = false;
        std::uint64_t last = 0;
        engine_.between_turns([&] { last = streams().at(number).ended(); });
        while (!done) {
            engine_.between_turns([&] {
                copy_stream& stream = streams().at(number);
                done = stream.completed(last) || stream.failed();
            });
            if (!done)
                std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
}

bool soft_dma::leave_streams(devices::unfinished_copies& to) noexcept
try {
    engine_.between_turns([&] {
        for (std::size_t number = 0; number != streams().count(); ++number) {
            const copy_stream& stream = streams().at(number);
            to.add([self = shared_from_this(), &stream, last = stream.ended()] { return stream.is_over(last); });
        }
    });
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

std::unique_ptr<region> soft_dma::register_memory(const region_request& wanted)
{
    return std::make_unique<dma_region>(shared_from_this(), wanted);
}

std::shared_ptr<dma_send_queue> soft_dma::make_queue(const send_ring& ring)
{
    return std::make_shared<soft_dma_queue>(shared_from_this(), ring);
}

} // namespace weftio::nic::soft

std::shared_ptr<weftio::nic::dma_backend> weftio::nic::make_soft_dma(const dma_engine_options& options)
{
    return core::make_shared_here<soft::soft_dma>(options);
}
