// RDMA of kernels over connections by exchanged addresses.
#include <atomic>
#include <thread>

#include "rdma_ends.hpp"
#include "weftio/rdma.hpp"

namespace weftio::test {
namespace {

/// Writes elements [0, count) with the strong functions, a block's lanes at once; one commit.
void write_strong(doca_gpu_dev_rdma* rdma, std::uint32_t connection, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote,
                  std::uint32_t count, doca_gpu_dev_rdma_write_flags flags, rdma_report* out)
{
    for (std::uint32_t element = weftio_lane(); element < count; element += weftio_block_lanes())
        out->wrong +=
            doca_gpu_dev_rdma_write_strong(rdma, connection, element_of(remote, element), 8, element_of(local, element),
                                           8, rdma_end::element_bytes - 8, 1000 + element, flags) != DOCA_SUCCESS;
    weftio_block_barrier();
    if (weftio_lane())
        return;
    out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, connection) != DOCA_SUCCESS;
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
    out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, connection) != out->status; // of nothing
    doca_gpu_dev_rdma_wait_all(rdma, &out->commits_again);
}

/// Writes elements [0, count), a block's lanes at a time, at masked positions of a ring that is smaller.
void write_weak(doca_gpu_dev_rdma* rdma, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote, std::uint32_t count,
                rdma_report* out)
{
    const std::uint32_t lane = weftio_lane(), lanes = weftio_block_lanes();
    std::uint32_t position = 0, mask = 0;

    out->wrong += doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask) != DOCA_SUCCESS;
    weftio_block_barrier();
    for (std::uint32_t done = 0; done < count; done += lanes) {
        const std::uint32_t element = done + lane;
        out->wrong += doca_gpu_dev_rdma_write_weak(rdma, 0, element_of(remote, element), 0, element_of(local, element),
                                                   0, rdma_end::element_bytes, element, DOCA_GPU_RDMA_WRITE_FLAG_IMM,
                                                   (position + element) & mask) != DOCA_SUCCESS;
        weftio_block_barrier();
        if (lane == 0)
            out->wrong += doca_gpu_dev_rdma_commit_weak(rdma, 0, lanes) != DOCA_SUCCESS;
        weftio_block_barrier();
    }
    if (lane == 0)
        out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

/// Posts `count` receives, without buffers or into the elements, and waits for all of them.
void take_messages(doca_gpu_dev_rdma* rdma, doca_gpu_buf_arr* buffers, std::uint32_t count, rdma_report* out)
{
    doca_gpu_dev_rdma_r* receives = nullptr;
    std::uint32_t none = 77;

    out->wrong += doca_gpu_dev_rdma_get_recv(rdma, &receives) != DOCA_SUCCESS;
    for (std::uint32_t post = 0; post < count; ++post)
        out->wrong += doca_gpu_dev_rdma_recv_strong(receives, buffers ? element_of(buffers, post) : nullptr,
                                                    rdma_end::element_bytes - 16, 16, 0) != DOCA_SUCCESS;
    out->wrong +=
        doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &none, nullptr) != DOCA_SUCCESS ||
        none; // nothing is committed
    out->wrong += doca_gpu_dev_rdma_recv_commit_strong(receives) != DOCA_SUCCESS;
    out->status =
        doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &out->received, out->immediates);
}

TEST_F(DocaRdma, WritesAreThereWhenTheWaitReturns)
{
    start();
    connect();
    auto writer = launch(write_strong, 4u, client.handle, 0u, client.local, client.remote, 60u,
                         DOCA_GPU_RDMA_WRITE_FLAG_NONE, &sent);
    ASSERT_TRUE(finish(writer));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(sent.commits, 1u);
    EXPECT_EQ(sent.commits_again, 0u);
    for (std::uint32_t element = 0; element < 60; ++element) {
        EXPECT_EQ(server.element(element)[7], 0u);
        ASSERT_EQ(server.element(element)[8], 100u + element);
        ASSERT_EQ(server.element(element)[255], 100u + element);
    }
    EXPECT_EQ(server.element(60)[8], 0u);
    end();
}

TEST_F(DocaRdma, WeakWritesWithImmediatesCompleteReceivesInOrder)
{
    start();
    connect();
    auto receiver = launch(take_messages, 1u, server.handle, static_cast<doca_gpu_buf_arr*>(nullptr), 128u, &got);
    auto writer = launch(write_weak, 8u, client.handle, client.local, client.remote, 128u, &sent);
    ASSERT_TRUE(finish(writer) && finish(receiver));
    EXPECT_EQ(sent.wrong + got.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(sent.commits, 16u);
    EXPECT_EQ(got.status, DOCA_SUCCESS);
    EXPECT_EQ(got.received, 128u);
    for (std::uint32_t element = 0; element < 128; ++element) {
        ASSERT_EQ(got.immediates[element], element);
        ASSERT_EQ(server.element(element)[255], static_cast<std::uint8_t>(100 + element));
    }
    end();
}

/// Sends elements 0 to 3: strong with an immediate, strong without, and both weak after them.
void send_messages(doca_gpu_dev_rdma* rdma, doca_gpu_buf_arr* local, rdma_report* out)
{
    std::uint32_t position = 0, mask = 0;

    out->wrong += doca_gpu_dev_rdma_send_strong(rdma, 0, element_of(local, 0), 0, 100, 5,
                                                DOCA_GPU_RDMA_SEND_FLAG_IMM) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_send_strong(rdma, 0, element_of(local, 1), 50, 100, 6,
                                                DOCA_GPU_RDMA_SEND_FLAG_NONE) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, 0) != DOCA_SUCCESS;
    doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask);
    out->wrong += position != 2 || mask != 63;
    out->wrong += doca_gpu_dev_rdma_send_weak(rdma, 0, element_of(local, 3), 0, 100, 8, DOCA_GPU_RDMA_SEND_FLAG_NONE,
                                              position + 1) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_send_weak(rdma, 0, element_of(local, 2), 0, 0, 7, DOCA_GPU_RDMA_SEND_FLAG_IMM,
                                              position) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_commit_weak(rdma, 0, 2) != DOCA_SUCCESS;
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

TEST_F(DocaRdma, MessagesGoToReceivesInOrder)
{
    start();
    connect();
    auto receiver = launch(take_messages, 1u, server.handle, server.local, 4u, &got);
    auto sender = launch(send_messages, 1u, client.handle, client.local, &sent);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    EXPECT_EQ(sent.wrong + got.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(sent.commits, 2u);
    EXPECT_EQ(got.status, DOCA_SUCCESS);
    ASSERT_EQ(got.received, 4u);
    EXPECT_EQ(got.immediates[0], 5u);
    EXPECT_EQ(got.immediates[1], 0xffffffffu);
    EXPECT_EQ(got.immediates[2], 7u);
    EXPECT_EQ(got.immediates[3], 0xffffffffu);
    EXPECT_EQ(server.element(0)[15], 0u);
    EXPECT_EQ(server.element(0)[16], 100u);
    EXPECT_EQ(server.element(1)[115], 101u);
    EXPECT_EQ(server.element(1)[116], 0u);
    EXPECT_EQ(server.element(2)[16], 0u);
    EXPECT_EQ(server.element(3)[16], 103u);
    end();
}

/// Reads element 0 strongly, and element 1 weakly.
void read_elements(doca_gpu_dev_rdma* rdma, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote, rdma_report* out)
{
    std::uint32_t position = 0, mask = 0;

    out->wrong += doca_gpu_dev_rdma_read_strong(rdma, 0, element_of(remote, 0), 10, element_of(local, 5), 20, 30, 0) !=
                  DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, 0) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_wait_all(rdma, &out->commits) != DOCA_SUCCESS;
    out->wrong += reinterpret_cast<std::uint8_t*>(element_of(local, 5)->address)[20] != 200;
    doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask);
    out->wrong += doca_gpu_dev_rdma_read_weak(rdma, 0, element_of(remote, 1), 0, element_of(local, 6), 0, 256, 0,
                                              position & mask) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_commit_weak(rdma, 0, 1) != DOCA_SUCCESS;
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

TEST_F(DocaRdma, ReadsAreThereWhenTheWaitReturns)
{
    DOCA_OK(doca_rdma_set_gid_index(client.rdma, 1)); // IPv6, link-local
    DOCA_OK(doca_rdma_set_gid_index(server.rdma, 1));
    start();
    server.fill(200);
    connect();
    EXPECT_TRUE(rdma_address::of_text(client.text.c_str()).peer().address.starts_with("fe80::"));
    auto reader = launch(read_elements, 1u, client.handle, client.local, client.remote, &sent);
    ASSERT_TRUE(finish(reader));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(client.element(5)[19], 105u);
    EXPECT_EQ(client.element(5)[49], 200u);
    EXPECT_EQ(client.element(5)[50], 105u);
    EXPECT_EQ(client.element(6)[255], 201u);
    end();
}

/// Writes one element on a connection, and then waits until `*go_on` is not 0 before it writes another.
void write_twice(doca_gpu_dev_rdma* rdma, std::uint32_t connection, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote,
                 std::uint32_t* go_on, rdma_report* out)
{
    for (std::uint32_t round = 0; round < 2; ++round) {
        const std::uint32_t element = connection * 2 + round;
        std::uint32_t commits = 0;
        out->wrong +=
            doca_gpu_dev_rdma_write_strong(rdma, connection, element_of(remote, element), 0, element_of(local, element),
                                           0, 256, 40 + element, DOCA_GPU_RDMA_WRITE_FLAG_IMM) != DOCA_SUCCESS;
        out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, connection) != DOCA_SUCCESS;
        out->status = doca_gpu_dev_rdma_wait_all(rdma, &commits);
        out->commits += commits;
        for (std::uint32_t attempt = 0; !DOCA_GPUNETIO_VOLATILE(*go_on); ++attempt)
            weftio_relax(attempt);
    }
    std::uint32_t position = 0, mask = 0;
    out->wrong += doca_gpu_dev_rdma_get_info(rdma, connection, &position, &mask) != DOCA_SUCCESS || position != 2;
}

TEST_F(DocaRdma, SecondConnectionIsMadeWhileAKernelUsesTheFirst)
{
    DOCA_OK(doca_rdma_set_max_num_connections(client.rdma, 2));
    DOCA_OK(doca_rdma_set_max_num_connections(server.rdma, 2));
    start();
    connect();
    std::uint32_t go_on[2] = {0, 1};
    auto receiver = launch(take_messages, 1u, server.handle, static_cast<doca_gpu_buf_arr*>(nullptr), 4u, &got);
    auto writer = launch(write_twice, 1u, client.handle, 0u, client.local, client.remote, go_on, &sent);
    while (!DOCA_GPUNETIO_VOLATILE(sent.commits) && writer.alive())
        std::this_thread::yield();
    connect();
    ASSERT_TRUE(writer.alive());
    rdma_report other{};
    auto second_writer = launch(write_twice, 1u, client.handle, 1u, client.local, client.remote, go_on + 1, &other);
    ASSERT_TRUE(finish(second_writer));
    DOCA_GPUNETIO_VOLATILE(go_on[0]) = 1;
    ASSERT_TRUE(finish(writer) && finish(receiver));
    EXPECT_EQ(sent.wrong + other.wrong + got.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(other.status, DOCA_SUCCESS);
    EXPECT_EQ(sent.commits + other.commits, 4u);
    const std::vector<std::uint32_t> arrived(got.immediates, got.immediates + got.received);
    EXPECT_EQ(arrived, (std::vector<std::uint32_t>{40, 42, 43, 41}));
    EXPECT_EQ(server.element(3)[255], 103u);
    client.progress();
    EXPECT_EQ(client.noted.established, client.connections);
    const void* descriptor = nullptr;
    std::size_t size = 0;
    doca_rdma_connection* none = nullptr;
    EXPECT_EQ(doca_rdma_export(client.rdma, &descriptor, &size, &none), DOCA_ERROR_FULL);
    end();
}

void wait_for_all(doca_gpu_dev_rdma* rdma, rdma_report* out)
{
    out->commits = 77;
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

TEST_F(DocaRdma, WritesWithoutPermissionFailAtBothEnds)
{
    DOCA_OK(doca_rdma_set_permissions(server.rdma, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ));
    start();
    connect();
    client.progress();
    server.progress();
    auto writer = launch(write_strong, 1u, client.handle, 0u, client.local, client.remote, 1u,
                         DOCA_GPU_RDMA_WRITE_FLAG_NONE, &sent);
    ASSERT_TRUE(finish(writer));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_ERROR_IO_FAILED);
    EXPECT_EQ(sent.commits, 0u);
    EXPECT_EQ(server.element(0)[8], 0u);
    EXPECT_TRUE(client.progress_until([&] { return !client.noted.ended.empty(); }));
    EXPECT_TRUE(server.progress_until([&] { return !server.noted.ended.empty(); }));
    EXPECT_EQ(client.noted.ended, client.connections);
    EXPECT_EQ(server.noted.ended, server.connections);
    auto receiver = launch(take_messages, 1u, server.handle, server.local, 4u, &got);
    ASSERT_TRUE(finish(receiver));
    EXPECT_EQ(got.status, DOCA_ERROR_IO_FAILED);
    auto with_commits = launch(wait_for_all, 1u, client.handle, &sent);
    auto without = launch(wait_for_all, 1u, server.handle, &got);
    ASSERT_TRUE(finish(with_commits) && finish(without));
    EXPECT_EQ(sent.status, DOCA_ERROR_IO_FAILED);
    EXPECT_EQ(got.status, DOCA_SUCCESS); // it waits for nothing of this connection
    EXPECT_EQ(sent.commits + got.commits, 0u);
    sent = {};
    connect(); // at the same index
    auto reader = launch(read_elements, 1u, client.handle, client.local, client.remote, &sent);
    ASSERT_TRUE(finish(reader));
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    end();
}

TEST_F(DocaRdma, WritesIntoAStoppedMmapFailThoughItsArraysAreAlive)
{
    for (const bool is_destroyed : {false, true}) {
        if (is_destroyed) {
            client = {};
            server = {};
            client.create(gpu, first);
            server.create(gpu, second);
        }
        start();
        connect();
        auto writer = launch(write_strong, 1u, client.handle, 0u, client.local, client.remote, 1u,
                             DOCA_GPU_RDMA_WRITE_FLAG_NONE, &sent);
        ASSERT_TRUE(finish(writer));
        ASSERT_EQ(sent.status, DOCA_SUCCESS);
        server.element(0)[8] = 1;
        DOCA_OK(is_destroyed ? doca_mmap_destroy(server.mmap) : doca_mmap_stop(server.mmap));
        writer = launch(write_strong, 1u, client.handle, 0u, client.local, client.remote, 1u,
                        DOCA_GPU_RDMA_WRITE_FLAG_NONE, &sent);
        ASSERT_TRUE(finish(writer));
        EXPECT_EQ(sent.status, DOCA_ERROR_IO_FAILED);
        EXPECT_EQ(server.element(0)[8], 1u);
        if (is_destroyed) {
            DOCA_OK(doca_mmap_create(&server.mmap)); // for end()
        }
        end();
    }
}

TEST_F(DocaRdma, MessagesToAPeerWithoutReceivesWaitUntilTheContextIsStopped)
{
    start();
    connect();
    auto sender = launch(send_messages, 1u, client.handle, client.local, &sent);
    while (weftio_load_relaxed_u32(&client.handle->connections[0]->committed) < 2)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // many times what a peer asks to wait
    EXPECT_TRUE(sender.alive());
    DOCA_OK(doca_ctx_stop(client.context));
    ASSERT_TRUE(finish(sender));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_EQ(sent.status, DOCA_ERROR_SHUTDOWN);
    DOCA_OK(doca_ctx_start(client.context)); // for end()
    end();
}

/// Arguments that are refused, and rings that are full.
void use_wrongly(doca_gpu_dev_rdma* rdma, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote, rdma_report* out)
{
    auto *here = element_of(local, 0), *there = element_of(remote, 0);
    constexpr auto plain = DOCA_GPU_RDMA_WRITE_FLAG_NONE;
    constexpr auto message = DOCA_GPU_RDMA_SEND_FLAG_NONE;
    std::uint32_t number = 0, mask = 0;
    doca_gpu_dev_rdma_r* receives = nullptr;
    doca_gpu_dev_rdma_get_recv(rdma, &receives);
    for (const doca_error_t status :
         {doca_gpu_dev_rdma_write_strong(nullptr, 0, there, 0, here, 0, 1, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 1, there, 0, here, 0, 1, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, here, 0, here, 0, 1, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, there, 0, there, 0, 1, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, there, 0, nullptr, 0, 1, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, nullptr, 0, here, 0, 0, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, there, 1, here, 0, 256, 0, plain),
          doca_gpu_dev_rdma_write_strong(rdma, 0, there, 0, here, ~0ull, 2, 0, plain),
          doca_gpu_dev_rdma_write_weak(rdma, 1, there, 0, here, 0, 1, 0, plain, 0),
          doca_gpu_dev_rdma_read_strong(rdma, 0, there, 0, here, 200, 100, 0),
          doca_gpu_dev_rdma_read_weak(rdma, 7, there, 0, here, 0, 1, 0, 0),
          doca_gpu_dev_rdma_send_strong(rdma, 0, there, 0, 1, 0, message),
          doca_gpu_dev_rdma_send_weak(rdma, 0, here, 0, 257, 0, message, 0),
          doca_gpu_dev_rdma_commit_strong(rdma, 1),
          doca_gpu_dev_rdma_commit_weak(rdma, 0, 65),
          doca_gpu_dev_rdma_get_info(rdma, 1, &number, &mask),
          doca_gpu_dev_rdma_wait_all(nullptr, &number),
          doca_gpu_dev_rdma_get_recv(nullptr, &receives),
          doca_gpu_dev_rdma_recv_strong(receives, there, 1, 0, 0),
          doca_gpu_dev_rdma_recv_strong(receives, here, 9, 250, 0),
          doca_gpu_dev_rdma_recv_weak(nullptr, here, 1, 0, 0, 0),
          doca_gpu_dev_rdma_recv_get_info(nullptr, &number, &mask),
          doca_gpu_dev_rdma_recv_commit_strong(nullptr),
          doca_gpu_dev_rdma_recv_commit_weak(receives, 129),
          doca_gpu_dev_rdma_recv_wait_all(nullptr, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &number, nullptr)})
        out->wrong += status != DOCA_ERROR_INVALID_VALUE;
    for (std::uint32_t entry = 0; entry <= 64; ++entry)
        out->immediates[0] +=
            doca_gpu_dev_rdma_write_strong(rdma, 0, there, 0, here, 0, 1, 0, plain) == DOCA_ERROR_FULL;
    out->wrong += doca_gpu_dev_rdma_recv_get_info(receives, &number, &mask) != DOCA_SUCCESS || number || mask != 127;
    for (std::uint32_t post = 0; post < 128; ++post)
        out->wrong += doca_gpu_dev_rdma_recv_weak(receives, nullptr, 0, 0, 0, post) != DOCA_SUCCESS;
    out->wrong += doca_gpu_dev_rdma_recv_commit_weak(receives, 128) != DOCA_SUCCESS;
    out->immediates[1] += doca_gpu_dev_rdma_recv_weak(receives, nullptr, 0, 0, 0, 0) == DOCA_ERROR_FULL;
    out->immediates[1] += doca_gpu_dev_rdma_recv_strong(receives, nullptr, 0, 0, 0) == DOCA_ERROR_FULL;
    out->status =
        doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB, &out->received, out->immediates + 2);
}

TEST_F(DocaRdma, WrongArgumentsAreRefusedAndFullRingsTold)
{
    start();
    connect();
    sent.received = 77;
    auto kernel = launch(use_wrongly, 1u, client.handle, client.local, client.remote, &sent);
    ASSERT_TRUE(finish(kernel));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_EQ(sent.immediates[0], 1u);
    EXPECT_EQ(sent.immediates[1], 2u);
    EXPECT_EQ(sent.status, DOCA_SUCCESS);
    EXPECT_EQ(sent.received, 0u); // without a wait
    end();
}

/// Sends nothing over a connection that is not there, and waits for it.
void send_to_nobody(doca_gpu_dev_rdma* rdma, rdma_report* out)
{
    out->wrong += doca_gpu_dev_rdma_send_strong(rdma, 0, nullptr, 0, 0, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE) !=
                  DOCA_ERROR_INVALID_VALUE;
    out->wrong += doca_gpu_dev_rdma_commit_strong(rdma, 0) != DOCA_ERROR_INVALID_VALUE;
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

TEST_F(DocaRdma, KernelsMeetNoConnectionBeforeItIsMadeAndAfterItsEnd)
{
    start();
    const std::string text = server.exported(), own = client.exported();
    doca_rdma_connection* const connection = client.connections[0];
    for (const bool was_connected : {false, true}) {
        if (was_connected) {
            DOCA_OK(doca_rdma_connect(client.rdma, text.data(), text.size(), connection));
            DOCA_OK(doca_rdma_connection_disconnect(connection));
        }
        rdma_report report{};
        auto kernel = launch(send_to_nobody, 1u, client.handle, &report);
        ASSERT_TRUE(kernel.wait_for(std::chrono::seconds(20)));
        EXPECT_EQ(report.wrong, 0u);
        EXPECT_EQ(report.status, DOCA_SUCCESS);
    }
    end();
}

TEST_F(DocaRdma, ExportsTextAndKnowsOwnOrder)
{
    const void* descriptor = nullptr;
    std::size_t size = 0;
    doca_rdma_connection* connection = nullptr;
    EXPECT_EQ(doca_rdma_export(client.rdma, &descriptor, &size, &connection), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_rdma_get_gpu_handle(client.rdma, &client.handle), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_start(client.context), DOCA_ERROR_BAD_STATE); // it has no GPU
    EXPECT_EQ(doca_rdma_set_gid_index(client.rdma, 4), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_set_max_num_connections(client.rdma, 0), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_set_send_queue_size(client.rdma, 32769), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_set_permissions(client.rdma, 1u << 31), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_cap_task_write_is_supported(doca_dev_as_devinfo(first)), DOCA_SUCCESS);
    start();
    EXPECT_EQ(doca_rdma_set_send_queue_size(client.rdma, 64), DOCA_ERROR_BAD_STATE);
    const std::string text = server.exported(), own = client.exported();
    EXPECT_EQ(text.size(), std::strlen(text.c_str()) + 1);
    connection = client.connections[0];
    EXPECT_EQ(doca_rdma_connect(client.rdma, "rubbish", 7, connection), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_connect(client.rdma, nullptr, 7, connection), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_connect(server.rdma, text.data(), text.size(), connection), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_rdma_connection_set_user_data(connection, {.u64 = 5}));
    DOCA_OK(doca_rdma_connect(client.rdma, text.data(), text.size(), connection));
    EXPECT_EQ(doca_rdma_connect(client.rdma, text.data(), text.size(), connection), DOCA_ERROR_BAD_STATE);
    EXPECT_TRUE(client.noted.established.empty()); // the progress engine tells
    client.progress();
    EXPECT_EQ(client.noted.established, client.connections);
    EXPECT_EQ(client.noted.user_data, std::vector<std::uint64_t>{5});
    DOCA_OK(doca_rdma_connection_disconnect(connection));
    EXPECT_EQ(doca_rdma_connection_disconnect(connection), DOCA_ERROR_BAD_STATE);
    client.progress();
    EXPECT_EQ(client.noted.ended, client.connections);
    DOCA_OK(doca_ctx_stop(client.context));
    DOCA_OK(doca_ctx_start(client.context));
    EXPECT_EQ(doca_rdma_connection_disconnect(connection), DOCA_ERROR_INVALID_VALUE);
    end();
}

} // namespace
} // namespace weftio::test
