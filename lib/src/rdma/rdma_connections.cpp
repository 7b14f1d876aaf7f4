#include "weftio/rdma_connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/process.hpp"
#include "rdma/rdma_queue.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_shared_segments = 16;

void require(std::uint32_t count, const rdma_queue_options& options)
{
    rdma::require_range("rdma_connections", "count", count, 1, rdma_connections::most);
    queues::require_send_entries("rdma_connections", options.receive_entries, "receive_entries");
    rdma::require_power("rdma_connections", "receive_segments", options.receive_segments, 1, most_shared_segments);
}

/// The send rings as they were at one time, and what kernels know of them.
class rings_of_all final : public devices::lifeline {
 public:
    rings_of_all(const device& device, const std::vector<rdma_queue>& queues, queues::control_block control)
        : backend_(detail::internals::backend(device)), control_(std::move(control)),
          table_(device.allocate(queues.size() * sizeof(std::uint64_t), memory_kind::device, queues::small_alignment)),
          handle_(device.allocate(sizeof(weftio_dev_rdma_connections), memory_kind::device, queues::small_alignment))
    {
        for (const rdma_queue& queue : queues) {
            lines_.push_back(detail::internals::line(queue));
            handles_.push_back(reinterpret_cast<std::uint64_t>(queue.handle()));
        }
        table_.upload(handles_.data(), handles_.size() * sizeof handles_.front());
        const weftio_dev_rdma_connections made{.abi = WEFTIO_DEV_ABI_RDMA_CONNECTIONS,
                                               .count = static_cast<std::uint32_t>(handles_.size()),
                                               .handles = static_cast<const std::uint64_t*>(table_.device_address())};
        handle_.upload(&made, sizeof made);
    }

    /// Whether no queue has been reset since.
    bool are_those_of(const std::vector<rdma_queue>& queues) const noexcept
    {
        return std::ranges::equal(handles_, queues, {}, {}, [](const rdma_queue& queue) {
            return reinterpret_cast<std::uint64_t>(queue.handle());
        });
    }
    weftio_dev_rdma_connections* handle() const noexcept
    {
        return static_cast<weftio_dev_rdma_connections*>(handle_.device_address());
    }

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_->cpu_address());
    }
    const devices::device_backend& backend() const noexcept override { return backend_; }
    std::string describe() const override
    {
        std::string text = fmt::format("rdma_connections: {}", lines_.size());
        for (std::size_t index = 0; index != lines_.size(); ++index)
            text += fmt::format("\n  {}: {}", index, lines_[index]->describe());
        return text;
    }
    void quiesce() override
    {
        for (const auto& line : lines_)
            line->quiesce();
    }

 private:
    const devices::device_backend& backend_; ///< kept by `lines_`
    const queues::control_block control_;
    std::vector<std::shared_ptr<devices::lifeline>> lines_;
    std::vector<std::uint64_t> handles_;
    memory table_, handle_;
};

} // namespace

struct rdma_connections::state {
    state(nic::backend& nic, const device& device, const rdma_queue_options& options)
        : where(device), control(queues::make_control(device)),
          receives(core::make_shared_here<rdma::shared_receive_life>(nic, device, options.receive_entries,
                                                                     options.receive_segments, options.domain))
    {}

    /// The present rings. Any thread.
    std::shared_ptr<rings_of_all> present()
    {
        const std::scoped_lock lock(mutex);
        if (!rings || !rings->are_those_of(queues))
            rings = core::make_shared_here<rings_of_all>(where, queues, control);
        return rings;
    }
    rdma_queue& at(std::uint32_t index)
    {
        if (index >= queues.size())
            throw error(errc::invalid_argument,
                        fmt::format("weftio: rdma_connections: there is no connection {}; there are {}, from 0 on",
                                    index, queues.size()));
        return queues[index];
    }

    const device where;
    const queues::control_block control;
    const std::shared_ptr<rdma::shared_receive_life> receives;
    std::vector<rdma_queue> queues;
    std::mutex mutex;
    std::shared_ptr<rings_of_all> rings; ///< as of the last present()
};

rdma_connections::rdma_connections(const rdma_device& at, const device& device, std::uint32_t count,
                                   rdma_queue_options options)
{
    require(count, options);
    state_ = core::make_shared_here<state>(detail::internals::backend(at), device, options);
    for (std::uint32_t index = 0; index != count; ++index)
        state_->queues.push_back(rdma_queue(core::make_shared_here<rdma_queue::members>(
            at.state_, device, options,
            rdma::connection_place{.receives = state_->receives, .index = index, .control = state_->control})));
    state_->present();
}

rdma_connections::rdma_connections(rdma_connections&&) noexcept = default;
rdma_connections& rdma_connections::operator=(rdma_connections&&) noexcept = default;
rdma_connections::~rdma_connections() = default;

std::uint32_t rdma_connections::size() const noexcept
{
    return static_cast<std::uint32_t>(state_->queues.size());
}

rdma_queue& rdma_connections::operator[](std::uint32_t index)
{
    return state_->at(index);
}

const rdma_queue& rdma_connections::operator[](std::uint32_t index) const
{
    return state_->at(index);
}

weftio_dev_rdma_connections* rdma_connections::handle() const
{
    return state_->present()->handle();
}

weftio_dev_control* rdma_connections::control() const noexcept
{
    return static_cast<weftio_dev_control*>(state_->control->cpu_address());
}

const rdma_receives& rdma_connections::receives() const noexcept
{
    return state_->queues.front().receives();
}

void rdma_connections::set_limit(std::uint32_t limit)
{
    if (limit >= state_->receives->depth())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_connections: the limit is {}, but at most {} receives can be posted; set "
                                "less than that, or 0 for none",
                                limit, state_->receives->depth() - 1));
    state_->receives->entries().set_limit(limit);
}

shared_receives_standing rdma_connections::standing() const
{
    return state_->receives->entries().standing();
}

std::shared_ptr<devices::lifeline> detail::internals::line(const rdma_connections& connections) noexcept
{
    const std::scoped_lock lock(connections.state_->mutex);
    return connections.state_->rings;
}

} // namespace weftio
