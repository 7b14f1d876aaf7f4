// Memory is unmapped and mapped anew at the same address, again and again, while a peer writes by the old key.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fleeting_memory.hpp"
#include "pages.hpp"
#include "weftio/error.hpp"
#include "writing_peer.hpp"

namespace weftio::test {
namespace {

class StaleLoop : public testing::Test {
 protected:
    using clock = std::chrono::steady_clock;
    static constexpr unsigned rounds = 20; ///< of each thread

    void round(fleeting_memory& memory)
    {
        const registration held = cache->get(memory.data(), memory.bytes(), peer_writes);
        writing_peer peer(all);
        std::memset(memory.data(), 0x5a, written_bytes);
        peer.write(memory.data(), held.rkey());
        ASSERT_TRUE(eventually([&] { return std::memcmp(memory.data(), all.source.data(), written_bytes) == 0; }));
        for (std::size_t more = 0; more < 8; ++more) // in flight when the memory goes
            peer.write(memory.data() + more * written_bytes, held.rkey());
        memory.go();
        memory.come_back();
        const auto gone = clock::now();
        ASSERT_TRUE(eventually([&] { return !entry_of(all.at, held.rkey()); }));
        software_nic(all.at).engines().between_all_turns([] {}); // what an engine had begun by the key has ended
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - gone).count();
        std::memset(memory.data(), 0x5a, memory.bytes());
        peer.write(memory.data(), held.rkey());
        EXPECT_TRUE(peer.is_refused());
        EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(), [](auto byte) { return byte == 0x5a; }));
        for (auto before = longest.load(); before < took && !longest.compare_exchange_weak(before, took);) {
        }
    }

    peers all;
    std::optional<registration_cache> cache;
    std::atomic<std::int64_t> longest{0};
};

TEST_F(StaleLoop, LetsNoByteOfAPeerIntoTheNewMappingOnceItIsHandled)
{
    try {
        cache.emplace(all.at, registration_cache_options{.staleness = registration_staleness::userfault});
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&] {
            fleeting_memory memory(leaving::unmapped, 16384);
            for (unsigned count = 0; count < rounds && !HasFatalFailure(); ++count)
                round(memory);
        });
    for (std::thread& each : threads)
        each.join();
    std::printf("handled after %ld us at most\n", static_cast<long>(longest.load()));
    const auto all_counted = [&] { return cache->counters().revocations == 4u * rounds; };
    EXPECT_TRUE(eventually(all_counted)) << cache->counters().revocations; // a key is counted after it is refused
}

} // namespace
} // namespace weftio::test
