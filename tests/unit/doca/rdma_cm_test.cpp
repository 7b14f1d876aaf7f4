// RDMA of kernels over connections by the connection manager.
#include "rdma_ends.hpp"

namespace weftio::test {
namespace {

constexpr std::uint16_t listening_port = 13579;

/// Writes one element with an immediate.
void write_one(doca_gpu_dev_rdma* rdma, std::uint32_t connection, doca_gpu_buf_arr* local, doca_gpu_buf_arr* remote,
               std::uint32_t element, rdma_report* out)
{
    out->wrong +=
        doca_gpu_dev_rdma_write_strong(rdma, connection, element_of(remote, element), 0, element_of(local, element), 0,
                                       256, element, DOCA_GPU_RDMA_WRITE_FLAG_NONE) != DOCA_SUCCESS;
    doca_gpu_dev_rdma_commit_strong(rdma, connection);
    out->status = doca_gpu_dev_rdma_wait_all(rdma, &out->commits);
}

/// The server has an address that the configuration names.
class DocaRdmaConnect : public DocaRdma {
 protected:
    void SetUp() override
    {
        DocaRdma::SetUp();
        DOCA_OK(doca_rdma_set_max_num_connections(client.rdma, 2));
        DOCA_OK(doca_rdma_set_max_num_connections(server.rdma, 2));
        start();
    }
    std::string devices(const std::string& wire) override
    {
        return std::string(first_pci) + ",mlx5_0=" + wire + ";" + second_pci + ",mlx5_1,10.7.0.2=" + wire;
    }
    doca_error_t begin(doca_rdma_addr_type type, const char* text, std::uint16_t port, std::uint64_t number)
    {
        doca_rdma_addr* address = nullptr;
        EXPECT_EQ(doca_rdma_addr_create(type, text, port, &address), DOCA_SUCCESS);
        const doca_error_t begun = doca_rdma_connect_to_addr(client.rdma, address, {.u64 = number});
        EXPECT_EQ(doca_rdma_addr_destroy(address), DOCA_SUCCESS);
        return begun;
    }
    /// A connection that both ends have heard of.
    void make_connection(doca_rdma_addr_type type, const char* text, std::uint64_t number)
    {
        const std::size_t before = client.noted.established.size(), of_server = server.noted.established.size();
        DOCA_OK(begin(type, text, listening_port, number));
        ASSERT_TRUE(server.progress_until([&] { return !server.noted.requested.empty(); }));
        auto* request = server.noted.requested.back();
        server.noted.requested.clear();
        DOCA_OK(doca_rdma_connection_set_user_data(request, {.u64 = number + 100}));
        char data[] = "hello";
        DOCA_OK(doca_rdma_connection_accept(request, data, sizeof data));
        EXPECT_EQ(doca_rdma_connection_accept(request, nullptr, 0), DOCA_ERROR_BAD_STATE);
        ASSERT_TRUE(client.progress_until([&] { return client.noted.established.size() > before; }));
        ASSERT_TRUE(server.progress_until([&] { return server.noted.established.size() > of_server; }));
        EXPECT_EQ(client.noted.user_data.back(), number);
        EXPECT_EQ(server.noted.user_data.back(), number + 100);
    }
    void write(std::uint32_t connection, std::uint32_t element)
    {
        sent = {};
        auto writer = launch(write_one, 1u, client.handle, connection, client.local, client.remote, element, &sent);
        ASSERT_TRUE(finish(writer));
        EXPECT_EQ(sent.wrong, 0u);
        EXPECT_EQ(sent.status, DOCA_SUCCESS);
        EXPECT_EQ(server.element(element)[255], 100u + element);
    }
};

TEST_F(DocaRdmaConnect, PeersComeByAddressAndGoByDisconnect)
{
    DOCA_OK(doca_rdma_start_listen_to_port(server.rdma, listening_port));
    EXPECT_EQ(doca_rdma_start_listen_to_port(server.rdma, listening_port), DOCA_ERROR_IN_USE);
    make_connection(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", 1);
    write(0, 1);
    make_connection(DOCA_RDMA_ADDR_TYPE_GID, "::ffff:10.7.0.2", 2);
    write(1, 2);
    EXPECT_EQ(begin(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", listening_port, 3), DOCA_ERROR_FULL);
    DOCA_OK(doca_rdma_connection_disconnect(server.noted.established[0]));
    ASSERT_TRUE(client.progress_until([&] { return !client.noted.ended.empty(); }));
    ASSERT_TRUE(server.progress_until([&] { return !server.noted.ended.empty(); }));
    EXPECT_EQ(client.noted.ended, std::vector{client.noted.established[0]});
    EXPECT_EQ(server.noted.ended, std::vector{server.noted.established[0]});
    write(1, 3); // the other one goes on
    make_connection(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", 4);
    write(0, 4);
    DOCA_OK(doca_rdma_stop_listen_to_port(server.rdma, listening_port));
    EXPECT_EQ(doca_rdma_stop_listen_to_port(server.rdma, listening_port), DOCA_ERROR_NOT_FOUND);
    end();
}

TEST_F(DocaRdmaConnect, FailuresAreToldByCallback)
{
    DOCA_OK(doca_rdma_start_listen_to_port(server.rdma, listening_port));
    DOCA_OK(begin(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", 4711, 1)); // nobody listens there
    ASSERT_TRUE(client.progress_until([&] { return !client.noted.failed.empty(); }));
    DOCA_OK(begin(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", listening_port, 2));
    ASSERT_TRUE(server.progress_until([&] { return !server.noted.requested.empty(); }));
    DOCA_OK(doca_rdma_connection_disconnect(server.noted.requested[0])); // a rejection, which is the end of it
    EXPECT_EQ(doca_rdma_connection_disconnect(server.noted.requested[0]), DOCA_ERROR_INVALID_VALUE);
    ASSERT_TRUE(client.progress_until([&] { return client.noted.failed.size() == 2; }));
    EXPECT_TRUE(client.noted.established.empty());
    server.noted.requested.clear();
    make_connection(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", 5);
    write(0, 5); // the first index is free again
    end();
}

TEST_F(DocaRdmaConnect, StopEndsAnAttemptThatNobodyAnswers)
{
    DOCA_OK(doca_rdma_start_listen_to_port(server.rdma, listening_port));
    DOCA_OK(begin(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", listening_port, 1));
    ASSERT_TRUE(server.progress_until([&] { return !server.noted.requested.empty(); }));
    end();
    EXPECT_TRUE(client.noted.failed.empty());
}

TEST_F(DocaRdmaConnect, WrongAddressesAreRefused)
{
    doca_rdma_addr* address = nullptr;
    EXPECT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "fe80::1", 1, &address), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv6, "10.7.0.2", 1, &address), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, nullptr, 1, &address), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "10.7.0.2", 0, &address), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_connect_to_addr(client.rdma, nullptr, {}), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_start_listen_to_port(nullptr, 1), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_start_listen_to_port(server.rdma, 0), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_rdma_connection_accept(nullptr, nullptr, 0), DOCA_ERROR_INVALID_VALUE);
    end();
}

} // namespace
} // namespace weftio::test
