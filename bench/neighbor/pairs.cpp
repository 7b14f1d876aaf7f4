#include "neighbor/pairs.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "machine.hpp"

namespace weftio::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint64_t patience_ns = 5'000'000'000;
constexpr std::uint32_t ring_entries = 64;

void require(std::int32_t status, const char* what)
{
    if (status != WEFTIO_DEV_OK)
        throw error(errc::device_error, fmt::format("neighbor_bench: {}: status {}", what, status));
}

/// A port with one RDMA device, and memory that both queue pairs of a connection may use.
struct ground {
    ground(const port& port, const device& device, bool inline_worker)
        : at(port), cpu(device), here(at, {.address = "10.9.8.1", .application_turns = inline_worker}),
          memory(device.allocate(16 * mib, memory_kind::cpu_device)),
          region(at, memory,
                 {.rights = access::local_write | access::remote_write | access::remote_read | access::bind}),
          remote(remote_region::of(region).on_device())
    {}

    port at;
    const device& cpu;
    rdma_device here;
    weftio::memory memory;
    memory_region region;
    weftio_dev_remote remote;
};

/// Two queue pairs that are connected to each other.
struct connected {
    connected(ground& on, const rdma_queue_options& options)
        : near(on.here, on.cpu, options), end(on.here, on.cpu, options)
    {
        near.connect(end.address());
        end.connect(near.address());
    }
    std::uint32_t room() { return weftio_dev_send_room(&near.handle()->queue.ring, ring_entries); }

    rdma_queue near, end;
};

constexpr rdma_queue_options small_rings{.entries = ring_entries, .receive_entries = ring_entries, .timeout = 20};

/// The other queue pairs of the port. The calling thread is the kernel of all of them.
class crowd {
 public:
    crowd() = default;
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    virtual ~crowd() = default;
    /// Posts new work for the pairs that have finished work.
    virtual void go_on() {}
    /// The work of another thread for these pairs; called repeatedly.
    virtual void step() { benchmark::DoNotOptimize(++steps_); }
    /// Whether work() tells all that they do.
    virtual bool counts_work() const { return false; }
    /// What they have done so far: bytes of long messages, packet by packet, or changes of windows.
    virtual std::uint64_t work() const { return 0; }

 private:
    std::uint32_t steps_ = 0;
};

/// A thread that calls step() of a crowd repeatedly, on a core.
class other_thread {
 public:
    other_thread(crowd& of, int core)
        : thread_([this, &of, core] {
              stay_on(core);
              while (!ending_.load(std::memory_order_relaxed))
                  of.step();
          })
    {}
    ~other_thread()
    {
        ending_ = true;
        thread_.join();
    }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_; ///< declared last: it uses the other members
};

class idle_pairs : public crowd {
 public:
    idle_pairs(ground& on, unsigned count)
    {
        for (unsigned each = 0; each < count; ++each)
            pairs_.emplace_back(on, small_rings);
    }

 protected:
    std::deque<connected> pairs_;
};

/// Each pair has eight long WRITEs, or READs, in flight.
class long_messages : public idle_pairs {
 public:
    long_messages(ground& on, unsigned count, std::size_t bytes, bool reads)
        : idle_pairs(on, count), on_(on), bytes_(bytes), reads_(reads)
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
        require(enqueue(rdma, on_.remote, 8 * mib, on_.region.buffer(), 0, bytes_, 0), "entry of a neighbor");
    }

    ground& on_;
    std::size_t bytes_;
    bool reads_;
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

/// Clients that send 64 bytes without pause to one receive ring, which their connections share. The other thread takes
/// the messages.
class flooders : public crowd {
 public:
    flooders(ground& on, unsigned count) : on_(on), server_(on.here, on.cpu, count, ring_of_all())
    {
        for (unsigned each = 0; each < count; ++each) {
            rdma_queue& client = clients_.emplace_back(on.here, on.cpu, small_rings);
            client.connect(server_[each].address());
            server_[each].connect(client.address());
        }
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

 private:
    static constexpr std::uint32_t receives = 1024, message_bytes = 64;

    static rdma_queue_options ring_of_all()
    {
        rdma_queue_options options = small_rings;
        options.receive_entries = receives;
        return options;
    }
    void take_into(weftio_dev_buf buffer)
    {
        require(weftio_dev_rdma_recv_post(ring_, buffer, 0, message_bytes), "receive of a neighbor");
    }

    ground& on_;
    rdma_connections server_;
    weftio_dev_rdma_recv* const ring_ = server_.receives().handle();
    const buf_arr room_{on_.at, on_.cpu, {.count = receives - 1, .buffer_bytes = message_bytes}};
    std::deque<rdma_queue> clients_;
    std::uint32_t next_ = 0;
};

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

struct kind {
    const char* name;
    std::function<std::unique_ptr<crowd>(ground&, unsigned)> make;
    bool two_engines = false; ///< of the port
};

template <class Crowd, class... Arguments>
kind kind_of(const char* name, Arguments... arguments)
{
    return {name, [=](ground& on, unsigned count) { return std::make_unique<Crowd>(on, count, arguments...); }};
}

const std::vector<kind>& kinds()
{
    constexpr std::uint8_t shortest = 1, longest = 0; // 0.01 ms, 655 ms
    kind to_another_engine = kind_of<messages_to_another_engine>("pairs of 1 MiB writes to another engine");
    to_another_engine.two_engines = true;
    static const std::vector<kind> all{
        kind_of<idle_pairs>("idle pairs"),
        kind_of<long_messages>("pairs of 1 MiB writes", mib, false),
        kind_of<long_messages>("pairs of 4 MiB reads", 4 * mib, true),
        kind_of<not_ready>("pairs not ready, 1 send, 0.01 ms", 1U, shortest),
        kind_of<not_ready>("pairs not ready, 64 sends, 0.01 ms", 64U, shortest),
        kind_of<not_ready>("pairs not ready, 64 sends, 655 ms", 64U, longest),
        kind_of<dead_peers>("pairs of dead peers"),
        kind_of<offenders>("pairs of wrong keys", false),
        kind_of<offenders>("pairs of wrong records", true),
        kind_of<binders>("pairs of binds"),
        kind_of<flooders>("connections of a flooded receive ring"),
        to_another_engine,
    };
    return all;
}

constexpr std::array<unsigned, 3> counts{1, 8, 32};

std::string name_of(const kind& one, unsigned count)
{
    return fmt::format("{} {}", count, one.name);
}

/// Writes 8 bytes, waits, and writes again.
class pinger {
 public:
    explicit pinger(ground& on)
        : on_(on), near_(on.here, on.cpu, small_rings), spare_(on.here, on.cpu, small_rings),
          end_(on.here, on.cpu, small_rings), spare_too_(on.here, on.cpu, small_rings)
    {
        near_.connect(end_.address());
        end_.connect(near_.address());
    }

    /// Round trips per second.
    double run(double seconds, crowd& beside)
    {
        constexpr std::uint64_t trips_between = 8;
        std::uint64_t trips = 0;
        const auto begin = clock::now();
        auto last = begin;
        for (std::chrono::duration<double> lasted{}; lasted.count() < seconds; lasted = last - begin) {
            if (trips++ % trips_between == 0)
                beside.go_on();
            weftio_dev_rdma* const rdma = near_.handle();
            require(weftio_dev_rdma_write(rdma, on_.remote, 0, on_.region.buffer(), 8, 8, 0), "a write");
            require(weftio_dev_rdma_commit_wait(rdma, patience_ns), "the wait of the good pair");
            const auto now = clock::now();
            longest_ = std::max(longest_, now - last);
            last = now;
        }
        return static_cast<double>(trips) / std::chrono::duration<double>(last - begin).count();
    }
    double longest_gap_us() const { return std::chrono::duration<double, std::micro>(longest_).count(); }
    void forget_gaps() { longest_ = {}; }

 private:
    ground& on_;
    /// A port gives its engines queue pairs in turn. With the spare ones, which are idle, both ends are at the first of
    /// two engines, and the next queue pair will be, too.
    rdma_queue near_, spare_, end_, spare_too_;
    clock::duration longest_{};
};

/// Work per second of the others while the good pair is idle.
double work_alone(const pair_options& wanted, port& of, crowd& others)
{
    const std::uint64_t before = others.work();
    const auto begin = clock::now();
    std::chrono::duration<double> lasted{};
    for (; lasted.count() < wanted.seconds; lasted = clock::now() - begin) {
        others.go_on();
        for (unsigned turns = 0; turns < 8 && wanted.inline_worker; ++turns)
            of.turn(0);
    }
    return static_cast<double>(others.work() - before) / lasted.count();
}

/// The figures of one kind and number of other pairs, with a value for each round.
struct kept_shares {
    std::vector<double> alone, beside, gaps; ///< millions of round trips per second (twice), and us
    std::vector<double> by_count, by_work;   ///< fair shares of the good pair
    std::vector<double> kept;                ///< part of the larger share that it keeps
};

void measure_round(const pair_options& wanted, ground& on, pinger& good, const kind& one, unsigned count,
                   kept_shares& into)
{
    crowd nobody;
    {
        const other_thread stranger(nobody, wanted.other_core);
        into.alone.push_back(good.run(wanted.seconds, nobody) / 1e6);
    }
    const std::unique_ptr<crowd> others = one.make(on, count);
    const other_thread theirs(*others, wanted.other_core);
    good.run(0.05, *others);
    good.forget_gaps();
    const std::uint64_t before = others->work();
    const auto begin = clock::now();
    into.beside.push_back(good.run(wanted.seconds, *others) / 1e6);
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    const double work = static_cast<double>(others->work() - before) / seconds;
    into.gaps.push_back(good.longest_gap_us());
    into.by_count.push_back(1.0 / (count + 1));
    into.by_work.push_back(others->counts_work() ? std::max(0.0, 1 - work / work_alone(wanted, on.at, *others)) : 1.0);
    into.kept.push_back(into.beside.back() / into.alone.back() / std::max(into.by_count.back(), into.by_work.back()));
}

/// Names of the figures of a row.
struct figure_names {
    explicit figure_names(const std::string& row)
        : alone("without " + row), beside("beside " + row), gaps("longest gap beside " + row),
          by_count("share by count, " + row), by_work("share by work, " + row), kept("kept of the larger, " + row)
    {}
    std::string alone, beside, gaps, by_count, by_work, kept;
};

void measure_row(const pair_options& wanted, ground& on, pinger& good, const kind& one, unsigned count, table& into)
{
    kept_shares found;
    for (unsigned round = 0; round < wanted.rounds; ++round)
        measure_round(wanted, on, good, one, count, found);
    const figure_names names(name_of(one, count));
    into.add({.name = names.alone, .unit = "Mtrips/s", .values = found.alone});
    into.add({.name = names.beside, .unit = "Mtrips/s", .values = found.beside, .peer = names.alone});
    into.add({.name = names.gaps, .unit = "us", .values = found.gaps});
    into.add({.name = names.by_count, .unit = "share", .values = found.by_count});
    into.add({.name = names.by_work, .unit = "share", .values = found.by_work});
    into.add({.name = names.kept, .unit = "share", .values = found.kept});
}

/// A port of its own, and the good pair.
struct place {
    place(const pair_options& wanted, const device& cpu, bool two_engines)
        : on(port::open("loopback", {.mode = wanted.inline_worker ? engine_mode::inline_worker : engine_mode::thread,
                                     .idle = idle_policy::busy,
                                     .engines = two_engines ? 2u : 1u,
                                     .core = wanted.engine_core}),
             cpu, wanted.inline_worker),
          good(on)
    {}

    ground on;
    pinger good;
};

template <class Each>
void for_each_row(const pair_options& wanted, Each&& each)
{
    for (const kind& one : kinds())
        for (const unsigned count : counts)
            if (std::string_view(name_of(one, count)).find(wanted.only) != std::string_view::npos)
                each(one, count);
}

} // namespace

std::vector<std::string> pair_rows()
{
    std::vector<std::string> names;
    for (const kind& one : kinds())
        for (const unsigned count : counts)
            names.push_back(name_of(one, count));
    return names;
}

void measure_pairs(const pair_options& wanted, const device& cpu, table& into)
{
    if (!wanted.missing.empty())
        return for_each_row(wanted, [&](const kind& one, unsigned count) {
            into.leave_out(figure_names(name_of(one, count)).kept, wanted.missing);
        });
    for (const bool two_engines : {false, true}) {
        std::optional<place> at; // if there is such a row
        for_each_row(wanted, [&](const kind& one, unsigned count) {
            if (one.two_engines != two_engines)
                return;
            if (two_engines && !wanted.inline_worker)
                return into.leave_out(figure_names(name_of(one, count)).kept, "needs --mode inline");
            if (!at)
                at.emplace(wanted, cpu, two_engines);
            measure_row(wanted, at->on, at->good, one, count, into);
        });
    }
}

} // namespace weftio::bench
