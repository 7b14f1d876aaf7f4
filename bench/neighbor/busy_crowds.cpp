// Queue pairs that keep the engine busy without pause.
#include "neighbor/crowd.hpp"

namespace weftio::bench {

namespace {

/// Each pair has eight long WRITEs, or READs, in flight.
class long_messages : public idle_pairs {
 public:
    long_messages(ground& on, unsigned count, std::size_t bytes, bool reads)
        : long_messages(on, count, bytes, reads, on.region, on.remote)
    {}
    /// @param from, to  where the payload lies
    long_messages(ground& on, unsigned count, std::size_t bytes, bool reads, const memory_region& from,
                  weftio_dev_remote to)
        : idle_pairs(on, count), on_(on), from_(from), to_(to), bytes_(bytes), reads_(reads)
    {}
    void go_on() override
    {
        constexpr std::uint32_t under_way = 8;
        for (connected& pair : pairs_) {
            std::uint32_t more = pair.room();
            more = more > ring_entries - under_way ? more - (ring_entries - under_way) : 0;
            for (std::uint32_t each = 0; each < more; ++each)
                post(pair.near.handle());
            if (more == 0)
                continue;
            // No push: in inline mode it would run the engine.
            weftio_dev_send_queue_commit_strong(&pair.near.handle()->queue);
            weftio_dev_send_doorbell(&pair.near.handle()->queue.ring);
        }
    }
    bool counts_work() const override { return true; }
    std::uint64_t work() const override
    {
        std::uint64_t packets = 0;
        for (const connected& pair : pairs_) {
            const rdma_counters counted = pair.near.counters();
            packets += reads_ ? counted.answers : counted.packets;
        }
        return packets * on_.here.most_path_mtu();
    }

 private:
    void post(weftio_dev_rdma* rdma)
    {
        const auto enqueue = reads_ ? weftio_dev_rdma_read : weftio_dev_rdma_write;
        require(enqueue(rdma, to_, 8 * mib, from_.buffer(), 0, bytes_, 0), "entry of a neighbor");
    }

    ground& on_;
    const memory_region& from_;
    weftio_dev_remote to_;
    std::size_t bytes_;
    bool reads_;
};

/// Memory that the CPU cannot access.
struct gpu_payload {
    explicit gpu_payload(ground& on)
        : memory(on.gpu.value().allocate(16 * mib, memory_kind::device)),
          region(on.at, memory, {.rights = access::local_write | access::remote_write}),
          remote(remote_region::of(region).on_device())
    {}

    weftio::memory memory;
    memory_region region;
    weftio_dev_remote remote;
};

/// The same WRITEs from memory of a GPU to memory of a GPU: copy engines stage each piece on both sides.
class staged_messages : private gpu_payload, public long_messages {
 public:
    staged_messages(ground& on, unsigned count)
        : gpu_payload(on), long_messages(on, count, mib, false, gpu_payload::region, gpu_payload::remote)
    {}
};

/// The same WRITEs to queue pairs of another engine: this one hands over each packet, and takes in each answer. The
/// other thread runs that engine.
class messages_to_another_engine : public long_messages {
 public:
    messages_to_another_engine(ground& on, unsigned count) : long_messages(on, count, mib, false), port_(on.at) {}
    void step() override { port_.turn(1); }

 private:
    port& port_;
};

/// Each pair binds and invalidates a window without pause.
class binders : public crowd {
 public:
    binders(ground& on, unsigned count) : on_(on)
    {
        rdma_queue_options options = small_rings;
        options.entries = entries;
        for (unsigned each = 0; each < count; ++each)
            pairs_.emplace_back(on, options);
    }
    void step() override
    {
        binder& one = pairs_[next_++ % pairs_.size()];
        weftio_dev_rdma* const rdma = one.pair.near.handle();
        if (weftio_dev_send_room(&rdma->queue.ring, entries) < entries / 2)
            return;
        for (std::uint32_t each = 0; each < entries / 2 / positions; ++each)
            post(rdma, one.key);
        weftio_dev_send_queue_commit_strong(&rdma->queue);
        weftio_dev_send_doorbell(&rdma->queue.ring);
    }
    bool counts_work() const override { return true; }
    std::uint64_t work() const override
    {
        std::uint64_t done = 0;
        for (const binder& one : pairs_)
            done += one.pair.near.counters().done;
        return done;
    }

 private:
    static constexpr std::uint32_t entries = 256, positions = 5; ///< of a bind and an invalidation

    struct binder {
        binder(ground& on, const rdma_queue_options& options)
            : pair(on, options), window(on.here, window_type::type_2), key(window.rkey())
        {}

        connected pair;
        memory_window window;
        std::uint32_t key; ///< the last one
    };

    void post(weftio_dev_rdma* rdma, std::uint32_t& key)
    {
        const std::uint32_t next = weftio_dev_rdma_next_rkey(key);
        require(weftio_dev_rdma_enqueue(rdma,
                                        weftio_dev_rdma_bind_request(key, next, WEFTIO_DEV_WINDOW_TYPE_2,
                                                                     on_.region.buffer(), 0, mib,
                                                                     WEFTIO_DEV_RDMA_REMOTE_WRITE),
                                        0),
                "bind of a neighbor");
        require(weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_invalidate_request(next), 0),
                "invalidation of a neighbor");
        key = next;
    }

    ground& on_;
    std::deque<binder> pairs_;
    std::size_t next_ = 0;
};

} // namespace

std::vector<crowd_kind> busy_crowds()
{
    crowd_kind to_another_engine = kind_of<messages_to_another_engine>("pairs of 1 MiB writes to another engine");
    to_another_engine.two_engines = true;
    crowd_kind staged = kind_of<staged_messages>("pairs of 1 MiB staged writes");
    staged.on_gpu = true;
    return {kind_of<long_messages>("pairs of 1 MiB writes", mib, false),
            kind_of<long_messages>("pairs of 4 MiB reads", 4 * mib, true), kind_of<binders>("pairs of binds"),
            to_another_engine, staged};
}

} // namespace weftio::bench
