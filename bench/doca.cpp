// What DOCA's form of a call costs over Weftio's (meson-compat/doca-2.10): a kernel receives, or sends, by the one or
// the other, in turn, on the same queue of a port whose driver always has packets (net_null).
//
//   ./doca_bench                     on the CPU
//   ./doca_bench -g cuda:0           on a GPU
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "doca.kernel.h"
#include "doca_buf_array.h"
#include "doca_eth_rxq.h"
#include "doca_eth_txq.h"
#include "doca_flow.h"
#include "doca_gpunetio.h"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(receive_by_doca, "doca.kernel.h");
WEFTIO_DEFINE_KERNEL(receive_by_weftio, "doca.kernel.h");
WEFTIO_DEFINE_KERNEL(send_by_doca, "doca.kernel.h");
WEFTIO_DEFINE_KERNEL(send_by_weftio, "doca.kernel.h");

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

struct options : bench::common_options {
    std::string device = "cpu";
    std::vector<std::uint32_t> lanes{1, 32, 256};
    unsigned milliseconds = 200;
};

constexpr std::uint32_t packets = 4096, slot_bytes = 2048, entries = 4096;

void done(doca_error_t result, const char* call)
{
    if (result != DOCA_SUCCESS)
        throw std::runtime_error(fmt::format("doca_bench: {}: {}", call, doca_error_get_name(result)));
}
#define DONE(CALL) done(CALL, #CALL)

/// A device, a receive queue of all that arrives, a send queue and frames for it.
class stand {
 public:
    explicit stand(const std::string& device)
    {
        setenv("WEFTIO_DOCA_DEVICES", "0000:01:00.0=null", 1);
        doca_devinfo** list = nullptr;
        std::uint32_t count = 0;
        DONE(doca_devinfo_create_list(&list, &count));
        DONE(doca_dev_open(list[0], &dev_));
        DONE(doca_gpu_create(device.c_str(), &gpu_));
        receive_all();
        send_frames();
    }

    doca_gpu_eth_rxq* rxq = nullptr;
    doca_gpu_eth_txq* txq = nullptr;
    doca_gpu_buf_arr* frames = nullptr;

 private:
    doca_mmap* mapped(std::size_t bytes)
    {
        void *memory = nullptr, *cpu = nullptr;
        doca_mmap* mmap = nullptr;
        DONE(doca_gpu_mem_alloc(gpu_, bytes, 65536, DOCA_GPU_MEM_TYPE_GPU_CPU, &memory, &cpu));
        DONE(doca_mmap_create(&mmap));
        DONE(doca_mmap_add_dev(mmap, dev_));
        DONE(doca_mmap_set_memrange(mmap, memory, bytes));
        DONE(doca_mmap_start(mmap));
        return mmap;
    }
    void receive_all()
    {
        doca_eth_rxq* queue = nullptr;
        std::uint16_t number = 0;
        DONE(doca_eth_rxq_create(dev_, packets, slot_bytes, &queue));
        DONE(doca_eth_rxq_set_pkt_buf(queue, mapped(packets * slot_bytes), 0, packets * slot_bytes));
        DONE(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(queue), gpu_));
        DONE(doca_ctx_start(doca_eth_rxq_as_doca_ctx(queue)));
        DONE(doca_eth_rxq_get_gpu_handle(queue, &rxq));
        DONE(doca_eth_rxq_get_flow_queue_id(queue, &number));
        doca_flow_cfg* cfg = nullptr;
        doca_flow_port_cfg* port_cfg = nullptr;
        doca_flow_port* port = nullptr;
        doca_flow_pipe_cfg* pipe_cfg = nullptr;
        doca_flow_pipe* pipe = nullptr;
        doca_flow_fwd fwd{};
        fwd.type = DOCA_FLOW_FWD_RSS;
        fwd.rss.queues_array = &number;
        fwd.rss.nr_queues = 1;
        DONE(doca_flow_cfg_create(&cfg));
        DONE(doca_flow_init(cfg));
        DONE(doca_flow_port_cfg_create(&port_cfg));
        DONE(doca_flow_port_cfg_set_dev(port_cfg, dev_));
        DONE(doca_flow_port_start(port_cfg, &port));
        DONE(doca_flow_pipe_cfg_create(&pipe_cfg, port));
        DONE(doca_flow_pipe_cfg_set_is_root(pipe_cfg, true));
        DONE(doca_flow_pipe_create(pipe_cfg, &fwd, nullptr, &pipe));
        DONE(doca_flow_pipe_add_entry(0, pipe, nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
    }
    void send_frames()
    {
        doca_eth_txq* queue = nullptr;
        doca_buf_arr* array = nullptr;
        DONE(doca_eth_txq_create(dev_, entries, &queue));
        DONE(doca_ctx_set_datapath_on_gpu(doca_eth_txq_as_doca_ctx(queue), gpu_));
        DONE(doca_ctx_start(doca_eth_txq_as_doca_ctx(queue)));
        DONE(doca_eth_txq_get_gpu_handle(queue, &txq));
        DONE(doca_buf_arr_create(1024, &array));
        DONE(doca_buf_arr_set_target_gpu(array, gpu_));
        DONE(doca_buf_arr_set_params(array, mapped(1024 * slot_bytes), slot_bytes, 0));
        DONE(doca_buf_arr_start(array));
        DONE(doca_buf_arr_get_gpu_handle(array, &frames));
    }

    doca_dev* dev_ = nullptr;
    doca_gpu* gpu_ = nullptr;
};

class bench_run {
 public:
    explicit bench_run(const options& wanted)
        : wanted_(wanted), device_(device::open(wanted.device)), stand_(wanted.device),
          memory_(device_.allocate(sizeof(doca_work), memory_kind::cpu_device)),
          work_(*static_cast<doca_work*>(memory_.cpu_address()))
    {}

    void measure_all(bench::table& table)
    {
        for (const std::uint32_t lanes : wanted_.lanes) {
            std::vector<double> values[4];
            for (unsigned round = 0; round < wanted_.rounds; ++round) {
                values[0].push_back(receive(receive_by_weftio_kernel, lanes));
                values[1].push_back(receive(receive_by_doca_kernel, lanes));
                values[2].push_back(send(send_by_weftio_kernel, lanes));
                values[3].push_back(send(send_by_doca_kernel, lanes));
            }
            const auto of_lanes = [&](const char* what) { return fmt::format("{}, {} lanes", what, lanes); };
            table.add({.name = of_lanes("receive, Weftio's"), .unit = "Mpps", .values = values[0]});
            table.add({.name = of_lanes("receive, DOCA's"),
                       .unit = "Mpps",
                       .values = values[1],
                       .peer = of_lanes("receive, Weftio's")});
            table.add({.name = of_lanes("send, Weftio's"), .unit = "Mpps", .values = values[2]});
            table.add({.name = of_lanes("send, DOCA's"),
                       .unit = "Mpps",
                       .values = values[3],
                       .peer = of_lanes("send, Weftio's")});
        }
    }

 private:
    template <class Kernel>
    double receive(const Kernel& kernel, std::uint32_t lanes)
    {
        return rate([&] {
            return device_.launch(kernel, {.lanes = lanes}, stand_.rxq, packets / 4,
                                  static_cast<doca_work*>(memory_.device_address()));
        });
    }
    template <class Kernel>
    double send(const Kernel& kernel, std::uint32_t lanes)
    {
        return rate([&] {
            return device_.launch(kernel, {.lanes = lanes}, stand_.txq, stand_.frames,
                                  static_cast<doca_work*>(memory_.device_address()));
        });
    }
    /// Millions of packets a second of the kernel that `launch` starts.
    template <class Launch>
    double rate(Launch&& launch)
    {
        work_ = {};
        const auto start = clock::now();
        auto kernel = launch();
        std::this_thread::sleep_for(std::chrono::milliseconds(wanted_.milliseconds));
        weftio_store_relaxed_u32(&work_.end, 1);
        if (!kernel.wait_for(std::chrono::seconds(20)) || work_.failed)
            throw std::runtime_error("doca_bench: a kernel did not end, or an entry was refused");
        const double seconds = std::chrono::duration<double>(clock::now() - start).count();
        return static_cast<double>(work_.packets) / seconds * 1e-6;
    }

    const options& wanted_;
    device device_;
    stand stand_;
    memory memory_;
    doca_work& work_;
};

int run(const options& wanted)
{
    bench::table table("doca_bench");
    bench_run(wanted).measure_all(table);
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 9;
    CLI::App app{"Cost of DOCA's form of receiving and sending over Weftio's."};
    app.add_option("-g,--device", wanted.device, "where the kernels run: cpu, cuda:N")->capture_default_str();
    app.add_option("--lanes", wanted.lanes, "lanes of the kernels' one block")->delimiter(',')->capture_default_str();
    app.add_option("--milliseconds", wanted.milliseconds, "time of each kernel")->capture_default_str();
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
