// The same segments on every device: what the CPU has sent, byte for byte, is what each of them sends.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "patience.hpp"
#include "tcp_kernels.h"
#include "tcp_peer.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(tcp_replay, "tcp_kernels.h");

namespace weftio::test {
namespace {

/// A few peers talk to the endpoint over bad links; every segment that it receives is recorded.
class recording {
 public:
    explicit recording(tcp_replay_world& world) : world_(world)
    {
        tcp_default_settings(&world.settings);
        world.settings.key[0] = 1;
        world.settings.half_open_limit = 2; // the others begin with cookies
        tcp_replay_prepare(&world);
        for (std::uint16_t port = 0; port < 6; ++port) {
            tcp_peer_options options{.port = port, .sends = 600u + port, .wants = 20 * (600u + port)};
            options.timestamps = port % 2;
            options.closes_first = true;
            if (port % 3)
                options.scale = static_cast<std::uint8_t>(port);
            peers_.emplace_back(options, random_);
        }
    }

    /// Returns whether all peers got all of it.
    bool run()
    {
        bool done = false;
        for (now_ns_ = 1'000'000'000; !done && world_.steps + 500 < TCP_REPLAY_STEPS; now_ns_ += 1'000'000) {
            record(nullptr);
            for (const tcp_message& each : to_server_.arrived(now_ns_))
                record(&each);
            for (const tcp_message& each : to_peers_.arrived(now_ns_))
                peers_[each.segment.destination_port].receive(each);
            done = true;
            for (tcp_peer& peer : peers_) {
                for (const tcp_message& each : peer.poll(now_ns_))
                    to_server_.send(each, now_ns_);
                done &= peer.done() && peer.wrong() == 0;
            }
        }
        return done;
    }

 private:
    void record(const tcp_message* message)
    {
        tcp_replay_step& step = world_.step[world_.steps];
        step.now_ns = now_ns_;
        if (message) {
            step.addresses = message->addresses;
            step.bytes =
                tcp_write(step.header, &message->segment) + static_cast<std::uint32_t>(message->payload.size());
        }
        tcp_replay_one(&world_, world_.steps++);
        for (std::uint32_t at = 0; at < world_.output_count; ++at)
            forward(world_.outputs[at]);
    }
    void forward(const tcp_replay_output& output)
    {
        tcp_message message{.addresses = output.addresses, .segment = {}, .payload = {}};
        ASSERT_EQ(tcp_parse(output.header, output.header_bytes, &message.segment), std::uint32_t{TCP_PARSED});
        for (std::uint32_t i = 0; i < output.payload_bytes; ++i)
            message.payload += tcp_server::content(output.stream_offset + i);
        to_peers_.send(message, now_ns_);
    }

    tcp_replay_world& world_;
    std::mt19937 random_{3};
    tcp_link to_server_{{.loss = 0.05, .doubles = 0.05, .late = 0.1}, random_};
    tcp_link to_peers_{{.loss = 0.05, .doubles = 0.05, .late = 0.1}, random_};
    std::vector<tcp_peer> peers_;
    std::uint64_t now_ns_ = 0;
};

class TcpDevices : public testing::TestWithParam<const char*> {};

TEST_P(TcpDevices, SendTheSame)
{
    const std::string spec = GetParam();
    std::optional<device> where;
    try {
        where.emplace(device::open(spec));
    } catch (const error& failed) {
        GTEST_SKIP() << "missed: TCP on " << spec << "; " << failed.what();
    }
    auto host = std::make_unique<tcp_replay_world>();
    ASSERT_TRUE(recording(*host).run());
    EXPECT_GT(host->endpoint.counters.opened_by_cookie, 0u);
    EXPECT_GT(host->endpoint.counters.retransmitted, 0u);

    memory shared = where->allocate(sizeof(tcp_replay_world), memory_kind::cpu_device);
    auto& world = *new (shared.cpu_address()) tcp_replay_world{};
    world.settings = host->settings;
    world.steps = host->steps;
    std::memcpy(world.step, host->step, sizeof(world.step));
    running_kernel running = where->launch(tcp_replay_kernel, {.blocks = 1, .lanes = 1},
                                           static_cast<tcp_replay_world*>(shared.device_address()));
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ(world.digest, host->digest);
    EXPECT_EQ(std::memcmp(&world.endpoint.counters, &host->endpoint.counters, sizeof(tcp_counters)), 0);
    EXPECT_EQ(std::memcmp(world.records, host->records, sizeof(world.records)), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, TcpDevices, testing::Values("cpu", "opencl"),
                         [](const auto& each) { return std::string(each.param); });

} // namespace
} // namespace weftio::test
