// What kernels of one device do with several connections that share receives, and checks of their results: the cases
// that the suites of the CPU, of OpenCL and of GPUs share.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "connections_kernels.h"
#include "public_pair.hpp"

WEFTIO_DEFINE_KERNEL(connections_answer, "connections_kernels.h");
WEFTIO_DEFINE_KERNEL(connections_ask, "connections_kernels.h");

namespace weftio::test {

/// A server and a client, each with all connections as one object.
class connections_cases : public ends_on_wire, public public_ends {
 public:
    static constexpr std::uint32_t count = 5, depth = 64, burst = 4;

    connections_cases(place_of_ends place, const std::string& device_spec, rdma_queue_options wanted = {})
        : ends_on_wire{wired_ports(place.mode)},
          public_ends(ports.of_ends(place.one_port), place.mode, device_spec, 128 * most_bytes)
    {
        wanted.entries = depth;
        wanted.receive_entries = depth;
        wanted.timeout = 18;
        wanted.path_mtu = 256; // a message of most_bytes needs several turns of the engines: others end before it
        for (unsigned end = 0; end < 2; ++end)
            sides[end].emplace(*devices[end], where, count, wanted);
        for (std::uint32_t each = 0; each != count; ++each)
            connect(each);
    }
    rdma_connections& side(unsigned end) { return *sides[end]; }
    void connect(std::uint32_t each)
    {
        for (unsigned end = 0; end < 2; ++end)
            side(end)[each].connect(side(1 - end)[each].address());
    }

    /// Each message arrives once, with the index of its connection, in the order of that connection, and its answer
    /// goes back the same way.
    void answer_all()
    {
        constexpr weftio_u32 rounds = 120, total = rounds * count;
        const shared_words told(where, total * CONNECTION_REPORT + 1), asked(where, 2);
        running_kernel server = where.launch(connections_answer_kernel, {}, side(0), side(0).receives(), at_server,
                                             total, told.on_device());
        running_kernel client = where.launch(connections_ask_kernel, {}, side(1), side(1).receives(), to_send,
                                             for_answers, rounds, burst, asked.on_device());
        EXPECT_TRUE(client.wait_for(patience)) << client.dump();
        EXPECT_TRUE(server.wait_for(patience)) << server.dump();
        EXPECT_EQ(told[total * CONNECTION_REPORT], depth - 1) << "one entry is always free";
        EXPECT_EQ(asked[0], total);
        EXPECT_EQ(asked[1], 0u);
        std::map<weftio_u32, weftio_u32> next;
        for (weftio_u32 at = 0; at != total * CONNECTION_REPORT; at += CONNECTION_REPORT) {
            const weftio_u32 connection = told[at], number = next[connection]++;
            ASSERT_EQ(told[at + 3], 0u);
            ASSERT_LT(connection, count);
            ASSERT_EQ(told[at + 2], connection << 16 | number);
            ASSERT_EQ(told[at + 1], connection_bytes(connection, number, most_bytes));
        }
        EXPECT_EQ(next.size(), count);
        EXPECT_EQ(side(0).standing().waiting, depth - 1);
    }

    static constexpr std::uint32_t most_bytes = 9000; ///< of a message: several packets
    std::array<std::optional<rdma_connections>, 2> sides;
    const buf_arr at_server{memory(0).region, where, {.count = depth, .buffer_bytes = most_bytes}};
    const buf_arr to_send{memory(1).region, where, {.count = count * burst, .buffer_bytes = most_bytes}};
    /// Behind those to send.
    const buf_arr for_answers{
        memory(1).region,
        where,
        {.count = depth - 1, .buffer_bytes = most_bytes, .offset_bytes = std::size_t{count} * burst * 9024}};
};

} // namespace weftio::test
