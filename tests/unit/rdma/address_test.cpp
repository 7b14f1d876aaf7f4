// What two ends tell each other: as bytes, as text, and changed on the way.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "public_pair.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

class RdmaBlobs : public testing::Test {
 protected:
    public_pair ends{places_of_ends[0]};
    rdma_address address = ends.queue(0).address();
    remote_region region = remote_region::of(ends.memory(0).region, 100, 2000);
};

template <class Blob>
void expect_every_change_refused(std::vector<std::uint8_t> bytes)
{
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        EXPECT_THROW((void)Blob::of_bytes(bytes), error) << "bit " << bit;
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    }
    for (std::size_t count = 0; count < bytes.size(); ++count)
        EXPECT_THROW((void)Blob::of_bytes(std::span(bytes).first(count)), error) << count << " bytes";
    bytes.push_back(0);
    EXPECT_THROW((void)Blob::of_bytes(bytes), error);
}

} // namespace

TEST_F(RdmaBlobs, ComeBackFromBytesAndText)
{
    EXPECT_EQ(rdma_address::of_bytes(address.bytes), address);
    EXPECT_EQ(rdma_address::of_text(address.text()), address);
    EXPECT_EQ(address.text().size(), 128u);
    EXPECT_NE(ends.queue(1).address(), address);
    EXPECT_EQ(remote_region::of_bytes(region.to_bytes()), region);
    EXPECT_EQ(remote_region::of_text(region.text()), region);
    EXPECT_EQ(region.text().size(), 64u);
    EXPECT_EQ(region.bytes, 2000u);
    EXPECT_EQ(region.address, ends.memory(0).address(100));
    EXPECT_EQ(region.rkey, ends.memory(0).region.lkey());
    EXPECT_EQ(region.rights, all_rights);
}

TEST_F(RdmaBlobs, HaveTheirFieldsInNetworkByteOrder)
{
    EXPECT_EQ(address.text().substr(0, 16), "5746515001400010") << "WFQP, version 1, 64 bytes, RC, 16 reads";
    EXPECT_EQ(address.text().substr(16, 32), "00000000000000000000ffff0a000001");
    const std::uint32_t number = ends.queue(0).number();
    EXPECT_EQ(address.text().substr(64, 8), fmt::format("{:08x}", number));
    EXPECT_EQ(address.text().substr(80, 8), fmt::format("{:08x}", ends.queue(0).path_mtu()));
    EXPECT_EQ(region.text().substr(0, 16), "5746524d01200f00");
    EXPECT_EQ(region.text().substr(16, 16), fmt::format("{:016x}", region.address));
    EXPECT_EQ(region.text().substr(48, 8), fmt::format("{:08x}", region.rkey));
}

TEST_F(RdmaBlobs, AreRefusedWhenABitOfThemIsAnotherOrSomeAreMissing)
{
    expect_every_change_refused<rdma_address>({address.bytes.begin(), address.bytes.end()});
    const auto bytes = region.to_bytes();
    expect_every_change_refused<remote_region>({bytes.begin(), bytes.end()});
}

TEST_F(RdmaBlobs, SayWhatIsWrongWithThem)
{
    const auto words = [](const auto& call) { return std::string(error_of(call).what()); };
    rdma_address other = address;
    other.bytes[4] = 2;
    EXPECT_THAT(words([&] { (void)rdma_address::of_bytes(other.bytes); }),
                HasSubstr("rdma_address: it has version 2, this library knows version 1"));
    EXPECT_THAT(words([&] { ends.queue(1).connect(other); }), HasSubstr("version 2"));
    EXPECT_THAT(
        words([&] { (void)rdma_address::of_bytes(std::span(address.bytes).first(63)); }),
        HasSubstr("it should have 64 bytes but has 63; pass the complete result of the peer's rdma_queue::address()"));
    EXPECT_THAT(words([&] { (void)rdma_address::of_text(address.text().substr(1)); }),
                HasSubstr("its text should have 128 digits but has 127"));
    EXPECT_THAT(words([&] { (void)rdma_address::of_text("xy" + address.text().substr(2)); }),
                HasSubstr("\"xy\" at 0, not a hexadecimal number"));
    EXPECT_THAT(words([&] { (void)remote_region::of_text(address.text().substr(0, 64)); }),
                HasSubstr("remote_region: the 32 bytes are not one: they do not begin with \"WFRM\""));
    EXPECT_THAT(words([&] { ends.queue(1).connect(rdma_address{}); }), HasSubstr("do not begin with \"WFQP\""));
    other = address;
    other.bytes[50] ^= 1;
    EXPECT_THAT(words([&] { ends.queue(1).connect(other); }), HasSubstr("it was changed in transit"));
    EXPECT_EQ(ends.queue(1).state(), rdma_state::init);
}

TEST_F(RdmaBlobs, OfAQueueThatNoLibraryMakesAreRefused)
{
    const auto refused = [&](const std::function<void(rdma_peer&)>& change) {
        rdma_peer peer = address.peer();
        change(peer);
        const error thrown = error_of([&] { ends.queue(1).connect(rdma::to_address(peer)); });
        EXPECT_THAT(thrown.what(), HasSubstr("no queue pair of this library has these values"));
    };
    refused([](rdma_peer& peer) { peer.service = static_cast<rdma_service>(3); });
    refused([](rdma_peer& peer) { peer.path_mtu = 1000; });
    refused([](rdma_peer& peer) { peer.path_mtu = 8192; });
    refused([](rdma_peer& peer) { peer.most_reads = 0; });
    refused([](rdma_peer& peer) { peer.queue = 1u << 24; });
    refused([](rdma_peer& peer) { peer.first_psn = 1u << 24; });
}

TEST_F(RdmaBlobs, OfARegionAreOfWhatAPeerMayUse)
{
    const memory bytes = ends.where.allocate(4096, memory_kind::cpu_device);
    const memory_region own(ends.ports.get(0), bytes);
    EXPECT_THAT(error_of([&] { (void)remote_region::of(own); }).what(), HasSubstr("grants a peer no rights"));
    EXPECT_THAT(error_of([&] { (void)remote_region::of(ends.memory(0).region, 65536, 1); }).what(),
                HasSubstr("1 bytes at offset 65536 exceed the region of 65536"));
}

} // namespace weftio::test
