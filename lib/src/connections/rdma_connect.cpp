#include <algorithm>
#include <future>
#include <random>
#include <utility>

#include "connections/rdma_connection.hpp"
#include "core/process.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio {

rdma_rejected::rdma_rejected(errc code, const std::string& text, std::uint16_t reason,
                             std::vector<std::uint8_t> private_data)
    : error(code, text), reason_(reason), private_data_(std::move(private_data))
{}

namespace connections {

namespace {

using phase = connection_end::phase;
static_assert(rdma_private_data::most_request_bytes == cm::most_request_data);

/// @throws weftio::error errc::invalid_argument
cm::path way_to(const patient_call& call, const rdma::local_addresses& at, const std::string& address)
{
    const auto peer = rdma::address_of_host(address);
    if (!peer)
        call.fail(errc::invalid_argument, "\"{}\" is not a host address; write an IPv4 or IPv6 address", address);
    for (const auto& each : at.gids)
        if (net::is_ipv4(each.own.address) == net::is_ipv4(*peer))
            return {.local = each.own.address, .peer = *peer};
    call.fail(errc::invalid_argument,
              "the device {} has no IPv{} address; create both rdma_devices with addresses of "
              "one IP version",
              at.gids.front().text, net::is_ipv4(*peer) ? 4 : 6);
}

[[noreturn]] void fail_timed_out(const patient_call& call)
{
    call.fail(errc::timed_out, "no answer within {} ms; check that the peer is up and that its program accepts",
              call.timeout_ms());
}

/// Finds the peer's MAC. @throws weftio::error errc::timed_out
void resolve(patient_call& call, shared_manager& manager, const cm::path& way)
{
    const auto found = std::make_shared<std::promise<bool>>();
    std::future<bool> answer = found->get_future();
    const bool asks = manager.speaker().resolve(way, [found](bool yes) { found->set_value(yes); });
    if (!asks)
        call.fail(errc::in_use, "too many connections wait for MACs; try again");
    const auto has_come = [&](auto until) { return answer.wait_until(until) == std::future_status::ready; };
    if (!call.wait(has_come))
        fail_timed_out(call);
    if (!answer.get())
        call.fail(errc::timed_out, "no host has answered for the MAC of that address; check that the peer is up, on "
                                   "this link, and has the address");
}

/// The next smaller path MTU than the one that the peer has rejected, or the one that it names.
std::uint32_t path_mtu_after(std::uint32_t rejected, const cm::rej& why)
{
    const std::uint32_t named = why.info_bytes == 0 ? 0 : 128u << (why.info[0] & 7);
    return net::is_path_mtu(named) && named < rejected ? named : rejected / 2;
}

[[noreturn]] void fail_rejected(const patient_call& call, const cm::rej& why)
{
    const bool nobody = why.reason == cm::reject_reason::invalid_service_id;
    const auto number = static_cast<std::uint16_t>(why.reason);
    std::string text = nobody ? "nobody listens at that port of the peer; start the peer's rdma_listener first, or "
                                "name the port that it has"
                              : fmt::format("rejected with reason {}: {}", number, cm::text_of(why.reason));
    if (text.back() == '.')
        text.pop_back();
    throw rdma_rejected(nobody ? errc::not_found : errc::closed, call.text(text), number,
                        {why.data.begin(), why.data.end()});
}

/// The connection is over before it was established. @return the REJ, if that was the reason
cm::rej why_over(const patient_call& call, const cm::event& last)
{
    if (const auto* const rejected = std::get_if<cm::rej>(&last.body); rejected != nullptr)
        return *rejected;
    if (last.kind == cm::event_kind::unreachable)
        call.fail(errc::timed_out, "no answer to the repeated request; check that the peer is up and that its RDMA "
                                   "connection manager gets UDP packets to port 4791");
    call.fail(errc::closed, "the peer has disconnected at once; check the peer");
}

/// Asks the peer for a connection, again with another REQ where that may help.
class client {
 public:
    client(patient_call& call, const rdma_device& at, std::shared_ptr<rdma::connectable> queue, cm::path way,
           std::uint16_t port, rdma_connect_options options)
        : call_(call), at_(at), queue_(std::move(queue)), way_(way), port_(port), options_(std::move(options)),
          ours_(proposal_of(*queue_))
    {}

    std::shared_ptr<held_connection> connect();

 private:
    bool helps_to_repeat(const cm::rej& why);
    std::optional<cm::rej> ask(held_connection& made);
    void take_reply(held_connection& made, const cm::req& request, const cm::event& reply);

    patient_call& call_;
    const rdma_device& at_;
    const std::shared_ptr<rdma::connectable> queue_;
    const cm::path way_;
    const std::uint16_t port_;
    const rdma_connect_options options_;
    cm::proposal ours_;
};

std::shared_ptr<held_connection> client::connect()
{
    constexpr unsigned most_attempts = 6; // each path MTU once, and a stale connection
    for (unsigned attempt = 1;; ++attempt) {
        const auto made = core::make_shared_here<held_connection>(at_, std::make_shared<connection_end>());
        if (attempt == 1)
            resolve(call_, *made->manager, way_);
        const std::optional<cm::rej> why = ask(*made);
        if (!why)
            return made;
        if (attempt == most_attempts || !helps_to_repeat(*why))
            fail_rejected(call_, *why);
    }
}

/// The peer takes a smaller path MTU, or has just ended a connection of this queue pair that this side has forgotten.
bool client::helps_to_repeat(const cm::rej& why)
{
    if (why.reason != cm::reject_reason::invalid_path_mtu)
        return why.reason == cm::reject_reason::stale_connection;
    ours_.path_mtu = path_mtu_after(ours_.path_mtu, why);
    return net::is_path_mtu(ours_.path_mtu);
}

/// @return why the peer has rejected; nothing: the connection is established
std::optional<cm::rej> client::ask(held_connection& made)
{
    const auto source_port = static_cast<std::uint16_t>(std::random_device()() | 0x8000);
    const cm::req request = cm::request_of(ours_, cm::service_of(cm::port_space::tcp, port_),
                                           {.source_port = source_port, .source = way_.local, .destination = way_.peer},
                                           options_.private_data);
    const cm::refusal refused = made.manager->connect(way_, request, made.end, made.id);
    if (refused != cm::refusal::none)
        call_.fail(errc::out_of_memory, "{}", cm::text_of(refused));
    if (!call_.wait([&](auto until) { return made.end->wait(phase::asked, until); }))
        fail_timed_out(call_);
    const cm::event last = made.end->last();
    if (last.kind != cm::event_kind::connect_response)
        return why_over(call_, last);
    take_reply(made, request, last);
    return std::nullopt;
}

void client::take_reply(held_connection& made, const cm::req& request, const cm::event& reply)
{
    const cm::rep& accepted = std::get<cm::rep>(reply.body);
    connections::connect(*queue_, way_, cm::agreed_by_active(request, accepted));
    made.end->use(queue_, options_.on_disconnect);
    const cm::refusal refused = made.manager->call([&](cm::manager& one, std::uint64_t) { return one.ready(made.id); });
    if (refused != cm::refusal::none || !made.end->establish())
        call_.fail(errc::closed, "the peer has disconnected at once; reset the queue, and check the peer");
    made.peer_address = net::text_of(way_.peer);
    made.peer_port = port_;
    made.data.assign(accepted.data.begin(), accepted.data.end());
}

} // namespace

} // namespace connections

rdma_connection rdma_connect(const rdma_device& at, const std::string& address, std::uint16_t port, rdma_queue& queue,
                             rdma_connect_options options)
{
    const std::shared_ptr<const rdma::local_addresses> addresses = detail::internals::share(at);
    connections::patient_call call(fmt::format("rdma_connect to {}, port {}", address, port), *addresses->nic,
                                   options.timeout, options.stop);
    if (port == 0)
        call.fail(errc::invalid_argument, "nobody can listen at port 0; name the port of the peer's rdma_listener");
    connections::require_private_data(call, options.private_data, rdma_private_data::most_request_bytes);
    const auto found = connections::require_connectable(call, *addresses, queue);
    const cm::path way = connections::way_to(call, *addresses, address);
    return rdma_connection(connections::client(call, at, found, way, port, std::move(options)).connect());
}

} // namespace weftio
