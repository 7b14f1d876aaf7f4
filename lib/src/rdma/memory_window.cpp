#include "weftio/memory_window.hpp"

#include <utility>

#include "rdma/rdma_device.hpp"

namespace weftio {

struct memory_window::state {
    explicit state(std::unique_ptr<nic::window> made) : window(std::move(made)) {}

    std::unique_ptr<nic::window> window; ///< keeps the port alive
};

memory_window::memory_window(const rdma_device& at, window_type type, protection_domain domain)
    : state_(std::make_unique<state>(detail::internals::backend(at).make_window(type, domain)))
{}

memory_window::memory_window(memory_window&&) noexcept = default;
memory_window& memory_window::operator=(memory_window&&) noexcept = default;
memory_window::~memory_window() = default;

std::uint32_t memory_window::rkey() const noexcept
{
    return standing().rkey;
}

memory_window_standing memory_window::standing() const noexcept
{
    return state_->window->standing();
}

} // namespace weftio
