#include "connections/rdma_connection.hpp"

#include <algorithm>
#include <utility>

#include "net/roce_headers.hpp"
#include "rdma/pair_attributes.hpp"

namespace weftio {

namespace connections {

std::shared_ptr<rdma::connectable> require_connectable(const patient_call& what, const rdma::local_addresses& at,
                                                       const rdma_queue& queue)
{
    std::shared_ptr<rdma::connectable> found = rdma::connectable_of(queue);
    if (&found->addresses() != &at)
        what.fail(errc::invalid_argument,
                  "rdma_queue {} belongs to another rdma_device than this call; use a queue of the device {}",
                  found->queue_number(), at.gids.front().text);
    found->require_unconnected();
    return found;
}

void require_private_data(const patient_call& what, const std::vector<std::uint8_t>& data, std::size_t most)
{
    if (data.size() > most)
        what.fail(errc::invalid_argument, "there are {} bytes of private data; the message has room for {}",
                  data.size(), most);
}

cm::transport_service transport_of(rdma_service service) noexcept
{
    return service == rdma_service::unreliable ? cm::transport_service::unreliable : cm::transport_service::reliable;
}

const char* name_of(cm::transport_service transport) noexcept
{
    return transport == cm::transport_service::unreliable ? "unreliable (UC)" : "reliable (RC)";
}

cm::proposal proposal_of(const rdma::connectable& queue)
{
    const nic::rdma_connection& wanted = queue.wanted();
    return {.queue = queue.queue_number(),
            .first_psn = rdma::random_psn(),
            .responder_resources = wanted.most_reads,
            .initiator_depth = wanted.most_reads,
            .retry_count = wanted.retry_count,
            .rnr_retry_count = wanted.rnr_retry,
            .path_mtu = wanted.path_mtu,
            .transport = transport_of(queue.service()),
            .ack_timeout = wanted.timeout,
            .traffic_class = wanted.path.traffic_class,
            .hop_limit = wanted.path.hop_limit};
}

void connect(rdma::connectable& queue, const cm::path& way, const cm::agreement& agreed)
{
    const nic::rdma_connection& wanted = queue.wanted();
    const auto& gids = queue.addresses().gids;
    const auto local =
        std::find_if(gids.begin(), gids.end(), [&](const auto& each) { return each.own.address == way.local; });
    queue.connect({.peer_address = net::text_of(way.peer),
                   .gid_index = static_cast<std::uint8_t>(local - gids.begin()),
                   .traffic_class = wanted.path.traffic_class,
                   .hop_limit = wanted.path.hop_limit,
                   .path_mtu = agreed.path_mtu,
                   .peer_queue = agreed.peer_queue,
                   .receive_psn = agreed.receive_psn,
                   .send_psn = agreed.send_psn,
                   .most_reads_of_peer = std::min(agreed.most_reads_of_peer, wanted.most_reads),
                   .most_reads = std::min(agreed.most_reads, wanted.most_reads),
                   .timeout = agreed.timeout,
                   .retry_count = agreed.retry_count,
                   .rnr_retry = agreed.rnr_retry});
}

held_connection::~held_connection()
{
    disconnect();
    if (id != 0)
        manager->forget(id);
}

void held_connection::disconnect()
{
    if (!end->end())
        return;
    manager->call([&](cm::manager& one, std::uint64_t now) { return one.disconnect(id, {}, now); });
    constexpr std::chrono::milliseconds patience{1000};
    patient_call call("rdma_connection", manager.nic(), patience, {});
    call.wait([&](auto until) { return end->wait(connection_end::phase::established, until); });
}

} // namespace connections

rdma_connection::rdma_connection(std::shared_ptr<connections::held_connection> state) noexcept
    : state_(std::move(state))
{}

rdma_connection::rdma_connection(rdma_connection&&) noexcept = default;

rdma_connection& rdma_connection::operator=(rdma_connection&& other) noexcept
{
    rdma_connection before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

rdma_connection::~rdma_connection() = default;

const std::string& rdma_connection::peer_address() const noexcept
{
    return state_->peer_address;
}

std::uint16_t rdma_connection::peer_port() const noexcept
{
    return state_->peer_port;
}

const std::vector<std::uint8_t>& rdma_connection::private_data() const noexcept
{
    return state_->data;
}

bool rdma_connection::connected() const noexcept
{
    return state_->end->now() == connections::connection_end::phase::established;
}

void rdma_connection::disconnect()
{
    state_->disconnect();
}

} // namespace weftio
