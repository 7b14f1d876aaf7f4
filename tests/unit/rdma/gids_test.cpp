// A queue pair uses any address of its device, as verbs' GID indices name them.
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "two_ends.hpp"
#include "unit/device/fixture.hpp"

namespace weftio::test {
namespace {

class Gids : public testing::Test {
 protected:
    Gids()
    {
        for (unsigned end = 0; end < 2; ++end) {
            const std::string number = std::to_string(end + 1);
            devices_[end].emplace(ports_.get(end), rdma_device_options{.address = "10.0.0." + number,
                                                                       .more_addresses = {"fd00::" + number},
                                                                       .link_local = true});
            memories_[end].emplace(ports_.get(end), cpu_, 4096, region_options{.rights = all_rights});
            completions_[end].emplace(ports_.get(end), cpu_);
            pairs_[end].emplace(*devices_[end], cpu_, *completions_[end], *completions_[end],
                                queue_pair_options{.signal_all = true});
        }
    }
    /// INIT, RTR and RTS of both ends, from address `gid` to address `gid`.
    void connect_by(std::uint8_t gid)
    {
        for (unsigned end = 0; end < 2; ++end) {
            pairs_[end]->modify(rdma_state::reset);
            std::memset(pairs_[end]->record(), 0, 8);
            pairs_[end]->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .rights = peers_rights});
        }
        for (unsigned end = 0; end < 2; ++end)
            pairs_[end]->modify(rdma_state::ready_to_receive, {.peer_address = devices_[1 - end]->gids()[gid],
                                                               .gid_index = gid,
                                                               .path_mtu = 1024,
                                                               .peer_queue = pairs_[1 - end]->number(),
                                                               .receive_psn = 5,
                                                               .most_reads_of_peer = std::uint8_t{1},
                                                               .min_rnr_timer = std::uint8_t{1}});
        for (unsigned end = 0; end < 2; ++end)
            pairs_[end]->modify(rdma_state::ready_to_send, {.send_psn = 5,
                                                            .most_reads = std::uint8_t{1},
                                                            .timeout = std::uint8_t{18},
                                                            .retry_count = std::uint8_t{7},
                                                            .rnr_retry = std::uint8_t{7}});
    }
    /// Entry 0 of end 0: a WRITE of 100 bytes.
    void write_once()
    {
        auto* const words = static_cast<std::uint32_t*>(pairs_[0]->send_ring());
        const segment control{{WEFTIO_OPCODE_RDMA_WRITE, pairs_[0]->number() << 8 | 3, 0, 0}};
        unsigned at = 0;
        for (const segment& each : {control, memories_[1]->remote_at(50), memories_[0]->local(0, 100)})
            for (const std::uint32_t word : each.words)
                words[at++] = weftio_swap32(word);
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pairs_[0]->record()) + 1, weftio_swap32(1));
    }

    static constexpr access peers_rights = access::remote_write | access::remote_read | access::remote_atomic;
    device cpu_ = device::open("cpu");
    wired_ports ports_{engine_mode::thread};
    std::array<std::optional<rdma_device>, 2> devices_;
    std::array<std::optional<end_memory>, 2> memories_;
    std::array<std::optional<completion_queue>, 2> completions_;
    std::array<std::optional<queue_pair>, 2> pairs_;
};

TEST_F(Gids, AreTheAddressesInTheirOrderAndTheLinkLocalOneLast)
{
    EXPECT_THAT(devices_[0]->gids(), testing::ElementsAre("10.0.0.1", "fd00::1", testing::StartsWith("fe80::")));
}

TEST_F(Gids, EachCarryAConnectionWhosePeerIsAskedForItsMac)
{
    for (std::uint8_t gid = 0; gid < 3; ++gid) {
        connect_by(gid);
        std::memset(memories_[0]->data(), 0x10 + gid, 100);
        write_once();
        std::array<completion, 2> done;
        ASSERT_TRUE(eventually([&] { return completions_[0]->poll(done) == 1; })) << "GID " << unsigned{gid};
        EXPECT_FALSE(done[0].failed()) << explain(done[0].reason);
        EXPECT_EQ(done[0].entry_opcode, WEFTIO_OPCODE_RDMA_WRITE);
        EXPECT_EQ(std::memcmp(memories_[1]->data() + 50, memories_[0]->data(), 100), 0);
    }
}

/// Nothing completes, so no completion could tell.
TEST_F(Gids, AQueuePairWhoseRecordClaimsTooMuchTellsWhyByAProgressEngine)
{
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(*pairs_[0], {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    connect_by(0);
    weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pairs_[0]->record()) + 1, weftio_swap32(65));
    ASSERT_TRUE(eventually([&] { return progress.progress() != 0; }));
    EXPECT_EQ(pairs_[0]->state(), rdma_state::error);
    EXPECT_EQ(reported.at(0).syndrome, WEFTIO_SYNDROME_LOCAL_QP_OPERATION);
    EXPECT_THAT(reported.at(0).text, testing::HasSubstr("the doorbell record claims more entries than the ring holds"));
    pairs_[0].reset(); // what it has reported stays, and its memory is left
    EXPECT_EQ(progress.progress(), 0u);
}

TEST_F(Gids, ThatTheDeviceHasNotAreRefused)
{
    pairs_[0]->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .rights = peers_rights});
    const error refused = error_of([&] {
        pairs_[0]->modify(rdma_state::ready_to_receive, {.peer_address = "10.0.0.2",
                                                         .gid_index = 3,
                                                         .path_mtu = 1024,
                                                         .peer_queue = 2,
                                                         .receive_psn = 0,
                                                         .most_reads_of_peer = std::uint8_t{1},
                                                         .min_rnr_timer = std::uint8_t{1}});
    });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::HasSubstr("gid_index is 3, but its rdma_device has 3 addresses"));
    EXPECT_EQ(pairs_[0]->state(), rdma_state::init);
}

} // namespace
} // namespace weftio::test
