#include "rdma/receives.hpp"

#include <optional>

#include "rdma/stream.hpp"

namespace weftio::bench {

namespace {

constexpr std::uint32_t depth = 1024, burst = 32;

/// The receiving end of one connection.
class taker {
 public:
    /// @param bytes  of a receive
    taker(const rdma_setup& setup, receive_ring ring, const rdma_queue_options& options, std::uint32_t bytes)
        : room_(setup.memory(1).region, setup.cpu, {.count = depth - 1, .buffer_bytes = bytes})
    {
        if (ring == receive_ring::own)
            own_.emplace(setup.device_at(1), setup.cpu, options);
        else
            shared_.emplace(setup.device_at(1), setup.cpu, 1, options);
        for (std::uint32_t each = 0; each != depth - 1; ++each)
            require(weftio_dev_rdma_recv_post(receives(), weftio_dev_buf_get(room_.handle(), each), 0, bytes),
                    "a receive");
        require(weftio_dev_rdma_recv_commit(receives()), "a commit of receives");
    }
    rdma_queue& queue() { return own_ ? *own_ : (*shared_)[0]; }
    /// Takes what has arrived, and posts the receives again.
    void take()
    {
        weftio_dev_rdma_message message{};
        std::uint32_t count = 0, first = 0;
        require(weftio_dev_rdma_recv_poll(receives(), burst, &count, &first), "a poll");
        for (std::uint32_t each = 0; each != count; ++each) {
            require(weftio_dev_rdma_recv_message(receives(), first + each, &message), "a message");
            require(weftio_dev_rdma_recv_post(receives(), message.buffer, 0, message.buffer.bytes), "a receive");
        }
        if (count != 0)
            require(weftio_dev_rdma_recv_commit(receives()), "a commit of receives");
    }

 private:
    weftio_dev_rdma_recv* receives() { return own_ ? own_->receives().handle() : shared_->receives().handle(); }

    const buf_arr room_;
    std::optional<rdma_queue> own_;
    std::optional<rdma_connections> shared_;
};

} // namespace

double sent_and_taken(const rdma_setup& setup, receive_ring ring, std::uint32_t bytes, double seconds)
{
    const rdma_queue_options options{.entries = depth, .receive_entries = depth, .timeout = 18};
    rdma_queue sender(setup.device_at(0), setup.cpu, options);
    taker peer(setup, ring, options, bytes);
    sender.connect(peer.queue().address());
    peer.queue().connect(sender.address());
    const rdma_queue* const queue = &sender;
    const weftio_dev_buf from = setup.memory(0).buffer;
    const auto send = [&](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        if (number % burst == 0)
            peer.take();
        return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_request(from, number % 64 * bytes, bytes),
                                            position, WEFTIO_DEV_SEND_NONE);
    };
    return messages_a_second({&queue, 1}, {.seconds = seconds, .burst = burst}, send);
}

double datagrams_taken(const rdma_setup& setup, std::uint32_t bytes, double seconds)
{
    const rdma_queue_options options{
        .service = rdma_service::datagram, .entries = depth, .receive_entries = depth, .queue_key = 7};
    rdma_queue sender(setup.device_at(0), setup.cpu, options);
    taker peer(setup, receive_ring::own, options, bytes + WEFTIO_DEV_DATAGRAM_HEADER_BYTES);
    const rdma_queue* const queue = &sender;
    const weftio_dev_buf from = setup.memory(0).buffer;
    const weftio_dev_datagram_peer to = setup.device_at(0).datagram_peer(peer.queue().address().peer());
    const auto send = [&](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        if (number % burst == 0)
            peer.take();
        return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_to_request(to, from, number % 64 * bytes, bytes),
                                            position, WEFTIO_DEV_SEND_NONE);
    };
    const double rate = messages_a_second({&queue, 1}, {.seconds = seconds, .burst = burst, .positions = 2}, send);
    if (peer.queue().counters().not_ready != 0)
        throw error(errc::device_error, "weftio: rdma_bench: datagrams found no receive");
    return rate;
}

} // namespace weftio::bench
