// Time of the host functions of DOCA GPUNetIO 2.10 (meson-compat/doca-2.10) that programs call in their loops.
//
//   ./doca_calls_bench
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "doca_buf_inventory.h"
#include "doca_dma.h"
#include "doca_eth_rxq.h"
#include "doca_eth_txq.h"
#include "doca_flow.h"
#include "doca_gpunetio.h"
#include "doca_log.h"

namespace {

using namespace weftio;
using steady = std::chrono::steady_clock;

void done(doca_error_t result, const char* call)
{
    if (result != DOCA_SUCCESS)
        throw std::runtime_error(fmt::format("doca_calls_bench: {}: {}", call, doca_error_get_name(result)));
}
#define DONE(CALL) done(CALL, #CALL)

/// A function, or functions that follow each other, and what is called once before each round.
struct measured {
    std::string name;
    std::function<void()> call;
    unsigned calls = 20000;
};

/// What a running program holds: queues of kernels, tasks, a semaphore, a pipe.
class program {
 public:
    program()
    {
        setenv("WEFTIO_DOCA_DEVICES", "0000:01:00.0=null", 1);
        doca_devinfo** list = nullptr;
        std::uint32_t count = 0;
        DONE(doca_devinfo_create_list(&list, &count));
        DONE(doca_dev_open(list[0], &dev_));
        DONE(doca_gpu_create("cpu", &gpu_));
        DONE(doca_pe_create(&pe_));
        make_queues();
        make_pipe();
        make_semaphore();
        make_tasks();
    }

    std::vector<measured> all()
    {
        return {{"doca_pe_progress, 2 contexts, idle", [this] { doca_pe_progress(pe_); }},
                {"doca_gpu_semaphore_get_status",
                 [this] {
                     doca_gpu_semaphore_status status{};
                     DONE(doca_gpu_semaphore_get_status(semaphore_, 7, &status));
                 }},
                {"doca_gpu_semaphore_set_status",
                 [this] { DONE(doca_gpu_semaphore_set_status(semaphore_, 7, DOCA_GPU_SEMAPHORE_STATUS_FREE)); }},
                {"doca_gpu_semaphore_get_custom_info_addr",
                 [this] {
                     void* info = nullptr;
                     DONE(doca_gpu_semaphore_get_custom_info_addr(semaphore_, 7, &info));
                 }},
                {"doca_eth_txq_calculate_timestamp",
                 [this] {
                     std::uint64_t value = 0;
                     DONE(doca_eth_txq_calculate_timestamp(txq_, 1'700'000'000'000'000'000, &value));
                 }},
                {"doca_ctx_get_state",
                 [this] {
                     doca_ctx_states state{};
                     DONE(doca_ctx_get_state(doca_eth_txq_as_doca_ctx(txq_), &state));
                 }},
                {"doca_buf_inventory_buf_get_by_data and doca_buf_dec_refcount",
                 [this] {
                     doca_buf* buf = nullptr;
                     DONE(doca_buf_inventory_buf_get_by_data(inventory_, mmap_, cpu_memory_, 64, &buf));
                     DONE(doca_buf_dec_refcount(buf, nullptr));
                 }},
                {"doca_dma_task_memcpy_alloc_init and doca_task_free",
                 [this] {
                     doca_dma_task_memcpy* task = nullptr;
                     DONE(doca_dma_task_memcpy_alloc_init(dma_, source_, destination_, {}, &task));
                     doca_task_free(doca_dma_task_memcpy_as_task(task));
                 }},
                {"doca_log_line below the level",
                 [] { doca_log_line(DOCA_LOG_LEVEL_DEBUG, __FILE__, __LINE__, __func__, "%d", 7); }},
                {"doca_flow_entries_process", [this] { DONE(doca_flow_entries_process(port_, 0, 0, 0)); }},
                {"doca_flow_pipe_add_entry and doca_flow_pipe_remove_entry",
                 [this] {
                     doca_flow_pipe_entry* entry = nullptr;
                     doca_flow_match match{};
                     match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
                     match.outer.ip4.dst_ip = ++address_;
                     DONE(doca_flow_pipe_add_entry(0, pipe_, &match, nullptr, nullptr, nullptr, 0, nullptr, &entry));
                     DONE(doca_flow_pipe_remove_entry(0, 0, entry));
                 },
                 200}};
    }

 private:
    void make_queues()
    {
        constexpr std::uint32_t packets = 1024, bytes = 2048;
        DONE(doca_gpu_mem_alloc(gpu_, packets * bytes, 65536, DOCA_GPU_MEM_TYPE_GPU_CPU, &memory_, &cpu_memory_));
        DONE(doca_mmap_create(&mmap_));
        DONE(doca_mmap_add_dev(mmap_, dev_));
        DONE(doca_mmap_set_memrange(mmap_, memory_, packets * bytes));
        DONE(doca_mmap_start(mmap_));
        doca_eth_rxq* rxq = nullptr;
        DONE(doca_eth_rxq_create(dev_, packets, bytes, &rxq));
        DONE(doca_eth_rxq_set_pkt_buf(rxq, mmap_, 0, packets * bytes));
        DONE(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(rxq), gpu_));
        DONE(doca_ctx_start(doca_eth_rxq_as_doca_ctx(rxq)));
        DONE(doca_eth_rxq_get_flow_queue_id(rxq, &number_));
        DONE(doca_eth_txq_create(dev_, 1024, &txq_));
        DONE(doca_ctx_set_datapath_on_gpu(doca_eth_txq_as_doca_ctx(txq_), gpu_));
        DONE(doca_pe_connect_ctx(pe_, doca_eth_txq_as_doca_ctx(txq_)));
        DONE(doca_ctx_start(doca_eth_txq_as_doca_ctx(txq_)));
    }
    void make_pipe()
    {
        doca_flow_cfg* cfg = nullptr;
        doca_flow_port_cfg* port_cfg = nullptr;
        doca_flow_pipe_cfg* pipe_cfg = nullptr;
        doca_flow_match match{};
        match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
        match.outer.ip4.dst_ip = 0xffffffff;
        doca_flow_fwd fwd{};
        fwd.type = DOCA_FLOW_FWD_RSS;
        fwd.rss.queues_array = &number_;
        fwd.rss.nr_queues = 1;
        DONE(doca_flow_cfg_create(&cfg));
        DONE(doca_flow_init(cfg));
        DONE(doca_flow_port_cfg_create(&port_cfg));
        DONE(doca_flow_port_cfg_set_dev(port_cfg, dev_));
        DONE(doca_flow_port_start(port_cfg, &port_));
        DONE(doca_flow_pipe_cfg_create(&pipe_cfg, port_));
        DONE(doca_flow_pipe_cfg_set_is_root(pipe_cfg, true));
        DONE(doca_flow_pipe_cfg_set_match(pipe_cfg, &match, nullptr));
        DONE(doca_flow_pipe_create(pipe_cfg, &fwd, nullptr, &pipe_));
        match.outer.ip4.dst_ip = 1;
        DONE(doca_flow_pipe_add_entry(0, pipe_, &match, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
    }
    void make_semaphore()
    {
        DONE(doca_gpu_semaphore_create(gpu_, &semaphore_));
        DONE(doca_gpu_semaphore_set_memory_type(semaphore_, DOCA_GPU_MEM_TYPE_CPU_GPU));
        DONE(doca_gpu_semaphore_set_items_num(semaphore_, 1024));
        DONE(doca_gpu_semaphore_set_custom_info(semaphore_, 64, DOCA_GPU_MEM_TYPE_CPU_GPU));
        DONE(doca_gpu_semaphore_start(semaphore_));
    }
    void make_tasks()
    {
        const auto callback = [](doca_dma_task_memcpy*, doca_data, doca_data) {};
        DONE(doca_dma_create(dev_, &dma_));
        DONE(doca_dma_task_memcpy_set_conf(dma_, callback, callback, 16));
        DONE(doca_pe_connect_ctx(pe_, doca_dma_as_ctx(dma_)));
        DONE(doca_ctx_start(doca_dma_as_ctx(dma_)));
        DONE(doca_buf_inventory_create(64, &inventory_));
        DONE(doca_buf_inventory_start(inventory_));
        DONE(doca_buf_inventory_buf_get_by_data(inventory_, mmap_, cpu_memory_, 64, &source_));
        DONE(doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, static_cast<char*>(cpu_memory_) + 4096, 64,
                                                &destination_));
    }

    doca_dev* dev_ = nullptr;
    doca_gpu* gpu_ = nullptr;
    doca_pe* pe_ = nullptr;
    doca_mmap* mmap_ = nullptr;
    void *memory_ = nullptr, *cpu_memory_ = nullptr;
    std::uint16_t number_ = 0;
    doca_eth_txq* txq_ = nullptr;
    doca_flow_port* port_ = nullptr;
    doca_flow_pipe* pipe_ = nullptr;
    std::uint32_t address_ = 1;
    doca_gpu_semaphore* semaphore_ = nullptr;
    doca_dma* dma_ = nullptr;
    doca_buf_inventory* inventory_ = nullptr;
    doca_buf *source_ = nullptr, *destination_ = nullptr;
};

int run(const bench::common_options& wanted)
{
    program held;
    bench::table table("doca_calls_bench");
    for (const measured& one : held.all()) {
        std::vector<double> values;
        for (unsigned round = 0; round < wanted.rounds; ++round) {
            const auto start = steady::now();
            for (unsigned call = 0; call < one.calls; ++call)
                one.call();
            values.push_back(std::chrono::duration<double, std::micro>(steady::now() - start).count() / one.calls);
        }
        table.add({.name = one.name, .unit = "us", .values = values});
    }
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    bench::common_options wanted;
    CLI::App app{"Time of the host functions of DOCA GPUNetIO 2.10 that programs call in their loops."};
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
