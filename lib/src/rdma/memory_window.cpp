#include "weftio/memory_window.hpp"

#include <fmt/format.h>

#include <utility>

#include "rdma/kept_pairs.hpp"
#include "rdma/rdma_device.hpp"
#include "weftio/error.hpp"

namespace weftio {

struct memory_window::state {
    explicit state(std::unique_ptr<nic::window> made) : window(std::move(made)) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state()
    {
        window.reset();
        rdma::end_kept_pairs(); // it may have been the last one that kept a queue pair
    }

    std::unique_ptr<nic::window> window; ///< keeps the port alive
};

namespace {

window_type checked(window_type type)
{
    if (type != window_type::type_1 && type != window_type::type_2)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_window: type is {}; set window_type::type_1 or type_2",
                                static_cast<unsigned>(type)));
    return type;
}

} // namespace

memory_window::memory_window(const rdma_device& at, window_type type, protection_domain domain)
    : state_(std::make_unique<state>(detail::internals::backend(at).make_window(checked(type), domain)))
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
