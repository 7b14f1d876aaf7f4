#include "connections/shared_manager.hpp"

#include <fmt/format.h>

#include "core/undying.hpp"
#include "weftio/error.hpp"
#include "weftio/port.hpp"

namespace weftio::connections {

shared_manager::shared_manager(const rdma_device& at)
    : addresses_(detail::internals::share(at)),
      agent_(detail::internals::make_port(addresses_->nic), at, [this](const cm::event& next) { told(next); })
{}

cm::refusal shared_manager::connect(const cm::path& way, const cm::req& request,
                                    const std::shared_ptr<connection_end>& end, std::uint32_t& id)
{
    return agent_.call([&](cm::manager& one, std::uint64_t now) {
        const cm::refusal why = one.connect(way, request, now, id);
        if (why == cm::refusal::none) {
            const std::scoped_lock lock(mutex_);
            ends_[id] = end;
        }
        return why;
    });
}

cm::refusal shared_manager::listen(std::uint64_t service, const net::roce_gid& local, std::size_t backlog,
                                   request_sink& to, std::uint32_t& listener)
{
    const std::scoped_lock lock(listening_);
    const cm::refusal why =
        agent_.call([&](cm::manager& one, std::uint64_t) { return one.listen(service, local, backlog, listener); });
    if (why == cm::refusal::none)
        listeners_[listener] = &to;
    return why;
}

void shared_manager::stop_listening(std::uint32_t listener)
{
    agent_.call([&](cm::manager& one, std::uint64_t now) { return one.stop_listening(listener, now); });
    const std::scoped_lock lock(listening_);
    listeners_.erase(listener);
}

cm::refusal shared_manager::reject(std::uint32_t id, const cm::rej& reason)
{
    return agent_.call([&](cm::manager& one, std::uint64_t now) { return one.reject(id, reason, now); });
}

void shared_manager::forget(std::uint32_t id)
{
    agent_.call([&](cm::manager& one, std::uint64_t now) { return one.destroy(id, now); });
    const std::scoped_lock lock(mutex_);
    ends_.erase(id);
}

/// The end is known before anybody can answer the request, so it misses no event.
void shared_manager::take_request(const cm::event& request)
{
    const auto end = std::make_shared<connection_end>(request);
    {
        const std::scoped_lock lock(mutex_);
        ends_[request.id] = end;
    }
    const std::scoped_lock lock(listening_);
    const auto listener = listeners_.find(request.listener);
    std::optional<cm::rej> why = cm::rej{.reason = cm::reject_reason::invalid_service_id}; // the listener has gone
    if (listener != listeners_.end())
        why = listener->second->asked(request, end);
    if (!why)
        return;
    reject(request.id, *why);
    forget(request.id);
}

void shared_manager::told(const cm::event& next)
{
    if (next.kind == cm::event_kind::connect_request)
        return take_request(next);
    std::shared_ptr<connection_end> end;
    {
        const std::scoped_lock lock(mutex_);
        const auto found = ends_.find(next.id);
        if (found == ends_.end())
            return;
        end = found->second;
        if (next.gone)
            ends_.erase(found);
    }
    if (next.kind != cm::event_kind::time_wait_over)
        end->told(next);
}

namespace {

struct shared_by_port {
    std::unique_ptr<shared_manager> manager;
    std::size_t users = 0;
};

/// Locked while a manager begins or ends: its port has one at a time.
struct all_managers {
    std::mutex mutex;
    std::map<const nic::backend*, shared_by_port> by_port;
};

} // namespace

manager_lease::manager_lease(const rdma_device& at) : at_(at), addresses_(detail::internals::share(at))
{
    all_managers& all = core::undying<all_managers>();
    const std::scoped_lock lock(all.mutex);
    const nic::backend* const port = addresses_->nic.get();
    if (!all.by_port.contains(port))
        all.by_port.emplace(port, shared_by_port{std::make_unique<shared_manager>(at)});
    shared_by_port& of_port = all.by_port[port];
    if (of_port.manager->addresses() != addresses_.get())
        throw error(errc::in_use,
                    fmt::format("weftio: rdma_device {}: another rdma_device of port {} listens or connects already; "
                                "use that one, and give it all addresses (rdma_device_options::more_addresses)",
                                at.address(), port->spec()));
    ++of_port.users;
    manager_ = of_port.manager.get();
}

manager_lease::~manager_lease()
{
    all_managers& all = core::undying<all_managers>();
    const std::scoped_lock lock(all.mutex);
    const auto of_port = all.by_port.find(addresses_->nic.get());
    if (--of_port->second.users == 0)
        all.by_port.erase(of_port);
}

nic::backend& manager_lease::nic() const noexcept
{
    return *addresses_->nic;
}

} // namespace weftio::connections
