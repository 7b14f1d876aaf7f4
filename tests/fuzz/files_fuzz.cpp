// Any contents of a file queue's ring and its doorbell record, executed by the engine's unit of files.
//
// The input is a row of operations: entries that are right but for one field, blocks of any bits, records of any value,
// turns, a way that ends ios in any order and with any result, files and keys that end, resets. What the NIC reads lies
// between guard pages and cannot be written by it, and so does memory that entries may not write.
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <deque>

#include "core/undying.hpp"
#include "expect.hpp"
#include "guarded.hpp"
#include "keys/key_table.hpp"
#include "nic/soft/files/file_unit.hpp"
#include "nic/soft/files/file_work.hpp"
#include "raw_entry.hpp"
#include "storage/open_file.hpp"
#include "unit/device/slow_copies.hpp"

namespace weftio::fuzz {

namespace {

namespace soft = nic::soft;

constexpr std::uint32_t depth = 64, words_per_block = 16;
constexpr std::size_t region_pages = 100;        ///< more than three parts
constexpr std::size_t lasting = 2, unmapped = 3; ///< the region of good entries; the region that the CPU does not see
constexpr std::uint32_t lasting_file = 1, ending_file = 2, direct_file = 3;
constexpr std::uint32_t files_align = 512;

/// Takes ios, checks them, and ends them as the input says.
class fake_way final : public storage::way {
 public:
    bool submit(const storage::io& io) override
    {
        if (begun.size() >= room)
            return false;
        expect(io.fd >= 0, "an io has a descriptor");
        expect((io.bytes == 0) == (io.what == storage::io::kind::sync), "a read or a write has bytes");
        begun.push_back(io);
        return true;
    }
    void flush() override {}
    std::size_t reap(std::span<storage::io_done> done) override
    {
        const std::size_t count = std::min(done.size(), ended_.size());
        std::copy_n(ended_.begin(), count, done.begin());
        ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }
    std::size_t in_flight() const noexcept override { return begun.size() + ended_.size(); }
    void wait(std::chrono::nanoseconds) override {}
    void cancel(std::uint64_t) override {}
    file_way name() const noexcept override { return file_way::posix; }

    void end(std::size_t which, std::int64_t result)
    {
        const storage::io& io = begun[which];
        if (result > 0)
            touch(io, static_cast<std::size_t>(result));
        ended_.push_back({io.tag, result});
        begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(which));
    }
    void end_all()
    {
        while (!begun.empty())
            end(0, begun[0].bytes);
    }

    std::vector<storage::io> begun;
    std::size_t room = 64;

 private:
    /// What a system call does with the memory: a wrong access is one of the guard pages.
    void touch(const storage::io& io, std::size_t count)
    {
        for (std::byte* each : {io.address, io.address + count - 1})
            if (io.what == storage::io::kind::read)
                *each = std::byte{0x5a};
            else
                read_ = read_ ^ *each;
    }

    std::deque<storage::io_done> ended_;
    volatile std::byte read_{};
};

/// Three files; one of them ends, and one was opened with O_DIRECT.
class fake_files final : public soft::file_keys {
 public:
    bool find(std::uint32_t key, soft::held_file& out) const noexcept override
    {
        if (key < lasting_file || key > direct_file || (key == ending_file && ended))
            return false;
        out = {.descriptor = descriptor_, .use = use};
        if (key == direct_file) {
            out.direct = direct_.get();
            out.offset_align = out.memory_align = files_align;
        }
        return true;
    }
    storage::measured begin(std::uint64_t bytes, const devices::device_backend*) const noexcept override
    {
        return {1, bytes};
    }
    void count(storage::io::kind, const file_result& result, const storage::measured& how) const noexcept override
    {
        expect(result.bytes >= 0 && static_cast<std::uint64_t>(result.bytes) <= how.bytes,
               "no more than was asked for");
        ++counted;
    }
    bool strict() const noexcept override { return refuses_falls; }

    bool ended = false, refuses_falls = false;
    const std::shared_ptr<const void> use = std::make_shared<const char>();
    mutable std::uint64_t counted = 0;

 private:
    const int descriptor_ = memfd_create("file", MFD_CLOEXEC);
    const std::shared_ptr<storage::open_file> direct_ = storage::open_file::open(
        std::make_shared<storage::context>(file_engine_options{.only = file_way::posix}), descriptor_);
};

/// A file queue in guarded memory, from the kernel's side.
class guarded_ring {
 public:
    guarded_ring() { again(); }

    soft::tx_ring ring(std::uint32_t number) const
    {
        return {.entries = {at<std::uint32_t>(entries_.nic()), depth, number},
                .dbrec = at<std::uint32_t>(words_.nic()),
                .completion = at<weftio_cqe>(completion_.kernel())};
    }
    std::uint64_t* results() const { return at<std::uint64_t>(results_.kernel() + results_.bytes()) - depth; }
    const weftio_cqe& completion() const { return *at<weftio_cqe>(completion_.kernel()); }
    std::uint32_t next() const noexcept { return next_; }
    void put(const std::uint32_t* words, std::uint32_t count)
    {
        auto* slots = at<std::uint32_t>(entries_.kernel());
        for (std::uint32_t word = 0; word < count; ++word)
            slots[(next_ * words_per_block + word) & (depth * words_per_block - 1)] = words[word];
        next_ += (count + words_per_block - 1) / words_per_block;
    }
    void claim(std::uint32_t position)
    {
        weftio_store_release_sys_u32(at<std::uint32_t>(words_.kernel()), weftio_swap32(position & 0xffff));
    }
    void again()
    {
        next_ = 0;
        claim(0);
        at<weftio_cqe>(completion_.kernel())->publication =
            weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    }

 private:
    template <class T>
    static T* at(std::byte* address)
    {
        return reinterpret_cast<T*>(address);
    }

    const guarded entries_{depth * words_per_block * sizeof(std::uint32_t)}, words_{guarded::page},
        completion_{guarded::page}, results_{guarded::page};
    std::uint32_t next_ = 0;
};

bool conserves(const soft::file_work& queue)
{
    return queue.enqueued.value() == queue.read.value() + queue.written.value() + queue.synced.value() +
                                         queue.skipped.value() + queue.failed_entries.value() + queue.flushed.value();
}

/// A unit, regions, files, a queue that gets the input and a neighbor that gets one good entry a time.
class file_side {
 public:
    file_side()
    {
        auto memory = std::make_shared<devices::memory_block>(nullptr);
        memory->at.cpu = slots_.data();
        memory->bytes = slots_.size();
        unit_.streams().add(device_, std::make_unique<soft::staging_stream>(copies_, std::move(memory)));
        for (std::size_t which = 0; which < regions_.size(); ++which)
            add_key(which);
    }
    void execute(numbers in);
    std::uint64_t executed() const { return work_->enqueued.value() - work_->flushed.value(); }

 private:
    soft::file_work* add(guarded_ring& to, std::uint32_t number)
    {
        auto made = std::make_unique<soft::file_work>(to.ring(number), to.results(), keys_, files_, unit_);
        soft::file_work* const result = made.get();
        unit_.queues().reserve(number);
        unit_.queues().put(number, std::move(made));
        return result;
    }
    void add_key(std::size_t which)
    {
        key_[which] = table_.add(regions_[which]);
        keys_.grant(key_[which], false);
    }
    named_region region_at(std::size_t which) const
    {
        return {.key = key_[which], .base = regions_[which].base, .bytes = regions_[which].bytes};
    }
    void operate(numbers& in);
    void append(raw_entry& entry, std::uint32_t opcode, numbers& in);
    void transfer(numbers& in);
    void raw_blocks(numbers& in);
    void end_one(numbers& in);
    void end_key(std::size_t which);
    void append_good(guarded_ring& to);
    void reset(bool idle);
    unsigned turn(std::uint32_t most = 64);
    void run_to_idle();
    bool has_room(std::uint32_t blocks) const;

    std::vector<std::byte> slots_ =
        std::vector<std::byte>(std::size_t{soft::staging_stream::slots} * soft::staging_stream::slot_bytes);
    keys::key_table& table_ = core::undying<keys::key_table>();
    keys::nic_keys keys_{"fuzzed files"};
    /// Stands for a device; nobody looks at it.
    const std::shared_ptr<devices::device_backend> device_{std::shared_ptr<void>(),
                                                           reinterpret_cast<devices::device_backend*>(this)};
    const std::shared_ptr<test::slow_copies> copies_ = std::make_shared<test::slow_copies>();
    const guarded long_{region_pages * guarded::page}, short_{guarded::page}, lasting_{guarded::page},
        unmapped_{region_pages * guarded::page};
    static constexpr std::uint64_t unmapped_base = 0x9000; ///< entries name it by no address of the device's
    const std::array<keys::key_entry, 4> regions_{
        keys::key_entry{.cpu = long_.kernel(), .base = 0x7000'0000'1000, .bytes = long_.bytes()},
        keys::key_entry{.cpu = short_.nic() + short_.bytes() - 100, .base = 0, .bytes = 100, .rights = access::none},
        keys::key_entry{.cpu = lasting_.kernel(), .base = 1 << 20, .bytes = lasting_.bytes()},
        keys::key_entry{.device = device_.get(),
                        .base = unmapped_base,
                        .to_device = reinterpret_cast<std::uint64_t>(unmapped_.kernel()) - unmapped_base,
                        .bytes = unmapped_.bytes()}};
    std::array<std::uint32_t, 4> key_{};
    fake_files files_;
    fake_way* const way_ = new fake_way;
    soft::file_unit unit_{std::unique_ptr<storage::way>(way_)};
    guarded_ring ring_, neighbors_ring_;
    soft::file_work *const work_ = add(ring_, 1), *const neighbor_ = add(neighbors_ring_, 2);
    bool slow_ = false; ///< copies complete only when the input says so
    std::uint64_t failures_reported_ = 0;
};

unsigned file_side::turn(std::uint32_t most)
{
    if (!slow_)
        copies_->complete_all();
    const unsigned moved = unit_.turn({.entries = most});
    for (soft::send_event event; work_->events().get(event);)
        if (event.reason != refusal::none) {
            expect(std::strcmp(explain(event.reason), "unknown reason") != 0, "a failure has words");
            ++failures_reported_;
        }
    return moved;
}

bool file_side::has_room(std::uint32_t blocks) const
{
    const auto completed = static_cast<std::uint16_t>(weftio_swap32(ring_.completion().publication) >> 16);
    return static_cast<std::uint16_t>(ring_.next() - 1 - completed) + blocks <= depth;
}

void file_side::append(raw_entry& entry, std::uint32_t opcode, numbers& in)
{
    if (!has_room(entry.blocks()))
        return;
    const std::uint8_t flags = in.byte();
    entry.control(opcode, ring_.next(), 1, flags & 1 ? WEFTIO_CE_ALWAYS_AND_EVENT : WEFTIO_CE_ALWAYS);
    entry.words[2] |= std::uint32_t{flags & 0xe0u} << 24; // fences
    entry.mutate(in);
    ring_.put(entry.words.data(), entry.segments * 4);
}

/// A read, a write or a sync; its range ends with the region when bit 1 of its kind says so.
void file_side::transfer(numbers& in)
{
    constexpr std::array<std::uint64_t, 4> offsets{0, 4096, ~std::uint64_t{0}, (std::uint64_t{1} << 63) - 4096};
    raw_entry entry;
    const std::uint8_t kind = in.byte();
    const named_region region = region_at(kind >= 0xc0 ? unmapped : kind >> 2 & 1);
    const std::uint64_t offset = kind & 0x20 ? offsets[in.byte() % 4] : in.half();
    entry.word(1, 0) = weftio_swap32(static_cast<std::uint32_t>(offset >> 32));
    entry.word(1, 1) = weftio_swap32(static_cast<std::uint32_t>(offset));
    entry.word(1, 2) = weftio_swap32(1 + in.byte() % 3);
    entry.segments = 2;
    if ((kind & 0x18) == 0x18)
        return append(entry, WEFTIO_OPCODE_FILE_SYNC, in);
    const std::uint64_t wanted = kind & 1 ? in.half() % 5000 : in.word() % (region.bytes + 1);
    const std::uint64_t count = std::min(wanted, region.bytes), rest = region.bytes - count;
    entry.pointer(static_cast<std::uint32_t>(count), region.key,
                  region.base + (kind & 2 ? rest : in.word() % (rest + 1)));
    append(entry, kind & 8 ? WEFTIO_OPCODE_RDMA_WRITE : WEFTIO_OPCODE_RDMA_READ, in);
}

void file_side::raw_blocks(numbers& in)
{
    std::array<std::uint32_t, 2 * words_per_block> words{};
    const std::uint32_t blocks = 1 + (in.byte() & 1);
    for (std::uint32_t& word : words)
        word = in.word();
    if (has_room(blocks))
        ring_.put(words.data(), blocks * words_per_block);
}

/// Half of all ios do what they were asked for, and so do those of the neighbor.
void file_side::end_one(numbers& in)
{
    if (way_->begun.empty())
        return;
    const std::size_t which = in.byte() % way_->begun.size();
    const std::uint32_t bytes = way_->begun[which].bytes;
    if (way_->begun[which].address == lasting_.kernel())
        return way_->end(which, bytes);
    switch (const std::uint8_t how = in.byte(); how & 7) {
        case 0: return way_->end(which, bytes == 0 ? 0 : in.word() % bytes);
        case 1: return way_->end(which, 0);
        case 2: return way_->end(which, -static_cast<std::int64_t>(1 + how / 8));
        case 3: return way_->end(which, how & 8 ? -EINTR : -EAGAIN);
        default: return way_->end(which, bytes);
    }
}

/// A region goes while entries may name it, and comes back with another key.
void file_side::end_key(std::size_t which)
{
    table_.withdraw(key_[which]);
    keys_.forget(key_[which]);
    for (int i = 0; unit_.uses(key_[which]); ++i) {
        expect(i < 1000, "what is under way in memory ends");
        way_->room = 64; // a way that never has room is none
        copies_->complete_all();
        way_->end_all();
        unit_.collect();
        unit_.streams().end_batches();
    }
    table_.release(key_[which]);
    add_key(which);
}

void file_side::operate(numbers& in)
{
    const std::uint8_t operation = in.byte();
    switch (operation & 15) {
        case 0: return raw_blocks(in);
        case 1: return ring_.claim(in.half());
        case 2: return ring_.claim(ring_.next());
        case 3: {
            raw_entry entry;
            entry.segments = 1 + (operation >> 4) % 9;
            return append(entry, WEFTIO_OPCODE_NOP, in);
        }
        case 4:
            way_->room = operation >> 4 == 15 ? 64 : operation >> 4;
            slow_ = in.byte() & 1;
            return;
        case 5: return copies_->batches_under_way() ? copies_->complete_one() : void();
        case 6: return end_key(operation & 0x10 ? unmapped : operation >> 5 & 1);
        case 7: files_.ended = operation & 0x10; return;
        case 8: return reset(operation & 0x10);
        case 9:
        case 10:
            ring_.claim(ring_.next());
            turn(operation & 0x10 ? operation >> 5 : 64);
            return;
        case 11:
        case 12: return end_one(in);
        default: return transfer(in);
    }
}

/// The way and the copies end everything; then nothing may be left.
void file_side::run_to_idle()
{
    way_->room = 64;
    slow_ = false;
    for (int idle = 0, i = 0; idle < 3; ++i) {
        expect(i < 10000, "queues come to their end");
        way_->end_all();
        idle = turn() == 0 && way_->begun.empty() && !copies_->batches_under_way() ? idle + 1 : 0;
    }
    expect(work_->idle(), "all that was submitted has ended");
    expect(conserves(*work_), "enqueued = read + written + synced + skipped + failed + flushed, once idle");
    expect(files_.use.use_count() == 1, "nothing of an idle queue holds a file");
    for (const std::uint32_t key : key_)
        expect(!unit_.uses(key), "nothing of an idle queue uses memory");
    for (std::uint32_t slot = 0; slot < depth; ++slot)
        expect(static_cast<std::int64_t>(ring_.results()[slot]) >= -4095 && ring_.results()[slot] + 4096 < (1ull << 32),
               "a result is bytes, or an errno");
}

/// 4 KiB from the lasting file to the lasting region.
void file_side::append_good(guarded_ring& to)
{
    raw_entry entry;
    entry.word(1, 2) = weftio_swap32(lasting_file);
    entry.segments = 2;
    const named_region region = region_at(lasting);
    entry.pointer(4096, region.key, region.base);
    entry.control(WEFTIO_OPCODE_RDMA_READ, to.next(), &to == &ring_ ? 1 : 2, WEFTIO_CE_ALWAYS);
    to.put(entry.words.data(), entry.segments * 4);
    to.claim(to.next());
}

/// A queue in whatever state ends, starts again, and reads. @param idle  what was under way has ended first
void file_side::reset(bool idle)
{
    files_.refuses_falls = false;
    work_->stop();
    if (idle)
        run_to_idle();
    ring_.again();
    unit_.queues().rouse(1);
    work_->restart(ring_.ring(1), ring_.results());
    std::fill_n(ring_.results(), depth, 0);
    const std::uint64_t read = work_->read.value();
    append_good(ring_);
    run_to_idle();
    expect(work_->read.value() == read + 1 && !work_->failed(), "a queue that has been reset reads");
    expect(ring_.results()[0] == 4096, "and says how much");
}

void file_side::execute(numbers in)
{
    files_.refuses_falls = in.byte() & 1;
    files_.ended = false;
    const std::uint64_t neighbors = neighbor_->read.value();
    append_good(neighbors_ring_);
    while (!in.empty())
        operate(in);
    run_to_idle();
    expect(neighbor_->read.value() == neighbors + 1 && !neighbor_->failed(), "the neighbor reads its bytes");
    reset(true);
    expect(failures_reported_ == work_->failed_entries.value(), "every failure is told");
}

/// Tells at the end what was executed. Entries that were flushed, which nobody reads, do not count.
class tally {
 public:
    ~tally()
    {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
        std::fprintf(stderr, "files: %llu executed, %.0f a second\n", static_cast<unsigned long long>(side_.executed()),
                     static_cast<double>(side_.executed()) / seconds.count());
    }
    file_side& side() noexcept { return side_; }

 private:
    file_side side_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    static weftio::fuzz::tally tally;
    tally.side().execute({data, bytes});
    return 0;
}
