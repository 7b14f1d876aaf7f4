#include "neighbor/neighbors.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "nic/backend.hpp"
#include "weftio/rdma_connect.hpp"

namespace weftio::bench {

namespace {

/// A queue with bad entries only, which is reset after each error.
class bad : public neighbor {
 public:
    bad(const port& port, const device& device) : queue_(port, device, {.entries = 64}) {}
    ~bad() override { end(); }

 protected:
    /// Posts a full ring of entries with a key that does not exist.
    void step() override
    {
        weftio_dev_eth_txq* txq = queue_.handle();
        const weftio_dev_buf nowhere{reinterpret_cast<weftio_u8*>(64), frame_bytes, weftio_swap32(0x00dead00)};
        for (std::uint32_t at = 0; at < 64; ++at)
            weftio_dev_eth_txq_send_enqueue_weak(txq, nowhere, frame_bytes, at, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_weak(txq, 64);
        weftio_dev_send_doorbell(&txq->queue.ring);
        for (std::uint32_t attempt = 0; weftio_dev_eth_txq_status(txq) == WEFTIO_DEV_OK && !ends(); ++attempt)
            weftio_relax(attempt);
        queue_.reset();
    }

 private:
    eth_txq queue_;
};

/// Queues that send one frame, or a burst, at each deadline; deadlines are an interval apart.
class paced : public neighbor {
 public:
    paced(const port& port, const device& device, std::uint64_t interval_ns, std::uint32_t frames, std::uint32_t bytes,
          std::uint32_t flags)
        : frames_(port, device, {.count = 1, .buffer_bytes = bytes}), interval_ns_(interval_ns), count_(frames),
          bytes_(bytes), flags_(flags)
    {
        for (auto& queue : queues_)
            queue.emplace(port, device, eth_txq_options{.entries = 1024});
    }
    ~paced() override { end(); }

 protected:
    void step() override
    {
        for (std::size_t each = 0; each < queues_.size(); ++each)
            refill(queues_[each]->handle(), next_ns_[each]);
    }

 private:
    void refill(weftio_dev_eth_txq* txq, std::uint64_t& next_ns)
    {
        constexpr std::uint64_t ahead_ns = 1'000'000'000;
        const std::uint64_t now_ns = weftio::utc_now_ns();
        if (next_ns < now_ns)
            next_ns = now_ns + interval_ns_;
        unsigned batch = 0;
        for (; batch < 64 && next_ns < now_ns + ahead_ns + interval_ns_ &&
               weftio_dev_send_room(&txq->queue.ring, count_ + 1) > count_;
             ++batch, next_ns += interval_ns_) {
            weftio_dev_eth_txq_wait_time_enqueue_strong(txq, eth_txq::timestamp(next_ns), WEFTIO_DEV_SEND_NONE);
            for (std::uint32_t frame = 0; frame < count_; ++frame)
                weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames_.handle(), 0), bytes_, flags_);
        }
        if (batch == 0)
            return;
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_send_doorbell(&txq->queue.ring);
    }

    buf_arr frames_;
    std::array<std::optional<eth_txq>, 8> queues_;
    std::array<std::uint64_t, 8> next_ns_{};
    std::uint64_t interval_ns_;
    std::uint32_t count_, bytes_, flags_;
};

/// Queues on which a kernel sends one frame each at every interval, without deadlines.
class sending : public neighbor {
 public:
    sending(const port& port, const device& device, std::uint64_t interval_ns)
        : frames_(port, device, {.count = 1, .buffer_bytes = frame_bytes}), interval_ns_(interval_ns)
    {
        for (auto& queue : queues_)
            queue.emplace(port, device, eth_txq_options{.entries = 1024});
    }
    ~sending() override { end(); }

 protected:
    void step() override
    {
        if (const std::uint64_t now_ns = weftio::utc_now_ns(); now_ns >= next_ns_) {
            next_ns_ = std::max(next_ns_ + interval_ns_, now_ns);
            for (auto& queue : queues_)
                send_one(queue->handle());
        }
    }

 private:
    void send_one(weftio_dev_eth_txq* txq)
    {
        if (weftio_dev_send_room(&txq->queue.ring, 1) == 0)
            return;
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames_.handle(), 0), frame_bytes,
                                               WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_send_doorbell(&txq->queue.ring);
    }

    buf_arr frames_;
    std::array<std::optional<eth_txq>, 8> queues_;
    std::uint64_t interval_ns_, next_ns_ = 0;
};

/// As many frames on one queue, by 8 threads of one core. Strong commits that find another one under way leave their
/// entries to it; each thread waits until its frame is sent.
class posting : public neighbor {
 public:
    posting(const port& port, const device& device, std::uint64_t interval_ns)
        : frames_(port, device, {.count = 1, .buffer_bytes = frame_bytes}), queue_(port, device, {.entries = 1024}),
          interval_ns_(interval_ns)
    {}
    ~posting() override { end(); }

 protected:
    void step() override
    {
        std::vector<std::thread> others;
        while (others.size() < 7)
            others.emplace_back([this] { post_until_the_end(); }); // on the core of this thread
        post_until_the_end();
        for (std::thread& other : others)
            other.join();
    }

 private:
    /// Sleeps between its frames, so that the threads have room on one core.
    void post_until_the_end()
    {
        using clock = std::chrono::steady_clock;
        ::prctl(PR_SET_TIMERSLACK, 1000UL);
        for (auto next = clock::now(); !ends(); std::this_thread::sleep_until(next)) {
            post_one(queue_.handle());
            next = std::max(next + std::chrono::nanoseconds(interval_ns_), clock::now());
        }
    }
    void post_one(weftio_dev_eth_txq* txq)
    {
        weftio_dev_send_ring& ring = txq->queue.ring;
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames_.handle(), 0), frame_bytes,
                                               WEFTIO_DEV_SEND_NONE);
        const std::uint32_t end = weftio_load_relaxed_u32(&ring.reserved);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_send_doorbell(&ring);
        while (weftio_dev_send_completed(&ring) - end >= 0x80000000u && !ends())
            std::this_thread::yield();
    }

    buf_arr frames_;
    eth_txq queue_;
    std::uint64_t interval_ns_;
};

/// Items that kernels of two devices hand over to each other, without an engine.
class handing_over : public neighbor {
 public:
    handing_over(const port&, const device& device)
        : second_(device::open("cpu")), items_(device, {.items = items, .peer = second_})
    {}
    ~handing_over() override { end(); }

 protected:
    void step() override
    {
        const weftio_dev_semaphore *first = items_.handle(), *second = items_.peer().handle();
        for (std::uint32_t item = 0; item < items; ++item)
            weftio_dev_semaphore_set_packet_info(first, item, WEFTIO_DEV_SEMAPHORE_READY, 1, item);
        std::uint32_t count = 0, packet = 0;
        for (std::uint32_t item = 0; item < items; ++item)
            if (weftio_dev_semaphore_get_packet_info_status(second, item, WEFTIO_DEV_SEMAPHORE_READY, &count,
                                                            &packet) == WEFTIO_DEV_OK)
                weftio_dev_semaphore_set_status(second, item, WEFTIO_DEV_SEMAPHORE_FREE);
    }

 private:
    static constexpr std::uint32_t items = 64;

    device second_;
    semaphore items_;
};

/// Thousands of idle queues.
class idle : public stranger {
 public:
    idle(const port& port, const device& device)
    {
        for (int queue = 0; queue < 4096; ++queue)
            queues_.emplace_back(port, device, eth_txq_options{.entries = 64});
    }
    ~idle() override { end(); }

 private:
    std::deque<eth_txq> queues_;
};

/// Queue pairs whose completion queue is full and never consumed: all have entries that are done and cannot complete.
class held : public stranger {
 public:
    held(const port& port, const device& device)
        : at_(port, {.address = "10.9.8.7", .application_turns = port_is_inline(port)}),
          full_(port, device, {.entries = 1})
    {
        for (int pair = 0; pair < 32; ++pair) {
            queue_pair& one = pairs_.emplace_back(at_, device, full_, full_, queue_pair_options{.receive_entries = 0});
            queue_pair& other =
                pairs_.emplace_back(at_, device, full_, full_, queue_pair_options{.receive_entries = 0});
            const rdma_address address = one.address();
            one.connect(other.address());
            other.connect(address);
        }
        for (queue_pair& pair : pairs_)
            post_nops(pair);
    }
    ~held() override { end(); }

 private:
    static bool port_is_inline(const port& port) { return detail::internals::backend(port).is_inline(); }
    /// Posts a few no-operations, each with a completion.
    static void post_nops(queue_pair& pair)
    {
        constexpr std::uint32_t count = 4;
        auto* const words = static_cast<std::uint32_t*>(pair.send_ring());
        for (std::uint32_t at = 0; at < count; ++at) {
            words[at * 16] = weftio_swap32(at << 8 | WEFTIO_OPCODE_NOP);
            words[at * 16 + 1] = weftio_swap32(pair.number() << 8 | 1);
            words[at * 16 + 2] = weftio_swap32(WEFTIO_CE_ALWAYS);
        }
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pair.record()) + 1, weftio_swap32(count));
    }

    rdma_device at_;
    completion_queue full_;
    std::deque<queue_pair> pairs_;
};

/// Queue pairs whose peer does not respond: each has a WRITE in flight that is not acknowledged for seconds.
class unanswered : public stranger {
 public:
    unanswered(const port& port, const device& device)
        : at_(port, {.address = "10.9.8.6", .application_turns = detail::internals::backend(port).is_inline()}),
          memory_(device.allocate(64, memory_kind::cpu_device)), region_(port, memory_)
    {
        const rdma_address nobody = rdma_address::of(
            {.address = "10.9.8.5", .queue = 17, .mac = std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9}});
        for (int pair = 0; pair < 64; ++pair) {
            rdma_queue& queue = queues_.emplace_back(
                at_, device, rdma_queue_options{.entries = 64, .receive_entries = 64, .timeout = 20});
            queue.connect(nobody);
            weftio_dev_rdma_write(queue.handle(), {.address = 0, .bytes = 64, .rkey_be = 0, .reserved = 0}, 0,
                                  region_.buffer(), 0, 8, 0);
            weftio_dev_rdma_commit(queue.handle());
        }
    }
    ~unanswered() override { end(); }

 private:
    rdma_device at_;
    memory memory_;
    memory_region region_;
    std::deque<rdma_queue> queues_;
};

/// Armed completion queues without completions.
class quiet : public stranger {
 public:
    quiet(const port& port, const device& device)
    {
        for (int queue = 0; queue < 512; ++queue)
            queues_.emplace_back(port, device, completion_queue_options{.entries = 16}).arm();
    }
    ~quiet() override { end(); }

 private:
    std::deque<completion_queue> queues_;
};

/// An RDMA device that nobody uses: the engine looks at the frames that arrive, of which this port has no end.
class idle_rdma : public stranger {
 public:
    explicit idle_rdma(const port& port)
        : at_(port, {.address = "10.9.8.7", .application_turns = detail::internals::backend(port).is_inline()})
    {}
    ~idle_rdma() override { end(); }

 private:
    rdma_device at_;
};

/// A program that connects by the connection manager and disconnects without pause, and one that accepts.
class connecting : public neighbor {
 public:
    connecting(const port& port, const device& device)
        : at_(port, {.address = "10.9.8.7", .application_turns = detail::internals::backend(port).is_inline()}),
          listener_(at_, service, {.stop = [this] { return stopping_.load(); }}),
          near_(at_, device, {.entries = 64, .receive_entries = 64}),
          far_(at_, device, {.entries = 64, .receive_entries = 64}), accepting_([this] { accept_all(); })
    {}
    ~connecting() override
    {
        end();
        stopping_ = true;
        accepting_.join();
    }

 private:
    static constexpr std::uint16_t service = 18515;

    void step() override
    try {
        rdma_connect(at_, "10.9.8.7", service, near_, {.stop = [this] { return ends(); }}).disconnect();
        near_.reset();
    } catch (const error&) {
        if (!ends()) // inline, only the good kernel runs the engine
            throw;
    }
    void accept_all()
    try {
        while (!stopping_) {
            const rdma_connection accepted = listener_.next().accept(far_);
            while (accepted.connected() && !stopping_)
                std::this_thread::yield();
            far_.reset();
        }
    } catch (const error&) { // it is to stop
    }

    std::atomic<bool> stopping_{false};
    rdma_device at_;
    rdma_listener listener_;
    rdma_queue near_, far_;
    std::thread accepting_; ///< the last member: it uses the others
};

/// 8 queues with a deadline every `us`.
neighbor_row paced_row(const char* name, std::uint64_t us)
{
    return {
        .name = name,
        .make =
            [us](auto& port, auto& device) {
                return std::make_unique<paced>(port, device, us * 1000, 1, frame_bytes, WEFTIO_DEV_SEND_NONE);
            },
        .same_frames = [us](auto& port, auto& device) { return std::make_unique<sending>(port, device, us * 1000); }};
}

} // namespace

const std::vector<neighbor_row>& neighbor_rows()
{
    static const std::vector<neighbor_row> all{
        {"bad entries", [](auto& port, auto& device) { return std::make_unique<bad>(port, device); }},
        {"8 waiting",
         [](auto& port, auto& device) {
             return std::make_unique<paced>(port, device, 1'000'000'000, 64, 1000, WEFTIO_DEV_SEND_L3_CHECKSUM);
         }},
        paced_row("8 at 80 us", 80),
        paced_row("8 at 8 us", 8),
        {.name = "8 posters of a queue at 80 us",
         .make = [](auto& port, auto& device) { return std::make_unique<posting>(port, device, 80'000); },
         .same_frames = [](auto& port, auto& device) { return std::make_unique<sending>(port, device, 80'000); }},
        {"devices that hand items over",
         [](auto& port, auto& device) { return std::make_unique<handing_over>(port, device); }},
        {"4096 idle", [](auto& port, auto& device) { return std::make_unique<idle>(port, device); }},
        {"64 held pairs", [](auto& port, auto& device) { return std::make_unique<held>(port, device); }},
        {"64 unanswered pairs", [](auto& port, auto& device) { return std::make_unique<unanswered>(port, device); }},
        {"512 quiet completion queues", [](auto& port, auto& device) { return std::make_unique<quiet>(port, device); }},
        {.name = "a connecting program",
         .make = [](auto& port, auto& device) { return std::make_unique<connecting>(port, device); },
         .same_frames = [](auto& port, auto&) { return std::make_unique<idle_rdma>(port); }},
    };
    return all;
}

} // namespace weftio::bench
