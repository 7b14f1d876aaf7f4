// What kernels of one device do with datagrams, and checks of their results: the cases that the suites of the CPU, of
// OpenCL and of GPUs share.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "datagram_kernels.h"
#include "public_pair.hpp"

WEFTIO_DEFINE_KERNEL(datagrams_answer, "datagram_kernels.h");
WEFTIO_DEFINE_KERNEL(datagrams_ask, "datagram_kernels.h");

namespace weftio::test {

/// One queue pair at the first end, which answers; several at the second one, which share their receives, and ask.
class datagram_cases : public ends_on_wire, public public_ends {
 public:
    static constexpr std::uint32_t askers = 5, depth = 64, burst = 4, most_bytes = 1024;

    datagram_cases(place_of_ends place, const std::string& device_spec)
        : ends_on_wire{wired_ports(place.mode)},
          public_ends(ports.of_ends(place.one_port), place.mode, device_spec, 256 * piece)
    {}

    /// Each message arrives once, from the queue pair and the host that sent it, in the order of its sender, with its
    /// bytes, and its answer goes back to that queue pair.
    void answer_all()
    {
        constexpr weftio_u32 rounds = 120, total = rounds * askers;
        const shared_words told(where, total * DATAGRAM_REPORT + 1), asked(where, 2);
        const weftio_dev_datagram_peer to_askers = devices[0]->datagram_peer(asking[0].address().peer()),
                                       to_answerer = devices[1]->datagram_peer(answering.address().peer());
        running_kernel server = where.launch(datagrams_answer_kernel, {}, answering, answering.receives(), to_askers,
                                             at_server, total, told.on_device());
        // A datagram that finds no receive is lost.
        EXPECT_TRUE(eventually([&] { return told[total * DATAGRAM_REPORT] == 1; }));
        running_kernel client = where.launch(datagrams_ask_kernel, {}, asking, asking.receives(), to_answerer, to_send,
                                             for_answers, rounds, burst, asked.on_device());
        EXPECT_TRUE(client.wait_for(patience)) << client.dump();
        EXPECT_TRUE(server.wait_for(patience)) << server.dump();
        EXPECT_EQ(asked[0], total);
        EXPECT_EQ(asked[1], 0u);
        std::map<weftio_u32, weftio_u32> index_of, next;
        for (weftio_u32 each = 0; each != askers; ++each)
            index_of[asking[each].number()] = each;
        for (weftio_u32 at = 0; at != total * DATAGRAM_REPORT; at += DATAGRAM_REPORT) {
            ASSERT_EQ(told[at + 3], 0u);
            ASSERT_EQ(index_of.count(told[at]), 1u);
            const weftio_u32 sender = index_of[told[at]], number = next[sender]++;
            ASSERT_EQ(told[at + 2], sender << 16 | number);
            ASSERT_EQ(told[at + 1], datagram_bytes(sender, number, most_bytes) + WEFTIO_DEV_DATAGRAM_HEADER_BYTES);
            ASSERT_EQ(told[at + 4], 1u);
        }
        EXPECT_EQ(answering.counters().not_ready + answering.counters().refused + answering.counters().ignored, 0u);
    }

    static constexpr std::uint32_t piece = most_bytes + WEFTIO_DEV_DATAGRAM_HEADER_BYTES;
    rdma_queue answering{*devices[0],
                         where,
                         {.service = rdma_service::datagram,
                          .entries = depth,
                          .receive_entries = depth,
                          .queue_key = DATAGRAM_ANSWERER_KEY}};
    rdma_connections asking{*devices[1],
                            where,
                            askers,
                            {.service = rdma_service::datagram,
                             .entries = depth,
                             .receive_entries = depth,
                             .queue_key = DATAGRAM_ASKER_KEY}};
    const buf_arr at_server{memory(0).region, where, {.count = depth, .buffer_bytes = piece}};
    const buf_arr to_send{memory(1).region, where, {.count = askers * burst, .buffer_bytes = most_bytes}};
    /// Behind those to send.
    const buf_arr for_answers{
        memory(1).region,
        where,
        {.count = depth - 1, .buffer_bytes = piece, .offset_bytes = std::size_t{askers} * burst * 1088}};
};

} // namespace weftio::test
