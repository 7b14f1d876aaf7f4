// Any contents of a send ring and its doorbell record, executed by the engine's send side on net_null.
//
// The input is a row of operations: entries that are right but for one field, blocks of any bits, records and doorbells
// of any value, turns of the engine, a driver that takes some frames and keeps some, keys that change, resets. What the
// NIC reads lies between guard pages and cannot be written by it.
#include <chrono>
#include <optional>

#include "core/clock.hpp"
#include "expect.hpp"
#include "guarded.hpp"
#include "raw_entry.hpp"
#include "slow_wire.hpp"
#include "software_nic.hpp"
#include "unit/device/slow_copies.hpp"

namespace weftio::fuzz {

namespace {

constexpr std::uint32_t depth = 64, words_per_block = 16;
constexpr std::uint32_t longest_frame = 1540; ///< tried here: a little more than any that goes
constexpr std::uint64_t horizon_ns = 4'000'000'000;
constexpr auto whole = ~std::uint32_t{0};
constexpr std::size_t lasting = 2;  ///< the region of good frames, whose key never changes
constexpr std::size_t unmapped = 3; ///< the region that the CPU does not see

template <class T>
T* at(std::byte* base, std::size_t offset)
{
    return reinterpret_cast<T*>(base + offset);
}

/// A send queue in guarded memory, from the kernel's side and, for what is to be checked, from the NIC's.
class guarded_queue {
 public:
    explicit guarded_queue(nic::soft::sender& sender) : number_(sender.queues() + 1)
    {
        sender.add(number_, ring());
        nic_ = &sender.queue(number_);
        again(0);
    }

    nic::soft::tx_queue& nic() const noexcept { return *nic_; }
    std::uint32_t number() const noexcept { return number_; }
    std::uint32_t next() const noexcept { return next_; }
    const weftio_cqe& completion() const noexcept
    {
        return *at<weftio_cqe>(completion_.kernel(), guarded::page - sizeof(weftio_cqe));
    }
    bool holds(std::uint32_t blocks) const noexcept
    {
        auto completed = static_cast<std::uint16_t>(weftio_swap32(completion().publication) >> 16);
        return static_cast<std::uint16_t>(next_ - 1 - completed) + blocks <= depth;
    }

    /// Writes `count` words as the next blocks.
    void put(const std::uint32_t* words, std::uint32_t count)
    {
        auto* slots = at<std::uint32_t>(entries_.kernel(), 0);
        for (std::uint32_t word = 0; word < count; ++word)
            slots[(next_ * words_per_block + word) & (depth * words_per_block - 1)] = words[word];
        next_ += (count + words_per_block - 1) / words_per_block;
    }
    void claim(std::uint32_t position)
    {
        weftio_store_release_sys_u32(dbrec(words_.kernel()), weftio_swap32(position & 0xffff));
    }
    void commit() { claim(next_); }
    /// A ring of which nothing is written, from `index` on. @pre the queue has been stopped and the driver holds
    /// nothing of it
    void again(std::uint32_t index)
    {
        next_ = index;
        claim(index);
        nic_->restart(ring(), index);
        const_cast<weftio_cqe&>(completion()).publication =
            weftio_cqe_publication(index - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    }

 private:
    static std::uint32_t* dbrec(std::byte* base)
    {
        return at<std::uint32_t>(base, guarded::page - sizeof(std::uint32_t));
    }
    nic::soft::tx_ring ring() const
    {
        return {.entries = {.words = at<std::uint32_t>(entries_.nic(), 0), .depth = depth, .queue = 0},
                .dbrec = dbrec(words_.nic()),
                .completion = const_cast<weftio_cqe*>(&completion()),
                .horizon_ns = horizon_ns};
    }

    guarded entries_{depth * words_per_block * sizeof(std::uint32_t)}, words_{guarded::page},
        completion_{guarded::page};
    std::uint32_t number_;
    nic::soft::tx_queue* nic_ = nullptr;
    std::uint32_t next_ = 0;
};

bool conserves(const nic::soft::tx_queue& queue)
{
    return queue.enqueued.value() ==
           queue.sent.value() + queue.waited.value() + queue.failed_entries.value() + queue.flushed.value();
}

/// A port of net_null, regions, a queue that gets the input and a neighbor that gets one good frame a time.
class send_side {
 public:
    send_side()
    {
        nic::soft::frame_memory_list memory(1);
        auto block = std::make_shared<devices::memory_block>(nullptr);
        block->at.cpu = slots_.data();
        block->bytes = slots_.size();
        memory.front().block = std::move(block);
        sender_.pulls().add(device_, std::make_unique<nic::soft::pull_stream>(copies_, std::move(memory),
                                                                              core::undying<nic::soft::send_pool>()));
    }
    void execute(numbers in);
    std::uint64_t executed() const { return queue_.nic().enqueued.value() - queue_.nic().flushed.value(); }
    void lose_port();

 private:
    void operate(numbers& in);
    void send(numbers& in);
    void wait(numbers& in);
    void append(raw_entry& entry, std::uint32_t opcode, numbers& in);
    void raw_blocks(numbers& in);
    void fill(numbers& in);
    void append_good(guarded_queue& queue);
    std::uint32_t add_key(std::size_t which);
    void change_key(std::uint8_t which);
    void reset(std::uint32_t index);
    unsigned turn(std::uint32_t most);
    bool holding() const { return queue_.nic().deadline_ns() > core::utc_now_ns() + 1'000'000; }
    void run_to_idle();
    void check_completion(const guarded_queue& queue) const;
    named_region region_at(std::size_t which) const;

    std::vector<std::byte> slots_ =
        std::vector<std::byte>(std::size_t{nic::soft::pull_stream::slots} * nic::soft::pull_stream::slot_bytes);
    port port_ = port::open("null", {.mode = engine_mode::inline_worker});
    nic::soft::sender& sender_ = software_nic(port_).sender();
    keys::nic_keys& keys_ = software_nic(port_).keys();
    keys::key_table& table_ = core::undying<keys::key_table>();
    slow_wire wire_{software_nic(port_).device().id()};
    /// Stands for a device; nobody looks at it.
    const std::shared_ptr<devices::device_backend> device_{std::shared_ptr<void>(),
                                                           reinterpret_cast<devices::device_backend*>(this)};
    const std::shared_ptr<test::slow_copies> copies_ = std::make_shared<test::slow_copies>();
    bool slow_ = false; ///< copies complete only when the input says so
    guarded long_{2 * guarded::page}, short_{guarded::page}, lasting_{guarded::page}, unmapped_{guarded::page};
    static constexpr std::uint64_t unmapped_base = 0x9000; ///< entries name it by no address of the device's
    std::array<keys::key_entry, 4> regions_{
        keys::key_entry{.cpu = long_.nic(), .base = 0x7000'0000'1000, .bytes = long_.bytes()},
        keys::key_entry{.cpu = short_.nic() + short_.bytes() - 100, .base = 0, .bytes = 100},
        keys::key_entry{.cpu = lasting_.nic(), .base = 1 << 20, .bytes = lasting_.bytes()},
        keys::key_entry{.device = device_.get(),
                        .base = unmapped_base,
                        .to_device = reinterpret_cast<std::uint64_t>(unmapped_.nic()) - unmapped_base,
                        .bytes = unmapped_.bytes()}};
    std::array<std::uint32_t, 4> key_{add_key(0), add_key(1), add_key(lasting), add_key(unmapped)};
    guarded_queue queue_{sender_}, neighbor_{sender_};
    std::uint64_t failures_reported_ = 0;
};

named_region send_side::region_at(std::size_t which) const
{
    return {.key = key_[which], .base = regions_[which].base, .bytes = regions_[which].bytes};
}

/// The whole send side turns, and the host reads what is reported.
unsigned send_side::turn(std::uint32_t most)
{
    if (!slow_)
        copies_->complete_all();
    unsigned moved = sender_.turn({.entries = most});
    for (nic::soft::send_event event; queue_.nic().events().get(event);)
        if (event.reason != refusal::none) {
            expect(std::strcmp(explain(event.reason), "unknown reason") != 0, "a failure has words");
            ++failures_reported_;
        }
    return moved;
}

void send_side::append(raw_entry& entry, std::uint32_t opcode, numbers& in)
{
    if (!queue_.holds(entry.blocks())) {
        queue_.commit();
        turn(whole);
        if (!queue_.holds(entry.blocks()))
            return; // a wait or the driver is in front
    }
    const std::uint32_t words = entry.segments * 4;
    entry.control(opcode, queue_.next(), queue_.number(),
                  in.byte() & 1 ? WEFTIO_CE_ALWAYS_AND_EVENT : WEFTIO_CE_ALWAYS);
    entry.mutate(in);
    queue_.put(entry.words.data(), words);
}

/// A SEND of up to three pieces; they end with their region when bit 1 of their kind says so.
void send_side::send(numbers& in)
{
    raw_entry entry;
    const std::uint8_t shape = in.byte();
    const std::uint32_t pieces = 1 + (shape & 3) % 3;
    entry.ethernet(shape & 0x04 ? in.byte() % 64 : 0, shape & 0x08 ? in.byte() : std::uint8_t{0});
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        const std::uint8_t kind = in.byte();
        const std::uint32_t wanted = 1 + in.half() % (longest_frame / pieces);
        named_region region = region_at(kind >= 0xe0 ? unmapped : kind >> 2 & 1);
        auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, region.bytes));
        if (kind & 0x10)
            entry.inlined(count % 200, kind);
        else
            entry.pointer(count, region.key,
                          region.base + (kind & 2 ? region.bytes - count : in.half() % (region.bytes - count + 1)));
    }
    append(entry, WEFTIO_OPCODE_SEND, in);
}

/// Until a time in the past, in a moment, before or beyond the horizon, or of any bits.
void send_side::wait(numbers& in)
{
    raw_entry entry;
    const std::uint64_t now_ns = core::utc_now_ns();
    const std::uint8_t when = in.byte();
    std::uint64_t value = weftio_real_time_from_ns(now_ns - in.half());
    switch (when & 7) {
        case 0: value = std::uint64_t{in.word()} << 32 | in.word(); break;
        case 1: value = weftio_real_time_from_ns(now_ns + horizon_ns + 1'000'000'000); break;
        case 2: value = weftio_real_time_from_ns(now_ns + horizon_ns / 2); break;
        case 3: value = weftio_real_time_from_ns(now_ns + std::uint64_t{when} * 100); break;
        default: break;
    }
    entry.wait(value);
    append(entry, WEFTIO_OPCODE_WAIT | WEFTIO_WAIT_ON_TIME << 8, in);
}

void send_side::raw_blocks(numbers& in)
{
    std::array<std::uint32_t, words_per_block> block;
    for (std::uint32_t left = 1 + in.byte() % 4; left != 0; --left) {
        for (std::uint32_t& word : block)
            word = in.word();
        queue_.put(block.data(), words_per_block);
    }
}

/// The kernel writes headers, or what looks like some.
void send_side::fill(numbers& in)
{
    constexpr std::uint32_t words = 12;
    std::uint32_t* to = at<std::uint32_t>(long_.kernel(), in.byte() * std::size_t{16});
    for (std::uint32_t word = 0; word < words; ++word)
        to[word] = in.word();
}

void send_side::append_good(guarded_queue& queue)
{
    raw_entry entry;
    entry.ethernet(0, 0);
    named_region region = region_at(lasting);
    entry.pointer(60, region.key, region.base + region.bytes - 60);
    entry.control(WEFTIO_OPCODE_SEND, queue.next(), queue.number(), WEFTIO_CE_ALWAYS);
    queue.put(entry.words.data(), entry.segments * 4);
    queue.commit();
}

std::uint32_t send_side::add_key(std::size_t which)
{
    const std::uint32_t key = table_.add(regions_[which]);
    keys_.grant(key, which != unmapped);
    return key;
}

void send_side::change_key(std::uint8_t which)
{
    table_.withdraw(key_[which]);
    keys_.forget(key_[which]);
    table_.release(key_[which]);
    const keys::key_entry& region = regions_[which];
    expect(sender_.uses(region.cpu, region.bytes) || !wire_.keeps(region.cpu, region.bytes),
           "a region that the driver reads is said to be in use");
    key_[which] = add_key(which);
}

void send_side::operate(numbers& in)
{
    const std::uint8_t operation = in.byte();
    switch (operation & 15) {
        case 0: raw_blocks(in); break;
        case 1: queue_.claim(in.half()); break;
        case 2: queue_.commit(); break;
        case 3: wait(in); break;
        case 4: {
            raw_entry entry;
            entry.segments = 1 + (operation >> 4) * 3;
            append(entry, WEFTIO_OPCODE_NOP, in);
            break;
        }
        case 5:
            wire_.set(in.byte(), operation & 0x10);
            slow_ = (operation & 0xe0) == 0xe0;
            break;
        case 6:
            wire_.release(in.byte());
            if (copies_->batches_under_way())
                copies_->complete_one();
            break;
        case 7: change_key(operation >> 4 & 1); break;
        case 8:
            if (operation & 0x10)
                wire_.release_all(); // what the driver has not taken ends with the queue
            else
                run_to_idle();
            reset(queue_.next());
            break;
        case 9:
        case 10:
            queue_.commit();
            turn(operation & 0x10 ? operation >> 5 : whole);
            break;
        case 11: fill(in); break;
        default: send(in);
    }
}

/// The driver takes and gives back everything; then nothing may be left but what a wait holds.
void send_side::run_to_idle()
{
    nic::soft::tx_queue& nic = queue_.nic();
    wire_.set(~std::uint64_t{0}, false);
    wire_.release_all();
    slow_ = false;
    while (turn(whole) != 0 || (sender_.deadline_ns() != 0 && !holding())) {
    }
    expect(nic.all_returned() || holding(), "a queue that no wait holds comes to its end");
    expect(holding() || !sender_.uses(long_.nic(), long_.bytes()), "nothing of an idle queue is on its way out");
    if (nic.all_returned())
        expect(conserves(nic) == (nic.deadline_ns() == 0), "enqueued = sent + waited + failed + flushed, once idle");
    check_completion(queue_);
}

void send_side::check_completion(const guarded_queue& queue) const
{
    const weftio_cqe& cqe = queue.completion();
    const std::uint32_t opcode = weftio_cqe_opcode(cqe.publication);
    if (opcode == WEFTIO_CQE_OPCODE_REQUESTER) {
        expect(!queue.nic().failed() || !queue.nic().all_returned(),
               "a queue in error does not end with a good completion");
        return;
    }
    const auto syndrome = static_cast<std::uint8_t>(weftio_swap64(cqe.timestamp_be));
    expect(opcode == WEFTIO_CQE_OPCODE_REQUESTER_ERROR, "a completion is good or bad");
    expect(queue.nic().failed(), "a bad completion is one of a queue in error");
    expect(syndrome == WEFTIO_SYNDROME_LOCAL_LENGTH || syndrome == WEFTIO_SYNDROME_LOCAL_QP_OPERATION ||
               syndrome == WEFTIO_SYNDROME_LOCAL_PROTECTION || syndrome == WEFTIO_SYNDROME_FLUSHED,
           "a syndrome is one of those there are");
}

/// A queue in whatever state moves away and back, ends, starts again at `index`, and sends.
void send_side::reset(std::uint32_t index)
{
    nic::soft::tx_queue& nic = queue_.nic();
    sender_.take_up(queue_.number(), sender_.give_up(queue_.number()));
    nic.stop();
    wire_.set(~std::uint64_t{0}, false);
    slow_ = false;
    expect(sender_.drained(queue_.number()), "a queue is drained once the driver has given back its frames");
    turn(whole);
    expect(nic.all_returned() && conserves(nic), "enqueued = sent + waited + failed + flushed, stopped");
    queue_.again(index);
    const std::uint64_t sent = nic.sent.value();
    append_good(queue_);
    while (turn(whole) != 0) {
    }
    expect(nic.sent.value() == sent + 1 && !nic.failed(), "a queue that has been reset sends");
    expect(queue_.completion().publication == weftio_cqe_publication(index, WEFTIO_CQE_OPCODE_REQUESTER, 0),
           "and completes");
}

void send_side::execute(numbers in)
{
    static constexpr std::uint32_t starts[] = {0, 0xffe0, 0xffff'ffe0, 0x1234'5678};
    const std::uint64_t neighbors_sent = neighbor_.nic().sent.value();
    append_good(neighbor_);
    while (!in.empty())
        operate(in);
    run_to_idle();
    expect(neighbor_.nic().sent.value() == neighbors_sent + 1 && !neighbor_.nic().failed(),
           "the neighbor sends its frame");
    check_completion(neighbor_);
    reset(starts[neighbor_.next() % 4]);
    expect(wire_.taken() == queue_.nic().sent.value() + neighbor_.nic().sent.value(),
           "sent is what the driver has taken");
    expect(failures_reported_ == queue_.nic().failed_entries.value(), "every failure is told");
}

/// The last thing: the port is gone with an entry on its way, and queues go too.
void send_side::lose_port()
{
    append_good(queue_);
    sender_.port_lost();
    expect(queue_.nic().failed() && neighbor_.nic().failed(), "queues of a port that has gone are in error");
    expect(conserves(queue_.nic()), "enqueued = sent + waited + failed + flushed, port gone");
    sender_.remove(queue_.number());
    sender_.remove(neighbor_.number());
}

/// Tells at the end what was executed. Entries that were flushed, which nobody reads, do not count.
class tally {
 public:
    ~tally()
    {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
        std::fprintf(stderr, "entries: %llu executed, %.0f a second\n",
                     static_cast<unsigned long long>(side_.executed()),
                     static_cast<double>(side_.executed()) / seconds.count());
        side_.lose_port();
    }
    send_side& side() noexcept { return side_; }

 private:
    send_side side_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    static weftio::fuzz::tally tally;
    tally.side().execute({data, bytes});
    return 0;
}
