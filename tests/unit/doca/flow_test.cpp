// Entries of pipes: what they decide while others come and go, in front of them, behind them and in pipes behind them.
#include <arpa/inet.h>

#include <chrono>
#include <thread>

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

void send_to(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames)
{
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_buf_get_buf(frames, 0, &buf);
    doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, 60, DOCA_GPU_SEND_FLAG_NONE);
    doca_gpu_dev_eth_txq_commit_strong(txq);
    doca_gpu_dev_eth_txq_push(txq);
}

/// Which of the queues gets the next packet, or 0xff.
void find_receiver(doca_gpu_eth_rxq* const* queues, std::uint32_t count, std::uint32_t* which)
{
    *which = 0xff;
    for (std::uint32_t attempt = 0; *which == 0xff && attempt < 20000; ++attempt)
        for (std::uint32_t queue = 0; queue < count; ++queue) {
            std::uint32_t packets = 0;
            std::uint64_t first = 0;
            doca_gpu_dev_eth_rxq_receive_thread(queues[queue], 1, 100000, &packets, &first);
            if (packets)
                *which = queue;
        }
}

class DocaFlow : public DocaDevices {
 protected:
    static constexpr std::uint32_t queues = 3;

    void SetUp() override
    {
        DocaDevices::SetUp();
        for (std::uint32_t queue = 0; queue < queues; ++queue) {
            in[queue].make_queue(gpu, second);
            handles[queue] = in[queue].handle;
        }
        receiving::init_flow();
        in[0].start_port();
        out.make_queue(gpu, first);
        out.start();
    }
    void TearDown() override
    {
        doca_flow_destroy();
        out.end();
        for (auto& one : in) {
            DOCA_OK(doca_eth_rxq_destroy(one.queue));
            one.memory.end();
        }
        DocaDevices::TearDown();
    }
    doca_flow_pipe* pipe(doca_flow_pipe_type type, bool is_root, const doca_flow_match* match,
                         const doca_flow_fwd* miss = nullptr)
    {
        doca_flow_pipe_cfg* cfg = nullptr;
        doca_flow_pipe* made = nullptr;
        EXPECT_EQ(doca_flow_pipe_cfg_create(&cfg, in[0].port), DOCA_SUCCESS);
        EXPECT_EQ(doca_flow_pipe_cfg_set_type(cfg, type), DOCA_SUCCESS);
        EXPECT_EQ(doca_flow_pipe_cfg_set_is_root(cfg, is_root), DOCA_SUCCESS);
        EXPECT_EQ(doca_flow_pipe_cfg_set_match(cfg, match, nullptr), DOCA_SUCCESS);
        EXPECT_EQ(doca_flow_pipe_create(cfg, nullptr, miss, &made), DOCA_SUCCESS);
        EXPECT_EQ(doca_flow_pipe_cfg_destroy(cfg), DOCA_SUCCESS);
        return made;
    }
    /// A pipe whose entries name IPv4 addresses of receivers.
    doca_flow_pipe* addresses(bool is_root)
    {
        doca_flow_match match{};
        match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
        match.outer.ip4.dst_ip = 0xffffffff;
        return pipe(DOCA_FLOW_PIPE_BASIC, is_root, &match);
    }
    static doca_flow_match of(std::uint32_t address)
    {
        doca_flow_match match{};
        match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
        match.outer.ip4.dst_ip = htonl(address);
        return match;
    }
    doca_flow_pipe_entry* add(doca_flow_pipe* to, std::uint32_t address, std::uint32_t queue)
    {
        doca_flow_pipe_entry* entry = nullptr;
        const auto match = of(address);
        const auto fwd = in[queue].to_queue();
        EXPECT_EQ(doca_flow_pipe_add_entry(0, to, &match, nullptr, nullptr, &fwd, 0, nullptr, &entry), DOCA_SUCCESS);
        return entry;
    }
    doca_flow_pipe_entry* control(doca_flow_pipe* to, std::uint32_t priority, const doca_flow_match& match,
                                  const doca_flow_fwd& fwd)
    {
        doca_flow_pipe_entry* entry = nullptr;
        EXPECT_EQ(doca_flow_pipe_control_add_entry(0, priority, to, &match, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                   nullptr, &fwd, nullptr, &entry),
                  DOCA_SUCCESS);
        return entry;
    }
    /// The queue that gets a packet to this address.
    std::uint32_t receiver_of(std::uint32_t address)
    {
        std::uint32_t which = 0xff;
        const std::uint32_t big_endian = htonl(address);
        std::memcpy(out.frame(0) + 30, &big_endian, sizeof big_endian);
        auto sender = launch(send_to, 1u, out.handle, out.array_handle);
        EXPECT_TRUE(sender.wait_for(std::chrono::seconds(20)));
        auto receiver = launch(find_receiver, 1u, static_cast<doca_gpu_eth_rxq* const*>(handles), queues, &which);
        EXPECT_TRUE(receiver.wait_for(std::chrono::seconds(60)));
        return which;
    }

    receiving in[queues];
    doca_gpu_eth_rxq* handles[queues] = {};
    sending out;
};

constexpr std::uint32_t base = 0x0a000000;

TEST_F(DocaFlow, HasThousandsOfEntriesInAPipe)
{
    auto* root = addresses(true);
    std::vector<doca_flow_pipe_entry*> entries;
    for (std::uint32_t entry = 0; entry < 2000; ++entry)
        entries.push_back(add(root, base + entry, entry % queues));
    for (const std::uint32_t entry : {0u, 1u, 1000u, 1999u})
        EXPECT_EQ(receiver_of(base + entry), entry % queues) << entry;
    for (std::uint32_t entry = 1; entry < 1999; ++entry)
        DOCA_OK(doca_flow_pipe_remove_entry(0, 0, entries[entry]));
    EXPECT_EQ(receiver_of(base), 0u);
    EXPECT_EQ(receiver_of(base + 1999), 1999u % queues);
    add(root, base + 5, 1);
    EXPECT_EQ(receiver_of(base + 5), 1u);
}

TEST_F(DocaFlow, LetsTheFirstOfEqualEntriesDecideAndTheNextWhenItIsGone)
{
    auto* root = addresses(true);
    auto* first_entry = add(root, base, 0);
    auto* second_entry = add(root, base, 1);
    add(root, base, 2);
    EXPECT_EQ(receiver_of(base), 0u);
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, first_entry));
    EXPECT_EQ(receiver_of(base), 1u);
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, second_entry));
    EXPECT_EQ(receiver_of(base), 2u);
}

TEST_F(DocaFlow, LetsTheLowestPriorityDecideInWhateverOrderEntriesCome)
{
    auto* root = pipe(DOCA_FLOW_PIPE_CONTROL, true, nullptr);
    const auto all = of(base);
    std::vector<doca_flow_pipe_entry*> entries;
    for (std::uint32_t priority = 600; priority > 300; --priority) // each before all others
        entries.push_back(control(root, priority, all, in[priority % queues].to_queue()));
    EXPECT_EQ(receiver_of(base), 301u % queues);
    for (std::uint32_t twice = 0; twice < 2; ++twice) // between others, and behind an equal one
        for (std::uint32_t priority = 0; priority < 300; priority += 7)
            control(root, priority, all, in[(priority + 1 + twice) % queues].to_queue());
    EXPECT_EQ(receiver_of(base), 1u);
}

TEST_F(DocaFlow, GivesNewEntriesTheirPlaceInAPipeThatTwoOthersLeadTo)
{
    auto* root = pipe(DOCA_FLOW_PIPE_CONTROL, true, nullptr);
    auto* inner = addresses(false);
    doca_flow_fwd next{};
    next.type = DOCA_FLOW_FWD_PIPE;
    next.next_pipe = inner;
    auto* to_one = control(root, 3, of(base + 1), next);
    control(root, 5, of(base + 2), next);
    auto* one = add(inner, base + 1, 1);
    add(inner, base + 2, 2);
    EXPECT_EQ(receiver_of(base + 1), 1u);
    EXPECT_EQ(receiver_of(base + 2), 2u);
    auto* before = control(root, 4, of(base + 2), in[0].to_queue()); // between the two ways into the pipe
    EXPECT_EQ(receiver_of(base + 2), 0u);
    EXPECT_EQ(receiver_of(base + 1), 1u);
    control(root, 9, of(base + 1), in[0].to_queue()); // behind the miss of the pipe, which drops
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, one));
    add(inner, base + 1, 2);
    EXPECT_EQ(receiver_of(base + 1), 2u);
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, before));
    EXPECT_EQ(receiver_of(base + 2), 2u);
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, to_one));
    EXPECT_EQ(receiver_of(base + 1), 0u);
}

TEST_F(DocaFlow, RefusesNumbersOfNoQueueOfTheDevice)
{
    auto* root = addresses(true);
    const auto match = of(base);
    receiving others;
    others.make_queue(gpu, first);
    for (const std::uint16_t number : {std::uint16_t{0}, std::uint16_t{0x7fff}, others.number}) {
        std::uint16_t numbers[] = {in[0].number, number};
        doca_flow_fwd fwd = in[0].to_queue();
        fwd.rss.queues_array = numbers;
        fwd.rss.nr_queues = 2;
        doca_flow_pipe_entry* entry = nullptr;
        EXPECT_EQ(doca_flow_pipe_add_entry(0, root, &match, nullptr, nullptr, &fwd, 0, nullptr, &entry),
                  DOCA_ERROR_INVALID_VALUE)
            << number;
        doca_flow_pipe_cfg* cfg = nullptr;
        doca_flow_pipe* made = nullptr;
        DOCA_OK(doca_flow_pipe_cfg_create(&cfg, in[0].port));
        EXPECT_EQ(doca_flow_pipe_create(cfg, &fwd, nullptr, &made), DOCA_ERROR_INVALID_VALUE) << number;
        EXPECT_EQ(doca_flow_pipe_create(cfg, nullptr, &fwd, &made), DOCA_ERROR_INVALID_VALUE) << number;
        DOCA_OK(doca_flow_pipe_cfg_destroy(cfg));
    }
    DOCA_OK(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(in[1].queue))); // it may start again
    add(root, base, 1);
    DOCA_OK(doca_eth_rxq_destroy(others.queue));
    others.memory.end();
}

} // namespace
} // namespace weftio::test
