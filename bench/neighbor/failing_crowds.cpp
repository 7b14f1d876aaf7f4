// Queue pairs that wait for what does not come, or fail again and again.
#include "neighbor/crowd.hpp"

#include <array>

namespace weftio::bench {

namespace {

/// Each pair has SENDs for which the peer never posts a receive.
class not_ready : public crowd {
 public:
    not_ready(ground& on, unsigned count, unsigned sends, std::uint8_t timer)
    {
        rdma_queue_options options = small_rings;
        options.min_rnr_timer = timer;
        for (unsigned each = 0; each < count; ++each) {
            weftio_dev_rdma* const rdma = pairs_.emplace_back(on, options).near.handle();
            for (unsigned send = 0; send < sends; ++send)
                require(weftio_dev_rdma_send(rdma, on.region.buffer(), 0, 64, 0), "send of a neighbor");
            require(weftio_dev_rdma_commit(rdma), "commit of a neighbor");
        }
    }

 private:
    std::deque<connected> pairs_;
};

/// Each pair has a WRITE in flight that is never acknowledged.
class dead_peers : public crowd {
 public:
    dead_peers(ground& on, unsigned count)
    {
        const rdma_address nobody = rdma_address::of(
            {.address = "10.9.8.5", .queue = 17, .mac = std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9}});
        for (unsigned each = 0; each < count; ++each) {
            rdma_queue& queue = queues_.emplace_back(on.here, on.cpu, small_rings);
            queue.connect(nobody);
            require(weftio_dev_rdma_write(queue.handle(), on.remote, 0, on.region.buffer(), 0, 8, 0), "write");
            require(weftio_dev_rdma_commit(queue.handle()), "commit of a neighbor");
        }
    }

 private:
    std::deque<rdma_queue> queues_;
};

/// Each pair uses a key that does not exist, or its doorbell record claims more entries than the ring holds. It fails
/// and is reset.
class offenders : public idle_pairs {
 public:
    offenders(ground& on, unsigned count, bool record) : idle_pairs(on, count), on_(on), record_(record) {}
    void step() override
    {
        connected& pair = pairs_[next_++ % pairs_.size()];
        if (weftio_dev_rdma_status(pair.near.handle()) != WEFTIO_DEV_OK) {
            pair.near.reset();
            pair.end.reset();
            pair.near.connect(pair.end.address());
            pair.end.connect(pair.near.address());
        }
        weftio_dev_rdma* const rdma = pair.near.handle();
        weftio_dev_remote wrong = on_.remote;
        wrong.rkey_be ^= 0xff;
        if (record_)
            weftio_store_release_sys_u32(rdma->queue.ring.dbrec, weftio_swap32(0x7fff));
        else if (weftio_dev_rdma_write(rdma, wrong, 0, on_.region.buffer(), 0, 8, 0) == WEFTIO_DEV_OK)
            weftio_dev_send_queue_commit_strong(&rdma->queue);
    }

 private:
    ground& on_;
    bool record_;
    std::size_t next_ = 0;
};

} // namespace

std::vector<crowd_kind> failing_crowds()
{
    constexpr std::uint8_t shortest = 1, longest = 0; // 0.01 ms, 655 ms
    return {kind_of<not_ready>("pairs not ready, 1 send, 0.01 ms", 1U, shortest),
            kind_of<not_ready>("pairs not ready, 64 sends, 0.01 ms", 64U, shortest),
            kind_of<not_ready>("pairs not ready, 64 sends, 655 ms", 64U, longest),
            kind_of<dead_peers>("pairs of dead peers"),
            kind_of<offenders>("pairs of wrong keys", false),
            kind_of<offenders>("pairs of wrong records", true)};
}

} // namespace weftio::bench
