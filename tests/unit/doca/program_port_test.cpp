// A program that sets up the DPDK port of its device itself, as the vendor's pipeline does, beside queues of kernels.
#include <netinet/in.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <chrono>
#include <thread>

#include "doca_dpdk.h"
#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

void send_one(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames, std::uint32_t index)
{
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_buf_get_buf(frames, index, &buf);
    doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, 60, DOCA_GPU_SEND_FLAG_NONE);
    doca_gpu_dev_eth_txq_commit_strong(txq);
    doca_gpu_dev_eth_txq_push(txq);
}

struct answer {
    std::uint32_t checksum = 0;
};
void receive_one(doca_gpu_eth_rxq* rxq, answer* out)
{
    std::uint32_t count = 0;
    std::uint64_t index = 0;
    doca_gpu_buf* buf = nullptr;
    if (doca_gpu_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &index) != DOCA_SUCCESS)
        return;
    doca_gpu_dev_eth_rxq_get_buf(rxq, index, &buf);
    const auto* packet = reinterpret_cast<const std::uint8_t*>(buf->address);
    out->checksum = static_cast<std::uint32_t>(packet[24] << 8 | packet[25]);
}

class DocaProgramPort : public DocaDevices {
 protected:
    static constexpr std::uint16_t queues = 2;

    /// The calls of the vendor's pipeline, in its order.
    void start_port()
    {
        char name[] = "", allow[] = "-a", none[] = "00:00.0";
        char* arguments[] = {name, allow, none};
        ASSERT_GE(rte_eal_init(3, arguments), 0);
        DOCA_OK(doca_dpdk_port_probe(second, "dv_flow_en=2"));
        DOCA_OK(doca_dpdk_get_first_port_id(second, &id));
        rte_eth_dev_info info{};
        ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
        rte_eth_conf configuration{};
        configuration.rxmode.mtu = 2048;
        configuration.txmode.offloads =
            RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
        EXPECT_EQ(info.tx_offload_capa & configuration.txmode.offloads, configuration.txmode.offloads);
        ASSERT_EQ(rte_eth_dev_configure(id, queues, queues, &configuration), 0);
        pool = rte_pktmbuf_pool_create("program", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
        ASSERT_TRUE(pool);
        for (std::uint16_t queue = 0; queue < queues; ++queue) {
            ASSERT_EQ(rte_eth_rx_queue_setup(id, queue, 2048, 0, nullptr, pool), 0);
            rte_eth_txconf send = info.default_txconf;
            send.offloads = configuration.txmode.offloads;
            ASSERT_EQ(rte_eth_tx_queue_setup(id, queue, 2048, 0, &send), 0);
        }
        rte_flow_error error{};
        ASSERT_EQ(rte_flow_isolate(id, 1, &error), 0);
        ASSERT_EQ(rte_eth_dev_start(id), 0);
    }
    void end_port()
    {
        EXPECT_EQ(rte_eth_dev_stop(id), 0);
        EXPECT_EQ(rte_eth_dev_close(id), 0);
        rte_mempool_free(pool);
    }
    /// TCP with these flags to the CPU's queues, before all else.
    void add_rule(doca_flow_pipe* root, std::uint8_t flags)
    {
        static std::uint16_t numbers[queues] = {0, 1};
        doca_flow_match match{};
        match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
        match.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_TCP;
        match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
        match.outer.tcp.flags = flags;
        doca_flow_fwd fwd{};
        fwd.type = DOCA_FLOW_FWD_RSS;
        fwd.rss.queues_array = numbers;
        fwd.rss.nr_queues = queues;
        doca_flow_pipe_entry* entry = nullptr;
        DOCA_OK(doca_flow_pipe_control_add_entry(0, 1, root, &match, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                 nullptr, &fwd, nullptr, &entry));
    }
    rte_mbuf* receive()
    {
        rte_mbuf* mbuf = nullptr;
        for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
             std::chrono::steady_clock::now() < end;)
            for (std::uint16_t queue = 0; queue < queues; ++queue)
                if (rte_eth_rx_burst(id, queue, &mbuf, 1))
                    return mbuf;
        return nullptr;
    }

    void send_as_udp(rte_mbuf* mbuf)
    {
        auto* packet = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
        packet[23] = IPPROTO_UDP;
        packet[24] = packet[25] = 0;
        mbuf->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
        mbuf->l2_len = 14;
        mbuf->l3_len = 20;
        EXPECT_EQ(rte_eth_tx_burst(id, 1, &mbuf, 1), 1);
    }

    std::uint16_t id = 0xffff;
    rte_mempool* pool = nullptr;
};

doca_flow_pipe* make_root(doca_flow_port* port)
{
    doca_flow_pipe_cfg* cfg = nullptr;
    doca_flow_pipe* root = nullptr;
    EXPECT_EQ(doca_flow_pipe_cfg_create(&cfg, port), DOCA_SUCCESS);
    EXPECT_EQ(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL), DOCA_SUCCESS);
    EXPECT_EQ(doca_flow_pipe_cfg_set_is_root(cfg, true), DOCA_SUCCESS);
    EXPECT_EQ(doca_flow_pipe_create(cfg, nullptr, nullptr, &root), DOCA_SUCCESS);
    EXPECT_EQ(doca_flow_pipe_cfg_destroy(cfg), DOCA_SUCCESS);
    return root;
}

/// Makes a UDP frame one of TCP, with its number in the payload.
void make_tcp(std::uint8_t* frame, std::uint8_t flags)
{
    frame[23] = IPPROTO_TCP;
    std::memset(frame + 42, 0, 18);
    frame[46] = 5 << 4;
    frame[47] = flags;
}

TEST_F(DocaProgramPort, GetsWhatPipesSendToItsQueuesAndSendsWithChecksums)
{
    receiving gpu_queue, answers;
    sending out;
    answer got{};
    gpu_queue.make_queue(gpu, second);
    start_port();
    EXPECT_GE(rte_lcore_count(), 2u);
    receiving::init_flow();
    gpu_queue.start_port();
    auto* root = make_root(gpu_queue.port);
    add_rule(root, DOCA_FLOW_MATCH_TCP_FLAG_SYN);
    add_rule(root, DOCA_FLOW_MATCH_TCP_FLAG_RST);
    out.make_queue(gpu, first);
    out.start();
    make_tcp(out.frame(0), DOCA_FLOW_MATCH_TCP_FLAG_ACK); // for nobody
    make_tcp(out.frame(1), DOCA_FLOW_MATCH_TCP_FLAG_RST | DOCA_FLOW_MATCH_TCP_FLAG_ACK);
    for (std::uint32_t frame = 0; frame < 2; ++frame)
        ASSERT_TRUE(launch(send_one, 1u, out.handle, out.array_handle, frame).wait_for(std::chrono::seconds(20)));
    rte_mbuf* mbuf = receive();
    ASSERT_TRUE(mbuf);
    const auto* bytes = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    EXPECT_EQ(mbuf->pkt_len, 60u);
    EXPECT_EQ(bytes[47], DOCA_FLOW_MATCH_TCP_FLAG_RST | DOCA_FLOW_MATCH_TCP_FLAG_ACK);
    // Stopped and started, its queues are the ones that the rules name.
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_start(id), 0);
    EXPECT_EQ(rte_eal_cleanup(), 0); // too early, and without effect
    ASSERT_TRUE(launch(send_one, 1u, out.handle, out.array_handle, 1u).wait_for(std::chrono::seconds(20)));
    rte_mbuf* again = receive();
    ASSERT_TRUE(again);
    rte_pktmbuf_free(again);
    for (std::uint32_t byte = 60; byte < 700; ++byte)
        ASSERT_EQ(bytes[byte], 0) << byte;
    // It goes back as UDP, with a checksum that the NIC computes.
    answers.make_queue(gpu, first);
    answers.start_port();
    answers.add_udp_pipe(true);
    send_as_udp(mbuf);
    ASSERT_TRUE(launch(receive_one, 1u, answers.handle, &got).wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(got.checksum, 0x66bd) << std::hex << got.checksum; // of the header that sending::fill writes
    out.end();
    answers.end();
    gpu_queue.end();
    doca_flow_destroy();
    end_port();
}

TEST_F(DocaProgramPort, LosesItsNumberWhenItIsClosedUntilTheDeviceIsProbedAgain)
{
    doca_flow_port_cfg* cfg = nullptr;
    DOCA_OK(doca_flow_port_cfg_create(&cfg));
    start_port();
    EXPECT_NE(rte_eth_dev_close(id), 0); // it is started, and goes on
    const std::uint16_t closed = id;
    end_port();
    std::uint16_t number = 0;
    EXPECT_EQ(doca_dpdk_get_first_port_id(second, &number), DOCA_ERROR_NOT_FOUND);
    EXPECT_EQ(doca_flow_port_cfg_set_devargs(cfg, std::to_string(closed).c_str()), DOCA_ERROR_NOT_FOUND);
    DOCA_OK(doca_dpdk_port_probe(first, ""));
    DOCA_OK(doca_dpdk_get_first_port_id(first, &number));
    EXPECT_NE(number, closed); // another device keeps its own
    start_port();
    EXPECT_NE(id, number);
    EXPECT_TRUE(rte_eth_dev_is_valid_port(id));
    DOCA_OK(doca_flow_port_cfg_set_devargs(cfg, std::to_string(id).c_str()));
    receiving gpu_queue;
    gpu_queue.make_queue(gpu, second);
    receiving::init_flow();
    gpu_queue.start_port();
    add_rule(make_root(gpu_queue.port), DOCA_FLOW_MATCH_TCP_FLAG_RST);
    gpu_queue.end();
    doca_flow_destroy();
    end_port();
    DOCA_OK(doca_flow_port_cfg_destroy(cfg));
}

} // namespace
} // namespace weftio::test
