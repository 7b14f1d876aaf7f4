// The table of all rules of memory windows, on every NIC: who binds, accesses, invalidates and closes what, by types,
// states, rights, domains and queues.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "nic_case.hpp"
#include "unit/device/fixture.hpp"
#include "unit/rdma/posted_ends.hpp"
#include "unit/rdma/window_entry.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

constexpr std::uint8_t good = 0, refused_bind = WEFTIO_SYNDROME_WINDOW_BIND,
                       refused_access = WEFTIO_SYNDROME_REMOTE_ACCESS;
constexpr std::size_t region_bytes = 16384, lent_at = 4096, window_bytes = 1024;
constexpr access write_right = access::remote_write, read_right = access::remote_read,
                 atomic_right = access::remote_atomic;
constexpr window_type type_1 = window_type::type_1, type_2 = window_type::type_2;

/// The queue pairs that lend, each with a peer that accesses.
enum who : std::size_t { ours, others, strangers, of_2a, of_hardware, everybody };
constexpr std::array<const char*, everybody> names{"ours", "others", "strangers", "of type 2A", "of the hardware"};

class EveryNicWindows : public testing::TestWithParam<nic_case> {
 protected:
    struct couple {
        std::optional<posted_pair> lender, peer;
    };

    EveryNicWindows()
    {
        for (std::size_t each = 0; each != everybody; ++each) {
            make_lender(static_cast<who>(each));
            couples[each].peer.emplace(devices[0], cpu, sends, receives);
            connect(couples[each]);
        }
    }
    void make_lender(who each)
    {
        const rdma_device& at = devices[each == of_2a ? 2 : each == of_hardware ? 3 : 1];
        couples[each].lender.emplace(at, cpu, sends, receives,
                                     queue_pair_options{.domain = each == strangers ? elsewhere : protection_domain{}});
    }
    rdma_device device_at(const char* address, bool strict, bool is_2a) const
    {
        return {port_,
                {.address = address,
                 .application_turns = GetParam().mode == engine_mode::inline_worker,
                 .strict_windows = strict,
                 .windows_of_type_2a = is_2a}};
    }
    static void connect(couple& at)
    {
        (*at.lender)->connect((*at.peer)->address());
        (*at.peer)->connect((*at.lender)->address());
    }
    /// Behind a failure. Windows stay as they are.
    void begin_again(who each)
    {
        couples[each].lender->reset();
        couples[each].peer->reset();
        connect(couples[each]);
        std::vector<completion> all(64);
        sends.poll(all);
        receives.poll(all);
    }
    completion completion_of(completion_queue& queue)
    {
        std::array<completion, 1> one{};
        EXPECT_TRUE(eventually([&] {
            if (GetParam().mode == engine_mode::inline_worker)
                port_.turn();
            return queue.poll(one) == 1;
        }));
        return one[0];
    }
    /// Executes an entry, and makes all good behind a failure.
    completion run(who by, bool lends, std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t key = 0)
    {
        posted_pair& pair = lends ? *couples[by].lender : *couples[by].peer;
        const std::uint32_t block = pair.post(opcode, body, WEFTIO_CE_ALWAYS, key) % queue_pair_options{}.send_blocks;
        std::uint64_t bell = 0; // which a NIC may rely on
        std::memcpy(&bell, static_cast<const std::byte*>(pair->send_ring()) + std::size_t{block} * 64, sizeof bell);
        weftio_store_release_sys_u64(pair->doorbell(), bell);
        const completion result = completion_of(sends);
        if (result.syndrome != good)
            begin_again(by);
        return result;
    }
    window_entry bind_of(who by, window_type type, std::uint32_t next, access rights = write_right)
    {
        return {.next = next,
                .region = lent->lkey(),
                .address = lent->iova() + lent_at,
                .bytes = window_bytes,
                .rights = rights,
                .type = type,
                .queue = type == type_2 ? (*couples[by].lender)->number() : WEFTIO_MKEY_ANY_QUEUE};
    }
    completion bind(who by, std::uint32_t key, const window_entry& what)
    {
        return run(by, true, WEFTIO_OPCODE_UMR, bind_segments(what), key);
    }
    /// A window that is bound.
    memory_window bound(who by, window_type type, access rights = write_right)
    {
        memory_window made(devices[1], type, by == strangers ? elsewhere : protection_domain{});
        window_entry what = bind_of(by, type, made.rkey() + 1, rights);
        if (by == strangers)
            what.region = regions_elsewhere.lkey(), what.address = regions_elsewhere.iova() + lent_at;
        EXPECT_EQ(bind(by, made.rkey(), what).syndrome, good);
        EXPECT_TRUE(made.standing().bound);
        return made;
    }
    completion take_back(who by, std::uint32_t key)
    {
        return run(by, true, WEFTIO_OPCODE_UMR, invalidate_segments(key + 1), key);
    }
    completion unbind(who by, std::uint32_t key)
    {
        return run(by, true, WEFTIO_OPCODE_UMR, unbind_segments(key + 1), key);
    }
    /// An access by the peer of `by`. Checks that it has changed all that it may, and no other byte.
    std::uint8_t use(who by, std::uint32_t key, access right = write_right, std::int64_t offset = 0,
                     std::uint32_t bytes = 8, std::optional<std::uint64_t> address = {})
    {
        const segment to = remote(address.value_or(lent->iova() + lent_at + static_cast<std::uint64_t>(offset)), key);
        const segment from = pointer(bytes, own.lkey(), own.iova());
        std::vector<std::uint8_t> expected = copy_of(lent_memory);
        const bool atomic = right == atomic_right;
        const std::uint32_t opcode = atomic                ? WEFTIO_OPCODE_FETCH_ADD
                                     : right == read_right ? WEFTIO_OPCODE_RDMA_READ
                                                           : WEFTIO_OPCODE_RDMA_WRITE;
        std::vector<segment> body{to};
        if (bytes != 0)
            body.push_back(from);
        if (atomic)
            body.insert(body.begin() + 1, test::atomic(0x0101010101010101));
        std::memset(own_memory.cpu_address(), ++uses, own_memory.bytes()); // no two WRITEs have the same bytes
        const std::uint8_t syndrome = run(by, false, opcode, body).syndrome;
        const bool seen = copy_of(lent_memory) != expected;
        EXPECT_EQ(seen, syndrome == good && right != read_right && bytes != 0 && !address);
        if (seen) {
            const std::vector<std::uint8_t> now = copy_of(lent_memory);
            const std::size_t begin = lent_at + static_cast<std::size_t>(offset);
            std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(begin), bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(begin));
            EXPECT_EQ(now, expected) << "bytes beside those that were named";
        }
        return syndrome;
    }
    static std::vector<std::uint8_t> copy_of(const memory& from)
    {
        const auto* const begin = static_cast<const std::uint8_t*>(from.cpu_address());
        return {begin, begin + from.bytes()};
    }
    memory_region region(access rights, protection_domain domain = {}, std::optional<std::uint64_t> iova = {}) const
    {
        return {port_, lent_memory, {.rights = rights, .domain = domain, .iova = iova}};
    }

    device cpu = device::open("cpu");
    port port_ = port::open(GetParam().spec, {.mode = GetParam().mode});
    const protection_domain elsewhere = protection_domain::make();
    std::array<rdma_device, 4> devices{device_at("10.0.0.1", true, false), device_at("10.0.0.2", true, false),
                                       device_at("10.0.0.3", true, true), device_at("10.0.0.4", false, false)};
    memory lent_memory = cpu.allocate(region_bytes, memory_kind::cpu_device),
           own_memory = cpu.allocate(region_bytes, memory_kind::cpu_device);
    static constexpr access lendable = access::local_write | access::bind;
    std::optional<memory_region> lent{region(lendable)};
    memory_region regions_elsewhere = region(lendable, elsewhere);
    memory_region own{port_, own_memory, {.rights = all_rights}};
    completion_queue sends{port_, cpu, {.entries = 64}}, receives{port_, cpu, {.entries = 64}};
    std::array<couple, everybody> couples;
    std::uint8_t uses = 0;
};

/// A bind of a free window.
struct bind_cell {
    const char* name;
    who by;
    bool in_elsewhere; ///< the window
    std::function<void(window_entry&)> change;
    refusal why;
};

class EveryNicWindowBinds : public EveryNicWindows {
 protected:
    using change = std::function<void(window_entry&)>;

    static change of(const memory_region& region)
    {
        return [&region](window_entry& what) {
            what.region = region.lkey();
            what.address = region.iova() + lent_at;
        };
    }
    static change with(access rights, const memory_region& region)
    {
        return [rights, set = of(region)](window_entry& what) {
            set(what);
            what.rights = rights;
        };
    }
    static change bytes(std::uint64_t count, std::uint64_t skipped = 0)
    {
        return [count, skipped](window_entry& what) {
            what.bytes = count;
            what.address += skipped;
        };
    }
    void as_the_other_type(window_entry& what)
    {
        what.type = what.type == type_1 ? type_2 : type_1;
        what.queue = what.type == type_2 ? (*couples[ours].lender)->number() : WEFTIO_MKEY_ANY_QUEUE;
    }
    static void as_it_is(window_entry&) {}

    void check(const bind_cell& cell, window_type type)
    {
        SCOPED_TRACE(std::string(cell.name) + (type == type_1 ? ", type 1" : ", type 2"));
        const bool binds = cell.why == refusal::none;
        const memory_window window(devices[1], type, cell.in_elsewhere ? elsewhere : protection_domain{});
        const std::uint32_t before = window.rkey();
        window_entry what = bind_of(cell.by, type, before + 7);
        cell.change(what);
        const completion result = bind(cell.by, before, what);
        EXPECT_EQ(result.syndrome, binds ? good : refused_bind);
        if (GetParam().spec == std::string("loopback")) { // the cable has no reasons
            EXPECT_EQ(static_cast<refusal>(result.reason), cell.why);
        }
        EXPECT_EQ(window.standing().bound, binds);
        EXPECT_EQ(window.rkey(), binds ? before + 7 : before);
        EXPECT_EQ(lent->windows(), binds && what.region == lent->lkey() ? 1u : 0u);
    }

    const memory_region no_bind = region(access::local_write | write_right), read_only = region(access::bind),
                        zero_based = region(lendable, {}, 0);
};

TEST_P(EveryNicWindowBinds, KeepToDomainsAndRights)
{
    const bind_cell cells[] = {
        {"as it should be", ours, false, as_it_is, refusal::none},
        {"by another queue pair of the domain", others, false, as_it_is, refusal::none},
        {"by one of type 2A", of_2a, false, as_it_is, refusal::none},
        {"by one of another domain", strangers, false, as_it_is, refusal::window_domain},
        {"of a window of another domain", ours, true, as_it_is, refusal::window_domain},
        {"of a region of another domain", ours, false, of(regions_elsewhere), refusal::window_domain},
        {"all of another domain", strangers, true, of(regions_elsewhere), refusal::none},
        {"window and queue pair there, region here", strangers, true, as_it_is, refusal::window_domain},
        {"of a region without the right", ours, false, of(no_bind), refusal::no_bind},
        {"to a zero-based region", ours, false, of(zero_based), refusal::window_zero_based},
        {"for WRITEs to what is read only", ours, false, with(write_right, read_only), refusal::window_local_write},
        {"for atomics in what is read only", ours, false, with(atomic_right, read_only), refusal::window_local_write},
        {"for READs of what is read only", ours, false, with(read_right, read_only), refusal::none},
        {"for nothing", ours, false, with(access::none, read_only), refusal::none},
        {"as the other type", ours, false, [this](window_entry& what) { as_the_other_type(what); },
         refusal::wrong_window_type},
    };
    for (const window_type type : {type_1, type_2})
        for (const bind_cell& each : cells)
            check(each, type);
}

TEST_P(EveryNicWindowBinds, KeepToTheBytesOfARegion)
{
    constexpr std::uint64_t all = region_bytes - lent_at, most = std::uint64_t{1} << 31;
    const bind_cell cells[] = {
        {"of an unknown region", ours, false, [](window_entry& what) { what.region ^= 1; }, refusal::window_region},
        {"of all of it", ours, false, bytes(all), refusal::none},
        {"of a byte", ours, false, bytes(1, all - 1), refusal::none},
        {"beyond it", ours, false, bytes(all + 1), refusal::window_outside_region},
        {"behind it", ours, false, bytes(8, all), refusal::window_outside_region},
        {"before it", ours, false, bytes(8, -std::uint64_t{lent_at + 1}), refusal::window_outside_region},
        {"beyond it as the hardware", of_hardware, false, bytes(region_bytes), refusal::none},
        {"of 2^31 bytes as the hardware", of_hardware, false, bytes(most), refusal::none},
        {"of more than 2^31 bytes", ours, false, bytes(most + 1), refusal::wrong_umr_field},
        {"of more than 2^31 bytes as the hardware", of_hardware, false, bytes(most + 1), refusal::wrong_umr_field},
        {"of more than 2^32 bytes", of_hardware, false, bytes(2 * most + 8), refusal::wrong_umr_field},
    };
    for (const window_type type : {type_1, type_2})
        for (const bind_cell& each : cells)
            check(each, type);
}

TEST_P(EveryNicWindows, AreBoundInTheStatesThatTheirTypeHas)
{
    const memory_window one = bound(ours, type_1), two = bound(ours, type_2);
    const std::uint32_t key_1 = one.rkey(), key_2 = two.rkey();
    EXPECT_EQ(bind(ours, key_2, bind_of(ours, type_2, key_2 + 1)).syndrome, refused_bind) << "it is not free";
    EXPECT_EQ(two.rkey(), key_2);
    EXPECT_EQ(bind(ours, key_1 ^ 0x40, bind_of(ours, type_1, key_1 + 1)).syndrome, refused_bind) << "another key";
    EXPECT_EQ(one.rkey(), key_1);
    EXPECT_EQ(bind(others, key_1, bind_of(others, type_1, key_1 + 1)).syndrome, good);
    EXPECT_EQ(use(ours, key_1), refused_access) << "the old key";
    EXPECT_EQ(use(ours, key_1 + 1), good);
    EXPECT_EQ(unbind(others, key_1).syndrome, refused_bind);
    EXPECT_EQ(unbind(others, key_2).syndrome, refused_bind) << "type 2 is not freed so";
    EXPECT_EQ(unbind(strangers, key_1 + 1).syndrome, refused_bind);
    EXPECT_EQ(unbind(others, key_1 + 1).syndrome, good);
    EXPECT_EQ(use(ours, key_1 + 1), refused_access);
    EXPECT_EQ(use(ours, one.rkey()), refused_access) << "the key of a free window";
    EXPECT_EQ(take_back(ours, key_2).syndrome, good);
    EXPECT_EQ(bind(ours, key_2 ^ 0x55, bind_of(ours, type_2, key_2 + 9)).syndrome, good) << "the index is enough";
    EXPECT_EQ(use(ours, key_2 + 9), good);
    for (const std::uint32_t no_window : {lent->lkey(), 0x77777700u})
        EXPECT_EQ(bind(ours, no_window, bind_of(ours, type_1, no_window + 1)).syndrome, refused_bind);
}

/// Every type, every peer, every right of the window and every operation.
TEST_P(EveryNicWindows, AreAccessedByThoseWhomTheirTypeNamesWithTheirRights)
{
    const struct {
        const char* name;
        who lender;
        window_type type;
    } types[] = {{"type 1", ours, type_1}, {"type 2B", ours, type_2}, {"type 2A", of_2a, type_2}};
    for (const auto& [name, lender, type] : types)
        for (const access given : {write_right, read_right, atomic_right}) {
            const memory_window window = bound(lender, type, given);
            for (const who peer : {ours, others, strangers, of_2a})
                for (const access needed : {write_right, read_right, atomic_right}) {
                    SCOPED_TRACE(std::string(name) + " with right " + std::to_string(static_cast<int>(given)) +
                                 ", used with " + std::to_string(static_cast<int>(needed)) + " by those of " +
                                 names[peer]);
                    const bool may = given == needed && (type == type_1 ? peer != strangers : peer == lender);
                    EXPECT_EQ(use(peer, window.rkey(), needed), may ? good : refused_access);
                }
        }
}

TEST_P(EveryNicWindows, EndWhereTheyWereBound)
{
    for (const who lender : {ours, of_2a})
        for (const window_type type : {type_1, type_2}) {
            const memory_window window = bound(lender, type);
            constexpr std::int64_t end = window_bytes;
            for (const std::int64_t inside : {std::int64_t{0}, end - 8})
                EXPECT_EQ(use(lender, window.rkey(), write_right, inside), good) << inside;
            EXPECT_EQ(use(lender, window.rkey(), write_right, 0, window_bytes), good);
            for (const std::int64_t beyond : {std::int64_t{-1}, std::int64_t{-8}, end - 7, end, end + 100})
                EXPECT_EQ(use(lender, window.rkey(), write_right, beyond), refused_access) << beyond;
            EXPECT_EQ(use(lender, window.rkey(), write_right, 0, window_bytes + 1), refused_access);
            EXPECT_EQ(use(lender, window.rkey(), write_right, 0, 8, ~std::uint64_t{0} - 3), refused_access);
            EXPECT_EQ(use(lender, window.rkey() ^ 1), refused_access) << "another variant";
            EXPECT_EQ(use(lender, window.rkey() ^ 1, write_right, 0, 0), good) << "no bytes, no key";
        }
}

TEST_P(EveryNicWindows, OfTheHardwareReachNoByteBeyondTheirRegionAndNoAtomic)
{
    const memory_window window(devices[3], type_2);
    window_entry what = bind_of(of_hardware, type_2, window.rkey() + 1, write_right | atomic_right);
    what.bytes = region_bytes;
    EXPECT_EQ(bind(of_hardware, window.rkey(), what).syndrome, good);
    constexpr std::int64_t end = region_bytes - lent_at;
    EXPECT_EQ(use(of_hardware, window.rkey(), write_right, end - 8), good);
    EXPECT_EQ(use(of_hardware, window.rkey(), write_right, end - 7), refused_access);
    EXPECT_EQ(use(of_hardware, window.rkey(), write_right, end), refused_access);
    EXPECT_EQ(use(of_hardware, window.rkey(), atomic_right), refused_access);
}

TEST_P(EveryNicWindows, AreNoLocalMemory)
{
    for (const window_type type : {type_1, type_2}) {
        const memory_window window = bound(ours, type, write_right | read_right);
        const segment lent_part = pointer(8, window.rkey(), lent->iova() + lent_at);
        const segment to = remote(own.iova(), own.lkey());
        EXPECT_EQ(run(ours, true, WEFTIO_OPCODE_RDMA_WRITE, {to, lent_part}).syndrome,
                  WEFTIO_SYNDROME_LOCAL_PROTECTION);
        EXPECT_EQ(run(ours, true, WEFTIO_OPCODE_RDMA_READ, {to, lent_part}).syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
        couples[ours].lender->post_receive(lent_part);
        EXPECT_NE(run(ours, false, WEFTIO_OPCODE_SEND, {pointer(8, own.lkey(), own.iova())}).syndrome, good);
    }
}

TEST_P(EveryNicWindows, OfType2AreFreedByTheirQueuePairAndItsPeer)
{
    const auto give_back = [&](who by, std::uint32_t key) {
        couples[by].lender->post_receive(pointer(64, by == strangers ? regions_elsewhere.lkey() : lent->lkey(),
                                                 by == strangers ? regions_elsewhere.iova() : lent->iova()));
        EXPECT_EQ(run(by, false, WEFTIO_OPCODE_SEND_INVALIDATE, {pointer(8, own.lkey(), own.iova())}, key).syndrome,
                  good)
            << "a refusal is told to the receiver only";
        const completion told = completion_of(receives);
        if (told.syndrome == good) {
            EXPECT_EQ(told.opcode, WEFTIO_CQE_OPCODE_RESPONDER_SEND_INVALIDATE);
        } else {
            EXPECT_EQ(told.syndrome, WEFTIO_SYNDROME_REMOTE_INVALID);
            EXPECT_EQ((*couples[by].lender)->state(), rdma_state::error);
            begin_again(by);
        }
        return told.syndrome == good;
    };
    const auto take = [&](who by, std::uint32_t key) { return take_back(by, key).syndrome == good; };
    for (const auto& [name, frees] : {std::pair<const char*, std::function<bool(who, std::uint32_t)>>{"entry", take},
                                      {"SEND with invalidate", give_back}})
        for (const who lender : {ours, of_2a, strangers}) {
            SCOPED_TRACE(std::string(name) + ", " + names[lender]);
            const memory_window one = bound(lender, type_1), two = bound(lender, type_2);
            const std::uint32_t key = two.rkey();
            for (const who by : {ours, others, strangers, of_2a}) {
                EXPECT_FALSE(frees(by, one.rkey())) << "type 1";
                EXPECT_FALSE(frees(by, key ^ 1)) << "another key";
                if (by != lender) {
                    EXPECT_FALSE(frees(by, key)) << "another queue pair";
                }
            }
            EXPECT_FALSE(frees(lender, lent->lkey())) << "the key of a region";
            EXPECT_FALSE(frees(lender, 0x77777700)) << "of nothing";
            EXPECT_TRUE(one.standing().bound && two.standing().bound);
            EXPECT_TRUE(frees(lender, key));
            EXPECT_FALSE(two.standing().bound);
            EXPECT_FALSE(frees(lender, key)) << "it is free";
            EXPECT_EQ(use(lender, key), refused_access);
        }
}

TEST_P(EveryNicWindows, HoldTheirRegionUntilTheyAreFreed)
{
    std::optional<memory_window> one(bound(ours, type_1)), two(bound(ours, type_2)), third(bound(of_2a, type_2));
    const auto refused = [&](const char* count) {
        for (const std::function<void()>& call : std::vector<std::function<void()>>{
                 [&] { lent->close(); }, [&] { lent->rereg({}); }, [&] { lent->replace(lent_memory, {}); }}) {
            const error why = error_of(call);
            EXPECT_EQ(why.code(), errc::in_use);
            EXPECT_THAT(why.what(), testing::HasSubstr(count));
        }
    };
    refused("3 memory windows are bound to it");
    EXPECT_EQ(use(ours, one->rkey()), good) << "nothing has changed";
    const std::uint32_t key = one->rkey();
    one.reset();
    EXPECT_EQ(use(ours, key), refused_access) << "a window that is gone";
    EXPECT_EQ(take_back(ours, two->rkey()).syndrome, good);
    refused("1 memory window is bound to it");
    const std::uint32_t last = third->rkey();
    lent.reset(); // which frees it
    EXPECT_FALSE(third->standing().bound);
    EXPECT_EQ(run(of_2a, false, WEFTIO_OPCODE_RDMA_WRITE,
                  {remote(regions_elsewhere.iova() + lent_at, last), pointer(8, own.lkey(), own.iova())})
                  .syndrome,
              refused_access);
    lent.emplace(region(lendable));
    const memory_window again = bound(ours, type_2);
    EXPECT_EQ(use(ours, again.rkey()), good);
}

TEST_P(EveryNicWindows, OfType2AKeepTheirQueuePairAndOthersDoNot)
{
    const memory_window one = bound(ours, type_1), two = bound(ours, type_2);
    (*couples[ours].lender)->close();
    EXPECT_TRUE(one.standing().bound && two.standing().bound);
    make_lender(ours);
    begin_again(ours);
    EXPECT_EQ(use(ours, one.rkey()), good) << "of any queue pair of the domain";
    EXPECT_EQ(use(ours, two.rkey()), refused_access) << "it is dead";
    EXPECT_EQ(take_back(ours, two.rkey()).syndrome, refused_bind);

    const memory_window of_1 = bound(of_2a, type_1);
    std::optional<memory_window> first(bound(of_2a, type_2)), second(bound(of_2a, type_2));
    queue_pair& pair = **couples[of_2a].lender;
    const auto in_use = [&](const char* count) {
        const error why = error_of([&] { pair.close(); });
        EXPECT_EQ(why.code(), errc::in_use);
        EXPECT_THAT(why.what(), testing::HasSubstr(count));
    };
    in_use("2 memory windows of type 2A are bound by it");
    begin_again(of_2a); // in RESET they stay
    EXPECT_EQ(use(of_2a, first->rkey()), good);
    EXPECT_EQ(take_back(of_2a, first->rkey()).syndrome, good);
    in_use("1 memory window of type 2A is bound by it");
    second.reset();
    pair.close();
    EXPECT_TRUE(of_1.standing().bound) << "type 1 keeps nobody";
}

INSTANTIATE_TEST_SUITE_P(Of, EveryNicWindows, testing::ValuesIn(every_nic), name_of_nic);
INSTANTIATE_TEST_SUITE_P(Of, EveryNicWindowBinds, testing::ValuesIn(every_nic), name_of_nic);

} // namespace
} // namespace weftio::test
