// RDMA contexts: queue pairs for kernels, connected by exchanged addresses.
#include "rdma.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "kernel_calls.hpp"
#include "log.hpp"
#include "mmap.hpp"

using namespace weftio::doca;

namespace {

constexpr std::uint32_t fewest_entries = 64, most_entries = 32768;

/// As a text with its zero, or without.
std::string_view text_of(const void* descriptor, std::size_t bytes)
{
    require(descriptor, DOCA_ERROR_INVALID_VALUE, "the descriptor is a null pointer");
    std::string_view text(static_cast<const char*>(descriptor), bytes);
    return text.substr(0, text.find('\0'));
}

std::shared_ptr<doca_rdma> owner_of(const doca_rdma_connection& connection)
{
    auto owner = connection.rdma.lock();
    require(owner != nullptr, DOCA_ERROR_INVALID_VALUE, "the context of the connection was destroyed");
    return owner;
}

} // namespace

doca_rdma::~doca_rdma()
{
    end_all();
    for (const auto& connection : slots_)
        if (connection)
            living<doca_rdma_connection>::remove(connection.get());
}

void doca_rdma::start()
{
    for (const auto& connection : std::exchange(slots_, {}))
        if (connection)
            living<doca_rdma_connection>::remove(connection.get());
    engine_.reset();
    at_ = dev->rdma(gid_index);
    make_queues();
    slots_.resize(connections);
    engine_.emplace();
    for (std::uint32_t index = 0; index < connections; ++index)
        engine_->attach(queue(index), {.on_sent = {}, .on_error = [this, index](const weftio::send_failure& event) {
                                           failed(index, event);
                                       }});
    make_handle();
}

void doca_rdma::make_queues()
{
    const bool shared = connections > 1; // one receive of a shared ring is always free
    const weftio::rdma_queue_options options{
        .entries = std::max(fewest_entries, std::bit_ceil(send_entries)),
        .receive_entries = std::clamp(std::bit_ceil(receive_entries + (shared ? 1 : 0)), fewest_entries, most_entries),
        .rights = rights};
    if (shared)
        several_.emplace(*at_, device(), connections, options);
    else
        single_.emplace(*at_, device(), options);
}

void doca_rdma::make_handle()
{
    blocks_.clear();
    for (std::uint32_t index = 0; index < connections; ++index)
        blocks_.push_back(device().allocate(sizeof(weftio_doca_connection), weftio::memory_kind::device, 64));
    table_ = device().allocate(sizeof(doca_gpu_dev_rdma) + connections * sizeof(void*), weftio::memory_kind::device);
    for (std::uint32_t index = 0; index < connections; ++index)
        publish(index);
}

/// Tells kernels the handles of a queue pair, which each reset changes; of one that is not connected that there is
/// none.
void doca_rdma::publish(std::uint32_t index)
{
    const auto& user = slots_[index];
    const bool is_connected = user && user->state == life::established;
    const weftio_doca_connection connection{is_connected ? queue(index).handle() : nullptr, 0, 0};
    blocks_[index].upload(&connection, sizeof connection);
    std::vector<std::uint64_t> words(sizeof(doca_gpu_dev_rdma) / sizeof(std::uint64_t));
    auto* const pointers = static_cast<std::uint8_t*>(table_.device_address()) + sizeof(doca_gpu_dev_rdma);
    const doca_gpu_dev_rdma handle{
        {queue(0).receives().handle()}, reinterpret_cast<weftio_doca_connection* const*>(pointers), connections};
    std::memcpy(words.data(), &handle, sizeof handle);
    for (const auto& block : blocks_)
        words.push_back(reinterpret_cast<std::uint64_t>(block.device_address()));
    table_.upload(words.data(), words.size() * sizeof words.front());
}

void doca_rdma::stop()
{
    progress();
    end_all();
}

/// Connections, listeners and queue pairs end without a callback.
void doca_rdma::end_all()
{
    listeners_.clear();
    for (const auto& request : std::exchange(requests_, {}))
        living<doca_rdma_connection>::remove(request.get());
    for (const auto& connection : slots_)
        if (connection) {
            connection->gives_up = true;
            connection->state = life::ended;
            if (connection->pending.valid())
                connection->pending.wait();
            connection->pending = {};
            connection->held.reset();
        }
    events_.clear();
    if (single_ || several_) {
        for (std::uint32_t index = 0; index < connections; ++index)
            weftio_store_release_sys_u32(&queue(index).control()->abort, 1);
        end_waits(*queue(0).receives().control());
    }
    single_.reset();
    several_.reset();
}

doca_gpu_dev_rdma* doca_rdma::handle() const
{
    require_running();
    return static_cast<doca_gpu_dev_rdma*>(table_.device_address());
}

void doca_rdma::failed(std::uint32_t index, const weftio::send_failure& failure)
{
    log_failure("RDMA", DOCA_ERROR_IO_FAILED, failure.text);
    const auto connection = slots_[index];
    if (connection && connection->state == life::established)
        end(connection);
}

bool doca_rdma::progress()
{
    const auto self = shared_from_this(); // a callback may destroy it
    bool has_worked = engine_ && engine_->progress();
    has_worked |= hear_requests();
    for (const auto& connection : std::vector(slots_))
        if (connection)
            hear(connection);
    for (const auto& [what, connection] : std::exchange(events_, {})) {
        has_worked = true;
        call_back(what, *connection);
    }
    return has_worked;
}

void doca_rdma::tell(event what, const connection_pointer& connection)
{
    if (connected)
        events_.emplace_back(what, connection);
    else
        call_back(what, *connection);
}

void doca_rdma::call_back(event what, doca_rdma_connection& connection) const
{
    if (what == event::request && on_request)
        on_request(&connection, user_data);
    if (what == event::established && on_established)
        on_established(&connection, connection.user_data, user_data);
    if (what == event::failure && on_failure)
        on_failure(&connection, connection.user_data, user_data);
    if (what == event::disconnection && on_disconnection)
        on_disconnection(&connection, connection.user_data, user_data);
}

void doca_rdma::place(const connection_pointer& connection)
{
    auto free = std::find(slots_.begin(), slots_.end(), nullptr);
    if (free == slots_.end())
        free = std::find_if(slots_.begin(), slots_.end(), [](const auto& one) { return one->state == life::ended; });
    require(free != slots_.end(), DOCA_ERROR_FULL,
            "all {} connections are in use; call doca_rdma_set_max_num_connections before the context starts",
            connections);
    const auto index = static_cast<std::uint32_t>(free - slots_.begin());
    if (*free) {
        (*free)->held.reset();
        queue(index).reset();
        living<doca_rdma_connection>::remove(free->get());
    }
    connection->index = index;
    *free = connection;
    publish(index);
}

void doca_rdma::leave(const connection_pointer& connection)
{
    slots_[connection->index] = nullptr;
}

doca_rdma::connection_pointer doca_rdma::add(life begin)
{
    auto connection = std::make_shared<doca_rdma_connection>(weak_from_this(), begin);
    place(connection);
    connection->text = queue(connection->index).address().text();
    living<doca_rdma_connection>::add(connection);
    return connection;
}

void doca_rdma::set_established(const connection_pointer& connection)
{
    connection->state = life::established;
    publish(connection->index);
    tell(event::established, connection);
}

void doca_rdma::connect(const connection_pointer& connection, std::string_view text)
{
    require(connection->state == life::exported, DOCA_ERROR_BAD_STATE,
            "the connection was connected already, or is not from doca_rdma_export");
    queue(connection->index).connect(weftio::rdma_address::of_text(text));
    set_established(connection);
}

void doca_rdma::end(const connection_pointer& connection)
{
    connection->state = life::ended;
    tell(event::disconnection, connection);
}

void doca_rdma::disconnect(const connection_pointer& connection)
{
    const life before = connection->state;
    require(before != life::ended, DOCA_ERROR_BAD_STATE, "the connection has ended");
    if (before == life::requested) { // its destructor rejects
        connection->state = life::ended;
        std::erase(requests_, connection);
        living<doca_rdma_connection>::remove(connection.get());
        return;
    }
    connection->gives_up = true;
    if (connection->held)
        connection->held->disconnect();
    else if (before == life::established) { // the peer cannot be told; it gets no answers any more
        connection->state = life::ended;
        queue(connection->index).reset();
        publish(connection->index);
    } else if (connection->pending.valid())
        connection->pending.wait();
    connection->pending = {};
    end(connection);
}

doca_error_t doca_rdma_create(doca_dev* dev, doca_rdma** rdma)
{
    return call(__func__, [&] { make_context(rdma, known(dev)); });
}
doca_error_t doca_rdma_destroy(doca_rdma* rdma)
{
    return call(__func__, [&] { destroy_context(rdma); });
}
doca_ctx* doca_rdma_as_ctx(doca_rdma* rdma)
{
    return as_context(__func__, rdma);
}

doca_error_t doca_rdma_set_permissions(doca_rdma* rdma, std::uint32_t access_flags)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        require_access_flags(access_flags);
        context->require_idle();
        context->rights = rights_of(access_flags) &
                          (weftio::access::remote_read | weftio::access::remote_write | weftio::access::remote_atomic);
    });
}
doca_error_t doca_rdma_set_gid_index(doca_rdma* rdma, std::uint32_t gid_index)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        require(gid_index < doca_dev::gids, DOCA_ERROR_INVALID_VALUE, "there is no GID {}; a device has 0 to {}",
                gid_index, doca_dev::gids - 1);
        context->require_idle();
        context->gid_index = gid_index;
    });
}
doca_error_t doca_rdma_set_send_queue_size(doca_rdma* rdma, std::uint32_t entries)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        require(entries && entries <= most_entries, DOCA_ERROR_INVALID_VALUE, "{} entries, not 1 to {}", entries,
                most_entries);
        context->require_idle();
        context->send_entries = entries;
    });
}
doca_error_t doca_rdma_set_recv_queue_size(doca_rdma* rdma, std::uint32_t entries)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        require(entries && entries <= most_entries, DOCA_ERROR_INVALID_VALUE, "{} receives, not 1 to {}", entries,
                most_entries);
        context->require_idle();
        context->receive_entries = entries;
    });
}
doca_error_t doca_rdma_set_grh_enabled(doca_rdma* rdma, std::uint8_t)
{
    return call(__func__, [&] { known(rdma)->require_idle(); });
}
doca_error_t doca_rdma_set_max_num_connections(doca_rdma* rdma, std::uint16_t connections)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        require(connections && connections <= weftio::rdma_connections::most, DOCA_ERROR_INVALID_VALUE,
                "{} connections, not 1 to {}", connections, std::uint32_t{weftio::rdma_connections::most});
        context->require_idle();
        context->connections = connections;
    });
}
doca_error_t doca_rdma_set_connection_state_callbacks(doca_rdma* rdma, doca_rdma_connection_request_cb_t on_request,
                                                      doca_rdma_connection_established_cb_t on_established,
                                                      doca_rdma_connection_failure_cb_t on_failure,
                                                      doca_rdma_connection_disconnection_cb_t on_disconnection)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        context->require_idle();
        context->on_request = on_request;
        context->on_established = on_established;
        context->on_failure = on_failure;
        context->on_disconnection = on_disconnection;
    });
}
doca_error_t doca_rdma_cap_task_write_is_supported(const doca_devinfo* devinfo)
{
    return call(__func__, [&] { known(devinfo); });
}

doca_error_t doca_rdma_export(doca_rdma* rdma, const void** descriptor, std::size_t* bytes,
                              doca_rdma_connection** connection)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        auto& where = result(descriptor, "descriptor");
        auto& size = result(bytes, "bytes");
        auto& out = result(connection, "connection");
        context->require_running();
        auto made = context->add(doca_rdma_connection::life::exported);
        where = made->text.c_str();
        size = made->text.size() + 1;
        out = made.get();
    });
}
doca_error_t doca_rdma_connect(doca_rdma* rdma, const void* descriptor, std::size_t bytes,
                               doca_rdma_connection* connection)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        auto one = known(connection);
        const auto text = text_of(descriptor, bytes);
        require(owner_of(*one) == context, DOCA_ERROR_INVALID_VALUE, "the connection is of another context");
        context->require_running();
        context->connect(one, text);
    });
}
doca_error_t doca_rdma_connection_set_user_data(doca_rdma_connection* connection, doca_data user_data)
{
    return call(__func__, [&] { known(connection)->user_data = user_data; });
}
doca_error_t doca_rdma_connection_disconnect(doca_rdma_connection* connection)
{
    return call(__func__, [&] {
        auto one = known(connection);
        owner_of(*one)->disconnect(one);
    });
}
doca_error_t doca_rdma_get_gpu_handle(doca_rdma* rdma, doca_gpu_dev_rdma** handle)
{
    return call(__func__, [&] {
        auto* kernels = known(rdma)->handle();
        result(handle, "handle") = kernels;
    });
}
