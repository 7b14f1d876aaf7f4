// Peers that tell of themselves as programs over verbs do, whose MAC is asked for; addresses in VLANs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "net/roce_headers.hpp"
#include "public_pair.hpp"
#include "rdma/rdma_end.hpp"
#include "software_nic.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

/// An IP version, a VLAN, and the priority of what end 0 sends.
struct address_kind {
    bool six;
    std::uint16_t vlan = 0;
    std::uint8_t priority = 0;
};
std::string name_of(const address_kind& kind)
{
    return fmt::format("IPv{}{}", kind.six ? 6 : 4,
                       kind.vlan != 0       ? "InAVlan"
                       : kind.priority != 0 ? "WithAPriority"
                                            : "");
}

class RdmaPeer : public testing::TestWithParam<address_kind> {
 protected:
    rdma_device_options options(unsigned end, std::uint16_t vlan) const
    {
        return {.address = (GetParam().six ? "fd00::" : "10.0.0.") + std::to_string(end + 1),
                .vlan = vlan,
                .vlan_priority = end == 0 ? GetParam().priority : std::uint8_t{0}};
    }
    void open(unsigned end, std::uint16_t vlan = GetParam().vlan)
    {
        devices[end].emplace(ports.get(end), options(end, vlan));
        queues[end].emplace(*devices[end], cpu, rdma_queue_options{.entries = 64, .receive_entries = 64});
        memories[end].emplace(ports.get(end), cpu, 4096, region_options{.rights = all_rights});
    }
    rdma_peer peer(unsigned end) const
    {
        rdma_peer peer = queues[end]->address().peer();
        peer.mac.reset();
        return peer;
    }
    const nic::soft::rdma_unit& unit(unsigned end) { return software_nic(ports.get(end)).rdma(); }

    const device cpu = device::open("cpu");
    wired_ports ports{engine_mode::thread};
    std::array<std::optional<rdma_device>, 2> devices;
    std::array<std::optional<rdma_queue>, 2> queues;
    std::array<std::optional<end_memory>, 2> memories;
};

} // namespace

TEST_P(RdmaPeer, ThatTellsNoMacIsAskedForIt)
{
    for (unsigned end : {0u, 1u})
        open(end);
    for (unsigned end : {0u, 1u})
        queues[end]->connect(rdma_address::of(peer(1 - end)));
    weftio_dev_rdma* const rdma = queues[0]->handle();
    ASSERT_EQ(weftio_dev_rdma_write(rdma, remote_region::of(memories[1]->region).on_device(), 0,
                                    memories[0]->region.buffer(), 0, 4096, WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(memories[1]->copy(), memories[0]->copy());
    for (unsigned end : {0u, 1u})
        EXPECT_EQ(unit(end).arrivals().neighbor.value(), 2u) << "a question and an answer";
}

TEST_P(RdmaPeer, OfAnotherVlanSendsPacketsThatThePortsRulesHave)
{
    open(0);
    open(1, 9);
    queues[1]->connect(queues[0]->address());
    rdma_peer reported = peer(1);
    reported.mac = queues[1]->address().peer().mac;
    queues[0]->connect(rdma_address::of(reported));
    weftio_dev_rdma* const rdma = queues[0]->handle();
    ASSERT_EQ(weftio_dev_rdma_write_value(rdma, remote_region::of(memories[1]->region).on_device(), 0, 1, 0),
              WEFTIO_DEV_OK);
    const std::vector<std::uint8_t> before = memories[1]->copy();
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(memories[1]->copy(), before);
    EXPECT_EQ(unit(1).arrivals().claimed.value(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaPeer,
                         testing::Values(address_kind{false}, address_kind{true}, address_kind{false, 7, 3},
                                         address_kind{true, 7}, address_kind{false, 0, 5}),
                         [](const auto& info) { return name_of(info.param); });

TEST(RdmaPeers, AreWhatAnAddressTells)
{
    const rdma_peer peer{.address = "fd00::7",
                         .queue = 0x123456,
                         .first_psn = 0xfffffe,
                         .service = rdma_service::unreliable,
                         .path_mtu = 4096,
                         .most_reads = 3,
                         .mac = std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9}};
    const rdma_peer reported = rdma_address::of_text(rdma_address::of(peer).text()).peer();
    EXPECT_EQ(reported.address, peer.address);
    EXPECT_EQ(reported.queue, peer.queue);
    EXPECT_EQ(reported.first_psn, peer.first_psn);
    EXPECT_EQ(reported.service, peer.service);
    EXPECT_EQ(reported.path_mtu, peer.path_mtu);
    EXPECT_EQ(reported.most_reads, peer.most_reads);
    EXPECT_EQ(reported.mac, peer.mac);
    EXPECT_EQ(rdma_address::of({.address = "10.0.0.1", .queue = 2}).peer().mac, std::nullopt);
}

TEST(RdmaPeers, ThatDoNotAnswerAreNamed)
{
    wired_ports ports(engine_mode::inline_worker);
    const rdma_device at(ports.get(0), {.address = "10.0.0.1", .vlan = 7, .application_turns = true});
    rdma_queue queue(at, device::open("cpu"));
    const error thrown = error_of([&] { queue.connect(rdma_address::of({.address = "10.0.0.2", .queue = 17})); });
    EXPECT_EQ(thrown.code(), errc::timed_out);
    EXPECT_THAT(thrown.what(), HasSubstr("no answer for 10.0.0.2"));
    EXPECT_THAT(thrown.what(), HasSubstr("on this link and in this VLAN"));
    EXPECT_EQ(queue.state(), rdma_state::init) << "nothing has changed";
    EXPECT_EQ(ports.take(1).size(), 3u);
}

TEST(RdmaPeers, ThatNobodyCanBeAreRefused)
{
    const auto refused = [](const std::function<void(rdma_peer&)>& change) {
        rdma_peer peer{.address = "10.0.0.1", .queue = 17};
        change(peer);
        return std::string(error_of([&] { (void)rdma_address::of(peer); }).what());
    };
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.address = "224.0.0.1"; }),
                HasSubstr("\"224.0.0.1\" is not a host address"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.address = ""; }), HasSubstr("\"\" is not a host address"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.queue = 1; }), HasSubstr("queue is 1; set 2 to 16777215"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.queue = 1u << 24; }), HasSubstr("queue is 16777216"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.first_psn = 1u << 24; }), HasSubstr("first_psn is 16777216"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.most_reads = 0; }), HasSubstr("most_reads is 0"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.path_mtu = 1500; }), HasSubstr("path_mtu is 1500"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.service = static_cast<rdma_service>(3); }),
                HasSubstr("service is 3"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.mac = std::array<std::uint8_t, 6>{1, 2, 3, 4, 5, 6}; }),
                HasSubstr("mac is 01:02:03:04:05:06"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.mac.emplace(); }), HasSubstr("mac is 00:00:00:00:00:00"));
}

/// The entry waits for an answer meanwhile, and is read again for each repeat.
TEST(RdmaPeers, WhoseAnswerComesTooLateForTheMemoryAreNotBlamed)
{
    wired_ports ports(engine_mode::inline_worker);
    const rdma_device at(ports.get(0), {.address = "10.0.0.1", .application_turns = true});
    const device cpu = device::open("cpu");
    rdma_queue queue(at, cpu, {.timeout = 10});
    queue.connect(
        rdma_address::of({.address = "10.0.0.2", .queue = 17, .mac = std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 2}}));
    progress_engine progress;
    std::string text;
    progress.attach(queue, {.on_error = [&](const send_failure& failure) { text = failure.text; }});
    std::optional<end_memory> memory(std::in_place, ports.get(0), cpu, 8192, region_options{.rights = all_rights});
    const weftio_dev_remote target = remote_region{.address = 0x10000, .bytes = 8192, .rkey = 7}.on_device();
    ASSERT_EQ(weftio_dev_rdma_write(queue.handle(), target, 0, memory->region.buffer(), 0, 8192, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit(queue.handle()), WEFTIO_DEV_OK);
    EXPECT_TRUE(eventually([&] {
        ports.get(0).turn();
        return queue.counters().packets != 0;
    }));
    memory.reset();
    EXPECT_TRUE(eventually([&] {
        ports.get(0).turn();
        progress.progress();
        return !text.empty();
    }));
    EXPECT_THAT(text, HasSubstr("no memory region has that key"));
}

TEST(RdmaDevice, HasAnAddressOfItsOwn)
{
    const wired_ports ports(engine_mode::thread);
    const port& at = ports.get(0);
    std::optional<rdma_device> first(std::in_place, at, rdma_device_options{.address = "10.0.0.1"});
    const auto again = [&] { (void)rdma_device(at, {.address = "10.0.0.1", .vlan = 3}); };
    EXPECT_EQ(error_of(again).code(), errc::in_use);
    EXPECT_THAT(error_of(again).what(), HasSubstr("already has address 10.0.0.1"));
    std::optional<rdma_queue> queue(std::in_place, *first, device::open("cpu"));
    first.reset();
    EXPECT_EQ(error_of(again).code(), errc::in_use) << "its queue has it";
    queue.reset();
    again();
    const auto refused = [&](const rdma_device_options& options) {
        return std::string(error_of([&] { (void)rdma_device(at, options); }).what());
    };
    EXPECT_THAT(refused({.address = "10.0.0.1", .vlan = 4095}), HasSubstr("vlan is 4095; set 1 to 4094"));
    EXPECT_THAT(refused({.address = "10.0.0.1", .vlan_priority = 8}), HasSubstr("vlan_priority is 8; set 0 to 7"));
}

TEST(RdmaQueueOptions, SayWhereSequenceNumbersBegin)
{
    const wired_ports ports(engine_mode::thread);
    const rdma_device at(ports.get(0), {.address = "10.0.0.1"});
    const device cpu = device::open("cpu");
    rdma_queue fixed(at, cpu, {.first_psn = 0xfffffe});
    EXPECT_EQ(fixed.address().peer().first_psn, 0xfffffeu);
    fixed.reset();
    EXPECT_EQ(fixed.address().peer().first_psn, 0xfffffeu);
    EXPECT_THAT(error_of([&] { (void)rdma_queue(at, cpu, {.first_psn = 1u << 24}); }).what(),
                HasSubstr("first_psn is 16777216; set 0 to 16777215"));
}

} // namespace weftio::test
