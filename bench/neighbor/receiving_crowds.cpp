// Queue pairs that send messages without pause to receives that are posted as fast.
#include <algorithm>
#include <optional>

#include "neighbor/crowd.hpp"

namespace weftio::bench {

namespace {

/// Clients that send 64 bytes without pause to one receive ring, which their connections share. The other thread takes
/// the messages. The good pair may send to the same ring.
class flooders : public crowd {
 public:
    flooders(ground& on, unsigned count, bool has_good)
        : on_(on), server_(on.here, on.cpu, count + has_good, ring_of_all())
    {
        for (unsigned each = 0; each < count; ++each)
            connect(clients_.emplace_back(on.here, on.cpu, small_rings), server_[each]);
        if (has_good)
            connect(good_.emplace(on.here, on.cpu, small_rings), server_[count]);
        for (std::uint32_t each = 0; each != receives - 1; ++each)
            take_into(weftio_dev_buf_get(room_.handle(), each));
        require(weftio_dev_rdma_recv_commit(ring_), "commit of receives");
    }
    void go_on() override
    {
        for (const rdma_queue& client : clients_) {
            weftio_dev_rdma* const rdma = client.handle();
            const std::uint32_t more = weftio_dev_send_room(&rdma->queue.ring, ring_entries);
            if (more < ring_entries / 2)
                continue;
            for (std::uint32_t each = 0; each != more; ++each)
                require(weftio_dev_rdma_send(rdma, on_.region.buffer(), 0, message_bytes, 0), "send of a neighbor");
            // No push: in inline mode it would run the engine.
            weftio_dev_send_queue_commit_strong(&rdma->queue);
            weftio_dev_send_doorbell(&rdma->queue.ring);
        }
    }
    void step() override
    {
        for (std::uint32_t limit = 64; limit != 0 && weftio_dev_completion_ready(&ring_->completions, next_); --limit) {
            weftio_dev_rdma_message message{};
            weftio_dev_rdma_recv_hand_out(ring_, next_, 1, 1, WEFTIO_DEV_OK); // no poll, which would run the engine
            weftio_dev_rdma_recv_message(ring_, next_++, &message);
            take_into(message.buffer);
        }
        weftio_dev_rdma_recv_commit(ring_);
    }
    bool counts_work() const override { return true; }
    std::uint64_t work() const override
    {
        std::uint64_t sent = 0;
        for (const rdma_queue& client : clients_)
            sent += client.counters().done;
        return sent;
    }
    weftio_dev_rdma* good_sender() override { return good_ ? good_->handle() : nullptr; }
    bool is_done() const override
    {
        return std::ranges::all_of(clients_, [](const rdma_queue& client) {
            return weftio_dev_send_room(&client.handle()->queue.ring, ring_entries) == ring_entries;
        });
    }
    std::optional<std::uint64_t> receives_lost() const override
    {
        return std::uint32_t{posted_ - next_ - server_.standing().waiting};
    }

 private:
    static constexpr std::uint32_t receives = 1024, message_bytes = 64;

    static rdma_queue_options ring_of_all()
    {
        rdma_queue_options options = small_rings;
        options.receive_entries = receives;
        return options;
    }
    static void connect(rdma_queue& client, rdma_queue& server)
    {
        client.connect(server.address());
        server.connect(client.address());
    }
    void take_into(weftio_dev_buf buffer)
    {
        require(weftio_dev_rdma_recv_post(ring_, buffer, 0, message_bytes), "receive of a neighbor");
        ++posted_;
    }

    ground& on_;
    rdma_connections server_;
    weftio_dev_rdma_recv* const ring_ = server_.receives().handle();
    const buf_arr room_{on_.at, on_.cpu, {.count = receives - 1, .buffer_bytes = message_bytes}};
    std::deque<rdma_queue> clients_;
    std::optional<rdma_queue> good_;
    std::uint32_t posted_ = 0, next_ = 0; ///< receives, and those of them that have completed
};

} // namespace

std::vector<crowd_kind> receiving_crowds()
{
    crowd_kind with_good = kind_of<flooders>("connections of the good pair's own flooded receive ring", true);
    with_good.has_good = true;
    return {kind_of<flooders>("connections of a flooded receive ring", false), with_good};
}

} // namespace weftio::bench
