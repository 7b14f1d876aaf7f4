#include <algorithm>
#include <bit>
#include <deque>
#include <set>
#include <utility>

#include "connections/rdma_connection.hpp"
#include "core/process.hpp"
#include "net/roce_headers.hpp"

namespace weftio {

using connections::connection_end;

struct rdma_request::state {
    state(const rdma_device& at, std::shared_ptr<connection_end> events)
        : manager(at), end(std::move(events)), asked(end->first()), request(std::get<cm::req>(asked.body)),
          address(net::text_of(asked.route.peer)), header(*cm::read_ip_header(request.data)),
          data(request.data.begin() + cm::ip_header::bytes, request.data.end())
    {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { reject({.reason = cm::reject_reason::consumer_reject}); }

    void reject(const cm::rej& reason)
    {
        if (std::exchange(answered, true))
            return;
        manager->reject(asked.id, reason);
        manager->forget(asked.id);
    }
    std::string name() const { return fmt::format("rdma_request of {}, port {}", address, header.source_port); }

    connections::manager_lease manager;
    const std::shared_ptr<connection_end> end;
    const cm::event asked;
    const cm::req request;
    const std::string address;
    const cm::ip_header header;
    const std::vector<std::uint8_t> data;
    bool answered = false;
};

struct rdma_listener::state final : connections::request_sink {
    state(const rdma_device& at, std::uint16_t at_port, rdma_listen_options wanted);
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state();

    std::optional<cm::rej> asked(const cm::event& request, const std::shared_ptr<connection_end>& end) override;
    /// The oldest request that its peer has not given up.
    std::shared_ptr<connection_end> take_until(std::chrono::steady_clock::time_point until);

    connections::manager_lease manager;
    const std::uint16_t port;
    const rdma_listen_options options;
    std::vector<std::uint32_t> listeners; ///< one at each address

 private:
    void listen(const net::roce_gid& local);
    void stop() noexcept;

    std::mutex mutex_; ///< guards the next ones
    std::condition_variable changed_;
    std::deque<std::shared_ptr<connection_end>> waiting_;
};

namespace {

bool is_over(const std::shared_ptr<connection_end>& end)
{
    return end->now() == connection_end::phase::over;
}

/// What the peer is told when its packets are too large. @param most  path MTU of this side
cm::rej reject_path_mtu(std::uint32_t most)
{
    cm::rej why{.info_bytes = 1, .reason = cm::reject_reason::invalid_path_mtu};
    why.info[0] = static_cast<std::uint8_t>(std::bit_width(most) - 8);
    return why;
}

std::uint32_t path_mtu_of(const cm::req& request)
{
    return 128u << request.path_mtu;
}

} // namespace

rdma_listener::state::state(const rdma_device& at, std::uint16_t at_port, rdma_listen_options wanted)
    : manager(at), port(at_port), options(std::move(wanted))
{
    std::set<net::roce_gid> all;
    for (const auto& each : manager.addresses().gids)
        all.insert(each.own.address);
    try {
        for (const net::roce_gid& local : all)
            listen(local);
    } catch (...) {
        stop();
        throw;
    }
}

void rdma_listener::state::listen(const net::roce_gid& local)
{
    std::uint32_t listener = 0;
    const cm::refusal why =
        manager->listen(cm::service_of(cm::port_space::tcp, port), local, options.backlog, *this, listener);
    if (why != cm::refusal::none)
        throw error(errc::in_use, fmt::format("weftio: rdma_listener: another one of this process listens at port {} "
                                              "of {}; close that, or take another port",
                                              port, net::text_of(local)));
    listeners.push_back(listener);
}

void rdma_listener::state::stop() noexcept
{
    for (const std::uint32_t each : listeners)
        manager->stop_listening(each);
}

rdma_listener::state::~state()
{
    stop();
    for (const auto& end : waiting_) {
        manager->reject(end->first().id, {.reason = cm::reject_reason::invalid_service_id});
        manager->forget(end->first().id);
    }
}

/// Rejects what no user could accept.
std::optional<cm::rej> rdma_listener::state::asked(const cm::event& request, const std::shared_ptr<connection_end>& end)
{
    const cm::req& wanted = std::get<cm::req>(request.body);
    if (!cm::read_ip_header(wanted.data))
        return cm::rej{.reason = cm::reject_reason::unsupported_request};
    if (const std::uint32_t most = manager.at().most_path_mtu(); path_mtu_of(wanted) > most)
        return reject_path_mtu(most);
    {
        const std::scoped_lock lock(mutex_);
        if (waiting_.size() >= options.backlog)
            std::erase_if(waiting_, is_over);
        waiting_.push_back(end);
    }
    changed_.notify_one();
    if (options.on_request)
        options.on_request();
    return std::nullopt;
}

std::shared_ptr<connection_end> rdma_listener::state::take_until(std::chrono::steady_clock::time_point until)
{
    std::unique_lock lock(mutex_);
    while (changed_.wait_until(lock, until, [&] { return !waiting_.empty(); })) {
        const std::shared_ptr<connection_end> oldest = waiting_.front();
        waiting_.pop_front();
        if (!is_over(oldest))
            return oldest;
    }
    return nullptr;
}

rdma_request::rdma_request(std::shared_ptr<state> state) noexcept : state_(std::move(state)) {}

rdma_request::rdma_request(rdma_request&&) noexcept = default;

rdma_request& rdma_request::operator=(rdma_request&& other) noexcept
{
    rdma_request before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

rdma_request::~rdma_request() = default;

const std::string& rdma_request::peer_address() const noexcept
{
    return state_->address;
}

std::uint16_t rdma_request::peer_port() const noexcept
{
    return state_->header.source_port;
}

const std::vector<std::uint8_t>& rdma_request::private_data() const noexcept
{
    return state_->data;
}

rdma_service rdma_request::service() const noexcept
{
    return state_->request.transport == cm::transport_service::unreliable ? rdma_service::unreliable
                                                                          : rdma_service::reliable;
}

std::uint32_t rdma_request::path_mtu() const noexcept
{
    return path_mtu_of(state_->request);
}

namespace {

/// @throws weftio::error errc::invalid_argument
std::shared_ptr<rdma::connectable> require_acceptable(const connections::patient_call& call,
                                                      const rdma::local_addresses& at, const rdma_queue& queue,
                                                      const cm::req& request, const std::vector<std::uint8_t>& data)
{
    connections::require_private_data(call, data, rdma_private_data::most_accept_bytes);
    std::shared_ptr<rdma::connectable> found = connections::require_connectable(call, at, queue);
    const cm::transport_service ours = connections::transport_of(found->service());
    if (ours != request.transport)
        call.fail(errc::invalid_argument,
                  "rdma_queue {} is {}, the peer's queue pair is {}; accept with a queue of "
                  "the service that rdma_request::service() names",
                  found->queue_number(), connections::name_of(ours), connections::name_of(request.transport));
    return found;
}

/// As much as the peer asks for, and the queue allows.
cm::rep reply_to(const cm::req& request, const rdma::connectable& queue, const std::vector<std::uint8_t>& data)
{
    cm::proposal ours = connections::proposal_of(queue);
    ours.responder_resources = std::min(ours.responder_resources, request.initiator_depth);
    ours.initiator_depth = std::min(ours.initiator_depth, request.responder_resources);
    return cm::reply_of(ours, data);
}

} // namespace

rdma_connection rdma_request::accept(rdma_queue& queue, rdma_connect_options options)
{
    connections::patient_call call(state_->name(), state_->manager.nic(), options.timeout, options.stop);
    if (state_->answered)
        call.fail(errc::closed, "it was answered already");
    const cm::req& request = state_->request;
    const auto found = require_acceptable(call, state_->manager.addresses(), queue, request, options.private_data);
    if (const std::uint32_t most = found->wanted().path_mtu; path_mtu_of(request) > most) {
        state_->reject(reject_path_mtu(most));
        call.fail(errc::invalid_argument,
                  "the peer proposes a path MTU of {}, rdma_queue {} has {}; the peer was "
                  "told, and may try again with that",
                  path_mtu_of(request), found->queue_number(), most);
    }
    const auto made = core::make_shared_here<connections::held_connection>(state_->manager.at(), state_->end);
    made->peer_address = state_->address;
    made->peer_port = state_->header.source_port;
    made->data = state_->data;
    const cm::rep reply = reply_to(request, *found, options.private_data);
    connections::connect(*found, state_->asked.route, cm::agreed_by_passive(request, reply));
    made->id = state_->asked.id; // from here on, `made` tells the peer what becomes of it
    state_->answered = true;
    made->end->use(found, std::move(options.on_disconnect));
    const cm::refusal refused =
        made->manager->call([&](cm::manager& one, std::uint64_t now) { return one.accept(made->id, reply, now); });
    const bool answered = refused != cm::refusal::none ||
                          call.wait([&](auto until) { return made->end->wait(connection_end::phase::asked, until); });
    if (!answered)
        call.fail(errc::timed_out, "the peer has not confirmed within {} ms; reset the queue, and check the peer",
                  call.timeout_ms());
    if (made->end->now() != connection_end::phase::established)
        call.fail(errc::closed, "the peer has given up; reset the queue, and wait for the next request");
    return rdma_connection(made);
}

void rdma_request::reject(const std::vector<std::uint8_t>& private_data, std::uint16_t reason)
{
    const connections::patient_call call(state_->name(), state_->manager.nic(), {}, {});
    connections::require_private_data(call, private_data, rdma_private_data::most_reject_bytes);
    cm::rej why{.reason = cm::reject_reason{reason}};
    std::copy(private_data.begin(), private_data.end(), why.data.begin());
    state_->reject(why);
}

rdma_listener::rdma_listener(const rdma_device& at, std::uint16_t port, rdma_listen_options options)
{
    if (port == 0)
        throw error(errc::invalid_argument, "weftio: rdma_listener: the port is 0, which no peer can name; set 1 to "
                                            "65535");
    if (options.backlog == 0)
        throw error(errc::invalid_argument, "weftio: rdma_listener: the backlog is 0; set 1 or more");
    state_ = core::make_shared_here<state>(at, port, std::move(options));
}

rdma_listener::rdma_listener(rdma_listener&&) noexcept = default;

rdma_listener& rdma_listener::operator=(rdma_listener&& other) noexcept
{
    rdma_listener before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

rdma_listener::~rdma_listener() = default;

std::uint16_t rdma_listener::port() const noexcept
{
    return state_->port;
}

rdma_request rdma_listener::next(std::chrono::milliseconds timeout)
{
    connections::patient_call call(fmt::format("rdma_listener at port {}", port()), state_->manager.nic(), timeout,
                                   state_->options.stop);
    std::shared_ptr<connection_end> oldest;
    if (!call.wait([&](auto until) { return (oldest = state_->take_until(until)) != nullptr; }))
        call.fail(errc::timed_out, "no peer has asked for a connection within {} ms; start the peer",
                  call.timeout_ms());
    return rdma_request(core::make_shared_here<rdma_request::state>(state_->manager.at(), oldest));
}

std::optional<rdma_request> rdma_listener::try_next()
{
    const std::shared_ptr<connection_end> oldest = state_->take_until({});
    if (!oldest)
        return std::nullopt;
    return rdma_request(core::make_shared_here<rdma_request::state>(state_->manager.at(), oldest));
}

} // namespace weftio
