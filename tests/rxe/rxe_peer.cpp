// rxe_peer PORT ADDRESS [-c SERVER] CASE...: the other end of rxe_cases, which runs on Linux's own RoCE device.
//
// With -c it is the requester, without it the responder. Every case has a new queue pair on each side; a TCP connection
// (port 18600) carries the data that both must know. The program prints a line for each error; its exit status is 1 if
// there was one. For rxe.sh.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "patience.hpp"
#include "rxe/channel.hpp"
#include "software_nic.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using test::channel;
using namespace std::chrono_literals;

constexpr std::size_t memory_bytes = 131072; // the same as in rxe_cases
constexpr std::uint32_t first_psn = 0xfffffe;

/// The data that both ends exchange for a case; the same struct as in rxe_cases.
struct meeting {
    char name[16];
    std::array<std::uint8_t, 16> gid;
    std::uint32_t queue, psn, key, other_key;
    std::uint64_t address;
};

/// A GID is an IPv6 address, or an IPv4 address as ::ffff:a.b.c.d.
std::array<std::uint8_t, 16> gid_of(const std::string& address)
{
    std::array<std::uint8_t, 16> gid{};
    if (inet_pton(AF_INET6, (address.find(':') == address.npos ? "::ffff:" + address : address).c_str(), gid.data()) !=
        1)
        throw std::runtime_error(address + " is no address");
    return gid;
}
std::string address_of(const std::array<std::uint8_t, 16>& gid)
{
    constexpr std::array<std::uint8_t, 12> ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool four = std::equal(ipv4.begin(), ipv4.end(), gid.begin());
    inet_ntop(four ? AF_INET : AF_INET6, gid.data() + (four ? ipv4.size() : 0), text.data(), text.size());
    return text.data();
}

class peer {
 public:
    peer(const std::string& spec, const char* address, const char* server)
        : asks_(server != nullptr), port_(port::open(spec)),
          memory_(cpu_.allocate(memory_bytes, memory_kind::cpu_device)),
          region_(port_, memory_,
                  {.rights = access::local_write | access::remote_read | access::remote_write | access::remote_atomic |
                             access::bind}),
          read_only_(port_, memory_, {.rights = access::local_write | access::remote_read}),
          at_(port_, {.address = address}), tcp_(server)
    {
        for (std::size_t at = 0; at < memory_bytes; ++at)
            bytes()[at] = ours(at);
    }

    /// @return false: no such case
    bool run(const std::string& name)
    {
        const auto found = cases().find(name);
        if (found == cases().end())
            return false;
        fmt::print("{}\n", name);
        open(name, found->second.path_mtu);
        (this->*(asks_ ? found->second.ask : found->second.answer))();
        std::this_thread::sleep_for(100ms);
        tcp_.meet();
        report_failures();
        queue_.reset();
        return true;
    }
    bool good() const { return good_; }

 private:
    struct one_case {
        void (peer::*ask)();
        void (peer::*answer)();
        std::uint32_t path_mtu = 1024; ///< path MTU of the responder
    };
    static const std::map<std::string, one_case>& cases();

    std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(memory_.cpu_address()); }
    static std::uint8_t of_asker(std::size_t at) { return static_cast<std::uint8_t>('a' + at % 26); }
    static std::uint8_t of_answerer(std::size_t at) { return static_cast<std::uint8_t>('0' + at % 10); }
    std::uint8_t ours(std::size_t at) const { return asks_ ? of_asker(at) : of_answerer(at); }

    void expect(bool holds, const std::string& what)
    {
        if (holds)
            return;
        good_ = false;
        fmt::print("  NOT SO: {}\n", what);
    }

    void open(const std::string& name, std::uint32_t path_mtu)
    {
        constexpr std::uint8_t reads = 4, rnr_timer = 18,
                               timeout = 18; // the guest may stall for 200 ms
        queue_.emplace(at_, cpu_,
                       rdma_queue_options{.entries = 64,
                                          .receive_entries = 64,
                                          .path_mtu = asks_ ? 1024 : path_mtu,
                                          .most_reads = reads,
                                          .timeout = timeout,
                                          .min_rnr_timer = rnr_timer,
                                          .first_psn = first_psn});
        progress_.attach(*queue_, {.on_error = [this](const send_failure& failure) { failures_.push_back(failure); }});
        const rdma_peer here = queue_->address().peer();
        meeting mine{{},
                     gid_of(here.address),
                     here.queue,
                     here.first_psn,
                     remote_region::of(region_).rkey,
                     remote_region::of(read_only_).rkey,
                     remote_region::of(region_).address};
        std::copy_n(name.begin(), std::min(name.size(), sizeof mine.name - 1), mine.name);
        tcp_.put(mine);
        other_ = tcp_.get<meeting>();
        expect(std::strcmp(mine.name, other_.name) == 0, fmt::format("the other end is at case {}", other_.name));
        queue_->connect(rdma_address::of(
            {.address = address_of(other_.gid), .queue = other_.queue, .first_psn = other_.psn, .most_reads = reads}));
        remote_ = remote(other_.key);
        tcp_.meet();
    }

    weftio_dev_rdma* sends() const { return queue_->handle(); }
    weftio_dev_rdma_recv* receives_of() const { return queue_->receives().handle(); }
    weftio_dev_buf local() const { return region_.buffer(); }
    /// The memory that the other end has sent, and 4,096 bytes after it, which the other end refuses.
    weftio_dev_remote remote(std::uint32_t key) const
    {
        return remote_region{.address = other_.address, .bytes = memory_bytes + 4096, .rkey = key}.on_device();
    }

    /// Processes the events of the queue.
    void listen()
    {
        while (progress_.progress() != 0) {
        }
    }
    /// Commits, waits until all entries are done, and compares the syndrome of the failure with the expected one.
    void completes(const char* what, std::int32_t enqueued, std::uint8_t syndrome = 0)
    {
        expect(enqueued == WEFTIO_DEV_OK, fmt::format("{}: enqueued with status {}", what, enqueued));
        const std::int32_t status = weftio_dev_rdma_commit_wait(sends(), test::patience_ns);
        const std::int32_t wanted = syndrome == 0 ? WEFTIO_DEV_OK : WEFTIO_DEV_QUEUE_ERROR;
        expect(status == wanted, fmt::format("{}: status {} in place of {}", what, status, wanted));
        if (syndrome == 0)
            return;
        test::eventually([&] { return listen(), !failures_.empty(); });
        const unsigned reported = failures_.empty() ? 0u : failures_.back().syndrome;
        expect(reported == syndrome, fmt::format("{}: syndrome {:#04x} in place of {:#04x}", what, reported, syndrome));
    }
    void writes(const char* what, std::uint64_t to, std::uint64_t bytes)
    {
        completes(what, weftio_dev_rdma_write(sends(), remote_, to, local(), 0, bytes, WEFTIO_DEV_SEND_NONE));
    }
    /// A write that the other end refuses.
    void is_refused(const char* what, std::uint32_t key, std::uint64_t bytes, std::uint8_t syndrome)
    {
        completes(what, weftio_dev_rdma_write(sends(), remote(key), 0, local(), 0, bytes, WEFTIO_DEV_SEND_NONE),
                  syndrome);
    }
    std::int32_t read(std::uint64_t from, std::uint64_t bytes, std::uint64_t to = 65536)
    {
        return weftio_dev_rdma_read(sends(), remote_, from, local(), to, bytes, WEFTIO_DEV_SEND_NONE);
    }
    /// Reads `count` bytes of the other end to offset 65536, and compares each with the expected byte.
    template <class Wanted>
    void reads(std::uint32_t count, std::uint64_t from, Wanted&& wanted)
    {
        std::fill_n(bytes() + 65536, count, std::uint8_t{0});
        completes("READ", read(from, count));
        for (std::uint32_t at = 0; at < count; ++at)
            if (bytes()[65536 + at] != wanted(from + at))
                return expect(false, fmt::format("byte {} of {} read from {} is {:#04x} in place of {:#04x}", at, count,
                                                 from, bytes()[65536 + at], wanted(from + at)));
    }

    void send()
    {
        tcp_.meet();
        for (const std::uint32_t count : {0u, 13u, 1024u, 3001u})
            completes("SEND", weftio_dev_rdma_send(sends(), local(), 0, count, WEFTIO_DEV_SEND_NONE));
        completes("SEND with immediate",
                  weftio_dev_rdma_send_imm(sends(), local(), 0, 5, 0xcafe0001, WEFTIO_DEV_SEND_NONE));
    }
    void write()
    {
        const auto with_immediate = [&](std::uint64_t bytes, std::uint32_t immediate) {
            completes("WRITE with immediate", weftio_dev_rdma_write_imm(sends(), remote_, 0, local(), 0, bytes,
                                                                        immediate, WEFTIO_DEV_SEND_NONE));
        };
        tcp_.meet();
        writes("WRITE 0", 0, 0);
        writes("WRITE 7", 3, 7);
        reads(20, 0, [](std::size_t at) { return at >= 3 && at < 10 ? of_asker(at - 3) : of_answerer(at); });
        writes("WRITE 3001", 5000, 3001);
        with_immediate(16, 0xcafe0002);
        with_immediate(2050, 0xcafe0003);
        reads(9000, 0, [](std::size_t at) {
            return at < 2050 ? of_asker(at) : at >= 5000 && at < 8001 ? of_asker(at - 5000) : of_answerer(at);
        });
    }
    void read()
    {
        completes("READ 0", read(0, 0));
        reads(7, 100001, of_answerer);
        reads(3001, 100000, of_answerer);
        for (int each = 0; each < 6; ++each) // more than the four READs that may be in flight
            expect(read(100000, 1500, 80000) == WEFTIO_DEV_OK, "a READ is enqueued");
        writes("six READs, then WRITE 8", 4096, 8);
        reads(8, 4096, [](std::size_t at) { return of_asker(at - 4096); });
    }
    void atomics()
    {
        constexpr std::uint64_t swapped = 0x1122334455667788, word = 64, here = 90000;
        const auto answers = [&](const char* what, std::int32_t enqueued, std::uint64_t value) {
            std::uint64_t before = 0;
            completes(what, enqueued);
            std::memcpy(&before, bytes() + here, 8);
            expect(before == value, fmt::format("{} gives {:#x} in place of {:#x}", what, before, value));
        };
        const auto swap = [&] {
            return weftio_dev_rdma_compare_swap(sends(), remote_, word, 5, swapped, local(), here,
                                                WEFTIO_DEV_SEND_NONE);
        };
        tcp_.meet();
        answers("FETCH_ADD 5",
                weftio_dev_rdma_fetch_add(sends(), remote_, word, 5, local(), here, WEFTIO_DEV_SEND_NONE), 0);
        answers("CMP_SWAP, equal", swap(), 5);
        answers("CMP_SWAP, unequal", swap(), swapped);
    }
    void window()
    {
        const auto key = tcp_.get<std::uint32_t>();
        const weftio_dev_remote through =
            remote_region{.address = other_.address + 1024, .bytes = 1024, .rkey = key}.on_device();
        const auto write = [&] { return weftio_dev_rdma_write(sends(), through, 0, local(), 0, 100, 0); };
        completes("WRITE through the window", write());
        completes("READ through the window", weftio_dev_rdma_read(sends(), through, 0, local(), 80000, 100, 0));
        expect(std::equal(bytes(), bytes() + 100, bytes() + 80000), "the window has what was written");
        completes("SEND with invalidate", weftio_dev_rdma_send_inval(sends(), local(), 0, 4, key, 0));
        completes("WRITE through the dead window", write(), WEFTIO_SYNDROME_REMOTE_ACCESS);
        tcp_.meet();
    }
    void window_1()
    {
        const auto key = tcp_.get<std::uint32_t>();
        const weftio_dev_remote through =
            remote_region{.address = other_.address + 1024, .bytes = 1024, .rkey = key}.on_device();
        const auto write = [&] { return weftio_dev_rdma_write(sends(), through, 0, local(), 0, 100, 0); };
        completes("WRITE through the window of type 1", write());
        tcp_.meet();
        tcp_.meet();
        completes("WRITE through the unbound window", write(), WEFTIO_SYNDROME_REMOTE_ACCESS);
        tcp_.meet();
    }
    /// Binds a window over bytes 1024 to 2047, and tells the other end its key.
    std::uint32_t lend(const memory_window& window)
    {
        const std::uint32_t key = weftio_dev_rdma_next_rkey(window.rkey());
        completes("bind", weftio_dev_rdma_enqueue(sends(),
                                                  weftio_dev_rdma_bind_request(
                                                      window.rkey(), key,
                                                      static_cast<std::uint32_t>(window.standing().type), local(), 1024,
                                                      1024, WEFTIO_DEV_RDMA_REMOTE_WRITE | WEFTIO_DEV_RDMA_REMOTE_READ),
                                                  WEFTIO_DEV_SEND_NONE));
        tcp_.put(key);
        return key;
    }
    /// The other end returns it by SEND with invalidate.
    void give_window()
    {
        const memory_window window(at_, window_type::type_2);
        post_receive();
        lend(window);
        receives({.count = 4, .immediate = window.rkey()});
        are_written(1024, 100);
        expect(!window.standing().bound, "the other end has returned the window");
        tcp_.meet();
    }
    void give_window_1()
    {
        const memory_window window(at_, window_type::type_1);
        const std::uint32_t key = lend(window);
        tcp_.meet();
        are_written(1024, 100);
        completes("unbind",
                  weftio_dev_rdma_enqueue(sends(), weftio_dev_rdma_unbind_request(key), WEFTIO_DEV_SEND_NONE));
        tcp_.meet();
        tcp_.meet();
    }
    void big()
    {
        const weftio_dev_rdma_request two_pieces = weftio_dev_rdma_add_local(
            weftio_dev_rdma_add_local(
                weftio_dev_rdma_add_remote(weftio_dev_rdma_begin(WEFTIO_OPCODE_RDMA_WRITE, 0), remote_, 0, 100000), 2,
                local(), 0, 65000),
            3, local(), 0, 35000);
        completes("WRITE 100000", weftio_dev_rdma_enqueue(sends(), two_pieces, WEFTIO_DEV_SEND_NONE));
        reads(60000, 0, of_asker);
        reads(40000, 60000, [](std::size_t at) { return of_asker(at < 65000 ? at : at - 65000); });
    }
    void key() { is_refused("WRITE, wrong key", other_.key ^ 0x55, 8, WEFTIO_SYNDROME_REMOTE_ACCESS); }
    void bounds()
    {
        expect(weftio_dev_rdma_write(sends(), remote_, memory_bytes - 2000, local(), 0, 3000, 0) == WEFTIO_DEV_OK,
               "a WRITE past the end is enqueued");
        completes("WRITE behind one past the end", weftio_dev_rdma_write(sends(), remote_, 0, local(), 0, 8, 0),
                  WEFTIO_SYNDROME_REMOTE_ACCESS);
        expect(queue_->counters().flushed == 1, "the one behind is flushed");
    }
    void denied() { is_refused("WRITE to a read-only region", other_.other_key, 8, WEFTIO_SYNDROME_REMOTE_ACCESS); }
    void send_one() { completes("SEND 8", weftio_dev_rdma_send(sends(), local(), 0, 8, 0)); }
    void send_long()
    {
        tcp_.meet();
        // Linux sends NAK 0x63 here; the standard specifies 0x61.
        completes("SEND 3000 into 1500", weftio_dev_rdma_send(sends(), local(), 0, 3000, 0),
                  WEFTIO_SYNDROME_REMOTE_OPERATION);
    }
    void mtu() { is_refused("WRITE 1024 to a responder of MTU 256", other_.key, 1024, WEFTIO_SYNDROME_REMOTE_INVALID); }

    struct wanted_receive {
        std::uint32_t count;
        std::optional<std::uint32_t> immediate;
        bool written = false; ///< by a WRITE: the data is not in the memory of the receive entry
        std::uint8_t syndrome = 0;
    };
    /// Waits for one receive and compares it with the expected one.
    void receives(const wanted_receive& wanted)
    {
        weftio_u32 count = 0, first = 0;
        weftio_dev_rdma_message message{};
        const std::int32_t status = weftio_dev_rdma_recv_wait(receives_of(), 1, test::patience_ns, &count, &first);
        if (count != 1)
            return expect(false, fmt::format("no receive of {} bytes: status {}", wanted.count, status));
        weftio_dev_rdma_recv_message(receives_of(), first, &message);
        expect(message.syndrome == wanted.syndrome,
               fmt::format("a receive has syndrome {:#04x} in place of {:#04x}", message.syndrome, wanted.syndrome));
        if (wanted.syndrome != 0)
            return;
        expect(message.bytes == wanted.count,
               fmt::format("a receive has {} bytes in place of {}", message.bytes, wanted.count));
        expect((message.kind == WEFTIO_DEV_RDMA_WRITE_IMM) == wanted.written,
               fmt::format("its kind is {}", message.kind));
        if (wanted.immediate)
            expect(message.immediate == *wanted.immediate,
                   fmt::format("an immediate value is {:#x}", message.immediate));
        if (!wanted.written)
            are_written(0, wanted.count);
    }
    void post_receive(std::uint64_t count = memory_bytes)
    {
        expect(weftio_dev_rdma_recv_post(receives_of(), local(), 0, count) == WEFTIO_DEV_OK &&
                   weftio_dev_rdma_recv_commit(receives_of()) == WEFTIO_DEV_OK,
               "a receive is posted");
    }
    void are_written(std::size_t at, std::size_t count)
    {
        for (std::size_t each = 0; each < count; ++each)
            if (bytes()[at + each] != of_asker(each))
                return expect(
                    false, fmt::format("byte {} of {} written at {} is {:#04x}", each, count, at, bytes()[at + each]));
    }

    void take_sends()
    {
        for (int each = 0; each < 5; ++each)
            post_receive();
        tcp_.meet();
        for (const std::uint32_t count : {0u, 13u, 1024u, 3001u})
            receives({.count = count, .immediate = std::nullopt});
        receives({.count = 5, .immediate = 0xcafe0001});
    }
    void take_writes()
    {
        for (int each = 0; each < 2; ++each)
            post_receive();
        tcp_.meet();
        receives({.count = 16, .immediate = 0xcafe0002, .written = true});
        receives({.count = 2050, .immediate = 0xcafe0003, .written = true});
        are_written(0, 2050);
    }
    void take_one() { are_written(0, 0); }
    void take_big()
    {
        test::eventually([&] { return bytes()[99999] == of_asker(99999); });
        are_written(0, 100000);
    }
    void take_atomics()
    {
        std::memset(bytes() + 64, 0, 8);
        tcp_.meet();
    }
    void take_late()
    {
        std::this_thread::sleep_for(150ms);
        post_receive();
        receives({.count = 8, .immediate = std::nullopt});
    }
    void take_short()
    {
        post_receive(1500);
        tcp_.meet();
        receives({.count = 0, .immediate = std::nullopt, .syndrome = WEFTIO_SYNDROME_LOCAL_LENGTH});
    }

    /// Prints the failures that were reported to the host, and checks that the counters match each other.
    void report_failures()
    {
        listen();
        for (const send_failure& failure : failures_)
            fmt::print("  {}\n", failure.text);
        failures_.clear();
        const rdma_counters count = queue_->counters();
        expect(count.requests == count.executed + count.duplicate_request + count.out_of_sequence + count.not_ready +
                                     count.refused + count.ignored,
               "every request is counted once");
        fmt::print("  sent {} packets, {} again; {} requests, {} executed, {} duplicate, {} out of sequence\n",
                   count.packets, count.repeated, count.requests, count.executed, count.duplicate_request,
                   count.out_of_sequence);
        const nic::soft::rdma_unit& unit = software_nic(port_).rdma();
        expect(unit.arrivals().rx_icrc_encapsulated.value() == 0 && unit.arrivals().malformed.value() == 0,
               "every packet is whole");
    }

    const bool asks_;
    bool good_ = true;
    port port_;
    device cpu_ = device::open("cpu");
    memory memory_;
    memory_region region_, read_only_;
    const rdma_device at_; ///< opened before the program waits for the other end
    channel tcp_;
    progress_engine progress_;
    std::vector<send_failure> failures_;
    std::optional<rdma_queue> queue_;
    weftio_dev_remote remote_{};
    meeting other_{};
};

const std::map<std::string, peer::one_case>& peer::cases()
{
    static const std::map<std::string, one_case> all{
        {"send", {&peer::send, &peer::take_sends}},      {"write", {&peer::write, &peer::take_writes}},
        {"read", {&peer::read, &peer::take_one}},        {"atomic", {&peer::atomics, &peer::take_atomics}},
        {"window", {&peer::window, &peer::give_window}}, {"window1", {&peer::window_1, &peer::give_window_1}},
        {"big", {&peer::big, &peer::take_big}},          {"key", {&peer::key, &peer::take_one}},
        {"bounds", {&peer::bounds, &peer::take_one}},    {"denied", {&peer::denied, &peer::take_one}},
        {"rnr", {&peer::send_one, &peer::take_late}},    {"long", {&peer::send_long, &peer::take_short}},
        {"mtu", {&peer::mtu, &peer::take_one, 256}},
    };
    return all;
}

} // namespace

int main(int count, char** words)
{
    if (count < 4)
        return 2;
    const bool asks = std::strcmp(words[3], "-c") == 0 && count > 5;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        peer here(words[1], words[2], asks ? words[4] : nullptr);
        for (int at = asks ? 5 : 3; at < count; ++at)
            if (!here.run(words[at]))
                throw std::runtime_error(fmt::format("no case {}", words[at]));
        return here.good() ? 0 : 1;
    } catch (const std::exception& reason) {
        fmt::print("rxe_peer: {}\n", reason.what());
        return 1;
    }
}
