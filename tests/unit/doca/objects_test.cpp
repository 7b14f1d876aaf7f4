// Devices, memory and queues as objects: their names, which order of calls is right, what is left of destroyed ones.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "doca_dma.h"
#include "doca_dpdk.h"
#include "doca_rdma.h"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

class DocaObjects : public DocaDevices {};

TEST_F(DocaObjects, DevicesHaveTheNamesThatTheVariableGives)
{
    auto* info = doca_dev_as_devinfo(second);
    char ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE] = "";
    DOCA_OK(doca_devinfo_get_ibdev_name(info, ibdev, sizeof ibdev));
    EXPECT_STREQ(ibdev, "mlx5_1");
    EXPECT_EQ(doca_devinfo_get_ibdev_name(info, ibdev, 6), DOCA_ERROR_INVALID_VALUE);
    char iface[DOCA_DEVINFO_IFACE_NAME_SIZE] = "";
    EXPECT_EQ(doca_devinfo_get_iface_name(info, iface, sizeof iface), DOCA_ERROR_NOT_SUPPORTED); // a wire
    std::uint8_t first_mac[6] = {}, second_mac[6] = {}, is_equal = 2;
    DOCA_OK(doca_devinfo_get_mac_addr(info, second_mac, sizeof second_mac));
    DOCA_OK(doca_devinfo_get_mac_addr(doca_dev_as_devinfo(first), first_mac, sizeof first_mac));
    EXPECT_NE(std::memcmp(first_mac, second_mac, sizeof first_mac), 0);
    EXPECT_EQ(doca_devinfo_get_mac_addr(info, second_mac, 5), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_devinfo_is_equal_pci_addr(info, "0000:01:00.0", &is_equal));
    EXPECT_EQ(is_equal, 0);
    DOCA_OK(doca_devinfo_is_equal_pci_addr(info, "02:00.0", &is_equal));
    EXPECT_EQ(is_equal, 1);
    EXPECT_EQ(doca_devinfo_is_equal_pci_addr(info, "eth0", &is_equal), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaObjects, ListsCanBeMadeFromAFileAndBadEntriesAreRefused)
{
    const std::string path = testing::TempDir() + "doca-devices";
    std::ofstream(path) << "# two devices\n 0000:03:00.0 = null\n\nB5:00.1,mlx5_7=loopback # the second\n";
    setenv("WEFTIO_DOCA_DEVICES", path.c_str(), 1);
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    std::uint8_t is_equal = 0;
    DOCA_OK(doca_devinfo_create_list(&list, &count));
    ASSERT_EQ(count, 2u);
    DOCA_OK(doca_devinfo_is_equal_pci_addr(list[1], "0000:b5:00.1", &is_equal));
    EXPECT_EQ(is_equal, 1);
    DOCA_OK(doca_devinfo_destroy_list(list));
    EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_ERROR_INVALID_VALUE);
    for (const char* bad : {"eth0=iface:eth0", "0000:03:00.0", "0000:03:00.0=null;03:00.0=loopback",
                            "0000:03:00.0,mlx5_0,10.0.0.300=null", "/nowhere/at/all", "/tmp", ".",
                            "0000:03:00.0,mlx5_0=null;0000:03:00.1,mlx5_0=loopback"}) {
        setenv("WEFTIO_DOCA_DEVICES", bad, 1);
        EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_ERROR_BAD_CONFIG) << bad;
    }
}

TEST_F(DocaObjects, ADeviceWhosePortIsNotThereCannotBeOpened)
{
    setenv("WEFTIO_DOCA_DEVICES", "0000:03:00.0=iface:nothing-here", 1);
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    doca_dev* dev = nullptr;
    DOCA_OK(doca_devinfo_create_list(&list, &count));
    EXPECT_EQ(doca_dev_open(list[0], &dev), DOCA_ERROR_NOT_FOUND);
    EXPECT_EQ(dev, nullptr);
    DOCA_OK(doca_devinfo_destroy_list(list));
}

TEST_F(DocaObjects, ThereAreNoRepresentors)
{
    doca_devinfo_rep** list = nullptr;
    doca_dev_rep* rep = nullptr;
    std::uint32_t count = 1;
    std::uint8_t is_equal = 0;
    char vuid[DOCA_DEVINFO_REP_VUID_SIZE] = "";
    DOCA_OK(doca_devinfo_rep_create_list(first, DOCA_DEVINFO_REP_FILTER_ALL, &list, &count));
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(doca_devinfo_rep_get_vuid(list[0], vuid, sizeof vuid), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_devinfo_rep_is_equal_pci_addr(list[0], first_pci, &is_equal), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_dev_rep_open(list[0], &rep), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_devinfo_rep_destroy_list(list));
}

TEST_F(DocaObjects, MmapsAreConfiguredThenStarted)
{
    doca_mmap* mmap = nullptr;
    void* memory = nullptr;
    DOCA_OK(doca_gpu_mem_alloc(gpu, 65536, 0, DOCA_GPU_MEM_TYPE_GPU, &memory, nullptr));
    DOCA_OK(doca_mmap_create(&mmap));
    EXPECT_EQ(doca_mmap_start(mmap), DOCA_ERROR_BAD_STATE); // no range
    EXPECT_EQ(doca_mmap_stop(mmap), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_mmap_set_permissions(mmap, 1u << 31), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_mmap_set_memrange(mmap, memory, SIZE_MAX), DOCA_ERROR_INVALID_VALUE);
    int dmabuf = -1;
    EXPECT_EQ(doca_gpu_dmabuf_fd(gpu, memory, 65536, &dmabuf), DOCA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(doca_gpu_dmabuf_fd(gpu, memory, 65537, &dmabuf), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_mmap_set_dmabuf_memrange(mmap, 3, memory, 0, 65536), DOCA_ERROR_NOT_SUPPORTED);
    DOCA_OK(doca_mmap_set_memrange(mmap, static_cast<char*>(memory) + 4096, 4096));
    DOCA_OK(doca_mmap_add_dev(mmap, first));
    EXPECT_EQ(doca_mmap_rm_dev(mmap, second), DOCA_ERROR_NOT_FOUND);
    DOCA_OK(doca_mmap_rm_dev(mmap, first));
    DOCA_OK(doca_mmap_start(mmap));
    DOCA_OK(doca_mmap_add_dev(mmap, first));
    EXPECT_EQ(doca_mmap_rm_dev(mmap, first), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_mmap_start(mmap), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_mmap_set_permissions(mmap, 0), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_mmap_stop(mmap));
    DOCA_OK(doca_mmap_destroy(mmap));
    EXPECT_EQ(doca_mmap_destroy(mmap), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_gpu_mem_free(gpu, memory));
    EXPECT_EQ(doca_gpu_mem_free(gpu, memory), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaObjects, MemoryOutlivesItsGpuUntilItIsFreed)
{
    doca_gpu* other = nullptr;
    void *kept = nullptr, *freed = nullptr, *cpu_kept = nullptr, *cpu_freed = nullptr;
    DOCA_OK(doca_gpu_create("cpu", &other));
    DOCA_OK(doca_gpu_mem_alloc(other, 1 << 20, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &kept, &cpu_kept));
    DOCA_OK(doca_gpu_mem_alloc(other, 1 << 20, 4096, DOCA_GPU_MEM_TYPE_GPU_CPU, &freed, &cpu_freed));
    DOCA_OK(doca_gpu_destroy(other));
    EXPECT_EQ(doca_gpu_destroy(other), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_gpu_mem_alloc(other, 4096, 0, DOCA_GPU_MEM_TYPE_GPU, &freed, nullptr), DOCA_ERROR_INVALID_VALUE);
    std::memset(cpu_kept, 0x5a, 1 << 20); // as a kernel that still runs does
    DOCA_OK(doca_gpu_mem_free(other, freed));
    EXPECT_EQ(doca_gpu_mem_free(other, freed), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_gpu_mem_free(other, kept));
    EXPECT_EQ(doca_gpu_mem_free(other, kept), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaObjects, MmapsOfPeersComeFromDescriptors)
{
    std::vector<std::uint8_t> memory(65536);
    doca_mmap *ours = nullptr, *theirs = nullptr;
    const void* descriptor = nullptr;
    std::size_t bytes = 0;
    DOCA_OK(doca_mmap_create(&ours));
    DOCA_OK(doca_mmap_set_memrange(ours, memory.data(), memory.size())); // the host's
    DOCA_OK(doca_mmap_set_permissions(ours, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
    DOCA_OK(doca_mmap_add_dev(ours, first));
    EXPECT_EQ(doca_mmap_export_rdma(ours, first, &descriptor, &bytes), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_mmap_start(ours));
    EXPECT_EQ(doca_mmap_export_rdma(ours, first, &descriptor, &bytes), DOCA_ERROR_NOT_PERMITTED);
    DOCA_OK(doca_mmap_stop(ours));
    DOCA_OK(doca_mmap_set_permissions(ours, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE));
    DOCA_OK(doca_mmap_start(ours));
    EXPECT_EQ(doca_mmap_export_rdma(ours, second, &descriptor, &bytes), DOCA_ERROR_NOT_FOUND);
    DOCA_OK(doca_mmap_export_rdma(ours, first, &descriptor, &bytes));
    DOCA_OK(doca_mmap_create_from_export(nullptr, descriptor, bytes, second, &theirs));
    EXPECT_EQ(doca_mmap_create_from_export(nullptr, descriptor, bytes - 1, second, &theirs), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_mmap_create_from_export(nullptr, memory.data(), 100, second, &theirs), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_mmap_start(theirs), DOCA_ERROR_BAD_STATE); // it is
    doca_buf_arr* array = nullptr;
    DOCA_OK(doca_buf_arr_create(16, &array));
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_buf_arr_set_target_gpu(array, gpu));
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_buf_arr_set_params(array, theirs, 4096, 1));
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_ERROR_INVALID_VALUE); // a byte too long
    DOCA_OK(doca_buf_arr_set_params(array, theirs, 4096, 0));
    DOCA_OK(doca_buf_arr_start(array));
    EXPECT_EQ(doca_buf_arr_set_params(array, theirs, 4096, 0), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_buf_arr_stop(array));
    EXPECT_EQ(doca_buf_arr_stop(array), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_buf_arr_destroy(array));
    DOCA_OK(doca_mmap_destroy(theirs));
    DOCA_OK(doca_mmap_destroy(ours));
}

TEST_F(DocaObjects, QueuesAreConfiguredThenStarted)
{
    doca_eth_rxq* rxq = nullptr;
    doca_eth_txq* txq = nullptr;
    doca_gpu_eth_rxq* rxq_handle = nullptr;
    doca_gpu_eth_txq* txq_handle = nullptr;
    std::uint16_t number = 0;
    std::uint32_t bytes = 0;
    EXPECT_EQ(doca_eth_rxq_create(first, 63, 2048, &rxq), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_eth_rxq_create(first, 64, 16385, &rxq), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_eth_rxq_create(first, 100, 2048, &rxq));
    EXPECT_EQ(doca_eth_rxq_set_type(rxq, DOCA_ETH_RXQ_TYPE_REGULAR), DOCA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, 1u << 20, 1u << 20, 0, &bytes),
              DOCA_ERROR_TOO_BIG);
    auto* ctx = doca_eth_rxq_as_doca_ctx(rxq);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE); // no memory
    EXPECT_EQ(doca_eth_rxq_get_gpu_handle(rxq, &rxq_handle), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_eth_rxq_get_flow_queue_id(rxq, &number), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_stop(ctx), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_eth_rxq_destroy(rxq));
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_eth_rxq_as_doca_ctx(rxq), nullptr);

    EXPECT_EQ(doca_eth_txq_create(first, 32769, &txq), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_eth_txq_create(first, 8, &txq));
    doca_eth_wait_on_time_type type{};
    DOCA_OK(doca_eth_txq_cap_get_wait_on_time_offload_supported(doca_dev_as_devinfo(first), &type));
    EXPECT_EQ(type, DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE);
    ctx = doca_eth_txq_as_doca_ctx(txq);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE); // no GPU
    DOCA_OK(doca_ctx_set_datapath_on_gpu(ctx, gpu));
    DOCA_OK(doca_eth_txq_set_l4_chksum_offload(txq, 1));
    DOCA_OK(doca_ctx_set_user_data(ctx, {.u64 = 7}));
    DOCA_OK(doca_ctx_start(ctx));
    doca_ctx_states state{};
    DOCA_OK(doca_ctx_get_state(ctx, &state));
    EXPECT_EQ(state, DOCA_CTX_STATE_RUNNING);
    DOCA_OK(doca_eth_txq_get_gpu_handle(txq, &txq_handle));
    EXPECT_EQ(doca_eth_txq_set_l4_chksum_offload(txq, 0), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx, gpu), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE);
    DOCA_OK(doca_ctx_stop(ctx));
    DOCA_OK(doca_ctx_start(ctx)); // again
    DOCA_OK(doca_eth_txq_destroy(txq));
}

TEST_F(DocaObjects, MatchesNameTypesThatAre)
{
    receiving::init_flow();
    receiving in;
    in.dev = first;
    in.start_port();
    doca_flow_pipe_cfg* cfg = nullptr;
    DOCA_OK(doca_flow_pipe_cfg_create(&cfg, in.port));
    for (int wrong = 0; wrong < 4; ++wrong) {
        doca_flow_match match{};
        match.parser_meta.outer_l3_type = wrong == 0 ? 2 : 0;
        match.parser_meta.outer_l4_type = wrong == 1 ? 99 : 0;
        match.outer.l3_type = wrong == 2 ? 5 : 0;
        match.outer.l4_type_ext = wrong == 3 ? 77 : 0;
        EXPECT_EQ(doca_flow_pipe_cfg_set_match(cfg, &match, nullptr), DOCA_ERROR_INVALID_VALUE) << wrong;
    }
    DOCA_OK(doca_flow_pipe_cfg_destroy(cfg));
    doca_flow_destroy();
}

TEST_F(DocaObjects, PortsOfPipesAreNamedByDeviceOrByNumber)
{
    doca_flow_port_cfg* cfg = nullptr;
    doca_flow_port *port = nullptr, *other = nullptr;
    DOCA_OK(doca_flow_port_cfg_create(&cfg));
    DOCA_OK(doca_flow_port_cfg_set_dev(cfg, first));
    EXPECT_EQ(doca_flow_port_start(cfg, &port), DOCA_ERROR_BAD_STATE); // before doca_flow_init
    receiving::init_flow();
    DOCA_OK(doca_flow_port_start(cfg, &port));
    EXPECT_EQ(doca_flow_port_start(cfg, &other), DOCA_ERROR_IN_USE);
    EXPECT_EQ(doca_flow_port_cfg_set_devargs(cfg, "63"), DOCA_ERROR_NOT_FOUND);
    EXPECT_EQ(doca_flow_port_cfg_set_devargs(cfg, "eth0"), DOCA_ERROR_INVALID_VALUE);
    std::uint16_t number = 0;
    EXPECT_EQ(doca_dpdk_get_first_port_id(second, &number), DOCA_ERROR_NOT_FOUND);
    DOCA_OK(doca_dpdk_port_probe(second, "dv_flow_en=2"));
    DOCA_OK(doca_dpdk_get_first_port_id(second, &number));
    DOCA_OK(doca_flow_port_cfg_set_devargs(cfg, std::to_string(number).c_str()));
    DOCA_OK(doca_flow_port_start(cfg, &other));
    DOCA_OK(doca_flow_port_cfg_destroy(cfg));
    DOCA_OK(doca_flow_port_stop(other));
    doca_flow_destroy();
    EXPECT_EQ(doca_flow_port_stop(port), DOCA_ERROR_INVALID_VALUE); // it went with flow
}

/// Descriptors that a program started by this one would inherit, as "3 -> /dev/hugepages".
std::vector<std::string> inherited_descriptors()
{
    std::vector<std::string> inherited;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int descriptor = std::stoi(entry.path().filename());
        const int flags = fcntl(descriptor, F_GETFD);
        std::error_code gone;
        if (descriptor > 2 && flags >= 0 && !(flags & FD_CLOEXEC))
            inherited.push_back(entry.path().filename().string() + " -> " +
                                std::filesystem::read_symlink(entry.path(), gone).string());
    }
    std::sort(inherited.begin(), inherited.end());
    return inherited;
}

const auto inherited_at_start = inherited_descriptors(); // before any test opens a device

TEST(DocaDescriptors, AreNotInheritedByProgramsThatAProgramStarts)
{
    setenv("WEFTIO_DOCA_DEVICES", "0000:09:00.0=loopback", 1);
    auto* dev = open_device("09:00.0");
    ASSERT_TRUE(dev);
    doca_gpu* gpu = nullptr;
    DOCA_OK(doca_gpu_create("cpu", &gpu));
    receiving in;
    in.make_queue(gpu, dev);
    sending out;
    out.make_queue(gpu, dev);
    out.start();
    doca_dma* dma = nullptr;
    DOCA_OK(doca_dma_create(dev, &dma));
    DOCA_OK(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(dma), gpu));
    DOCA_OK(doca_ctx_start(doca_dma_as_ctx(dma)));
    doca_rdma* rdma = nullptr;
    DOCA_OK(doca_rdma_create(dev, &rdma));
    DOCA_OK(doca_ctx_set_datapath_on_gpu(doca_rdma_as_ctx(rdma), gpu));
    DOCA_OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
    EXPECT_EQ(inherited_descriptors(), inherited_at_start);
    DOCA_OK(doca_rdma_destroy(rdma));
    DOCA_OK(doca_dma_destroy(dma));
    out.end();
    DOCA_OK(doca_eth_rxq_destroy(in.queue));
    in.memory.end();
    DOCA_OK(doca_gpu_destroy(gpu));
    DOCA_OK(doca_dev_close(dev));
    unsetenv("WEFTIO_DOCA_DEVICES");
}

} // namespace
} // namespace weftio::test
