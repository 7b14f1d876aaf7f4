// The same answers from every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "http_kernels.h"
#include "http_world.hpp"
#include "patience.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(http_converse, "http_kernels.h");

namespace weftio::packets {

namespace {

constexpr std::uint32_t room = 65536;

/// Everything of a connection in memory of one device.
class converses {
 public:
    converses(const device& on, const site_options& options) : on_(on)
    {
        const site made(options);
        image_.emplace(on.allocate(made.bytes(), memory_kind::cpu_device));
        made.write({static_cast<std::byte*>(image_->cpu_address()), made.bytes()});
        auto* worker = at<http_worker>(parts_, 0);
        worker->site = device_at<http_site>(*image_, 0);
        worker->limits = {1000, 4096, 2048, 1000, 0};
        worker->values = {device_at<weftio_u64>(parts_, values_at), 1, 0};
        worker->snapshots = {device_at<weftio_u8>(parts_, snapshots_at), http_snapshot_bytes(at<http_site>(*image_, 0)),
                             2, 0, 0};
        worker->path = device_at<weftio_u8>(parts_, path_at);
        worker->buffers = device_at<weftio_u8>(parts_, buffers_at);
        worker->free_buffers = device_at<weftio_u32>(parts_, free_at);
        worker->buffer_count = worker->free_count = 1;
    }

    std::string answers(const std::string& asked, std::uint32_t segment_bytes)
    {
        asked.copy(at<char>(parts_, asked_at), asked.size());
        auto kernel =
            on_.launch(http_converse_kernel, {.blocks = 1, .lanes = 1}, device_at<http_worker>(parts_, 0),
                       device_at<http_session>(parts_, session_at),
                       static_cast<const weftio_u8*>(device_at<weftio_u8>(parts_, asked_at)),
                       static_cast<weftio_u32>(asked.size()), segment_bytes, device_at<weftio_u8>(parts_, answers_at),
                       room, device_at<weftio_u32>(parts_, written_at));
        EXPECT_TRUE(kernel.wait_for(test::patience));
        const auto* written = at<weftio_u32>(parts_, written_at);
        EXPECT_EQ(written[1], 1u);
        EXPECT_EQ(written[2], 0u);
        return {at<char>(parts_, answers_at), written[0]};
    }

 private:
    static constexpr std::size_t session_at = 1024, values_at = 2048, free_at = 3072, written_at = 3200, path_at = 4096,
                                 buffers_at = 8192, snapshots_at = 16384, asked_at = 32768, answers_at = 65536;

    template <class T>
    static T* at(const memory& of, std::size_t offset)
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(of.cpu_address()) + offset);
    }
    template <class T>
    static T* device_at(const memory& of, std::size_t offset)
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(of.device_address()) + offset);
    }

    device on_;
    memory parts_ = on_.allocate(answers_at + room, memory_kind::cpu_device);
    std::optional<memory> image_;
};

class HttpOn : public testing::TestWithParam<const char*> {};

TEST_P(HttpOn, GivesTheAnswersOfTheHost)
{
    std::optional<device> on;
    try {
        on.emplace(device::open(GetParam()));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: HTTP on " << GetParam() << "; " << refused.what();
    }
    http_folder folder;
    folder.file("a b.txt", "text").file("long", std::string(10'000, 'x'));
    const site_options options{.root = folder.path(), .counters = {}, .facts = {{"device", "any"}}};
    const std::string host = "HTTP/1.1\r\nHost: a\r\n";
    const std::string asked = "GET / " + host + "\r\nHEAD /contact " + host + "\r\nGET /./x/../a%20b.txt " + host +
                              "\r\nPOST /none " + host + "Content-Length: 3\r\n\r\nabcGET /stats " + host +
                              "\r\nGET /long " + host + "If-None-Match: \"1\"\r\n\r\nBREW / " + host +
                              "\r\nGET /%2e%2e " + host + "\r\nGET / " + host + "Connection: close\r\n\r\n";
    http_world world(options);
    http_peer peer(world);
    const std::string wanted = peer.ask(asked);
    converses there(*on, options);
    for (const std::uint32_t segment_bytes : {4096u, 7u})
        EXPECT_EQ(there.answers(asked, segment_bytes), wanted);
}

INSTANTIATE_TEST_SUITE_P(Device, HttpOn, testing::Values("cpu", "opencl"));

} // namespace

} // namespace weftio::packets
