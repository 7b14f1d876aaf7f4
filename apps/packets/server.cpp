#include "server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <thread>

#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(serve, "serve.kernel.h");

namespace weftio::packets {

namespace {

constexpr std::uint32_t receive_slots = 4096, send_entries = 1024;
/// Ethernet header and two VLAN tags.
constexpr std::uint32_t most_link_bytes = 22;

/// CPU kernels run the engine of their queues themselves; other devices leave it to a thread.
bool runs_inline(const server_options& options)
{
    return options.device == "cpu";
}

port_options options_for(const server_options& options)
{
    port_options made{.idle = options.busy ? idle_policy::busy : idle_policy::sleep};
    if (runs_inline(options)) {
        made.mode = engine_mode::inline_worker;
        made.engines = options.queues;
    }
    return made;
}

template <class T>
T* shared_object(const memory& memory)
{
    return static_cast<T*>(memory.cpu_address());
}

void add(packets_counters& sum, const packets_counters& more)
{
    static_assert(sizeof sum % sizeof(weftio_u64) == 0, "words only");
    std::uint64_t words[sizeof sum / sizeof(std::uint64_t)], others[std::size(words)];
    std::memcpy(words, &sum, sizeof words);
    std::memcpy(others, &more, sizeof others);
    std::transform(std::begin(words), std::end(words), std::begin(others), std::begin(words), std::plus<>());
    std::memcpy(&sum, words, sizeof words);
}

} // namespace

/// A kernel and what it owns.
struct packet_server::worker {
    worker(const weftio::port& port, const weftio::device& device, int engine)
        : received(port, device,
                   {.packets = receive_slots,
                    .max_packet_bytes = std::max<std::uint32_t>(port.mtu() + most_link_bytes, 64),
                    .engine = engine}),
          sent(port, device, {.entries = send_entries, .engine = engine}),
          frames(port, device, {.count = send_entries, .buffer_bytes = port.mtu() + most_link_bytes}),
          counters(device.allocate(sizeof(packets_counters), memory_kind::cpu_device)),
          reports(device, {.items = 4, .custom_info_bytes = sizeof(packets_counters)}),
          pings(device, {.items = 256, .custom_info_bytes = sizeof(ping_info)})
    {
        host.attach(sent,
                    {.on_sent = {}, .on_error = [this](const send_failure& failure) { failure_text = failure.text; }});
    }

    eth_rxq received;
    eth_txq sent;
    buf_arr frames;
    memory counters;
    semaphore reports, pings;
    progress_engine host;
    std::string failure_text;
    packets_counters last{}; ///< as reported
    bool down = false;       ///< its send queue has failed
    running_kernel kernel;
};

packet_server::packet_server(const server_options& options)
    : device_(weftio::device::open(options.device)), port_(weftio::port::open(options.port, options_for(options))),
      inline_(runs_inline(options))
{
    make_settings(options);
    make_workers(options);
    for (auto& worker : workers_)
        launch(*worker);
    std::vector<const eth_rxq*> queues;
    for (auto& worker : workers_)
        queues.push_back(&worker->received);
    flows_.emplace_back(port_, flow_match{},
                        queues.size() == 1 ? flow_action::to(*queues[0]) : flow_action::rss(queues));
}

packet_server::~packet_server()
{
    stop();
}

void packet_server::make_settings(const server_options& options)
{
    addresses_ = options.addresses;
    addresses_.push_back(link_local(port_.mac()));
    settings_ = device_.allocate(sizeof(packets_settings), memory_kind::cpu_device);
    auto* to = new (settings_.cpu_address()) packets_settings{};
    for (const address& own : addresses_) {
        own_address& written = to->addresses[to->address_count++];
        std::ranges::copy(own.bytes, written.bytes);
        written.version = own.version;
    }
    std::ranges::copy(port_.mac(), to->mac);
    to->echo_port = options.echo_port;
    to->http_port = options.http_port;
    to->frame_bytes = port_.mtu() + 14u;
    to->ping_report = options.ping_report;
    to->busy = options.busy;
    to->statistics_ns = static_cast<weftio_u64>(std::llround(options.interval_s * 1e9));
}

void packet_server::make_workers(const server_options& options)
{
    const unsigned engines = port_.engines();
    for (unsigned each = 0; each < options.queues; ++each)
        workers_.push_back(std::make_unique<worker>(port_, device_, static_cast<int>(each % engines)));
}

void packet_server::launch(worker& worker)
{
    worker.kernel =
        device_.launch(serve_kernel, {}, worker.received, worker.sent, worker.frames,
                       static_cast<const packets_settings*>(settings_.device_address()),
                       static_cast<packets_counters*>(worker.counters.device_address()), worker.reports, worker.pings);
}

std::string packet_server::revive(worker& worker)
{
    worker.host.progress();
    if (!worker.sent.failed())
        throw error(errc::device_error,
                    fmt::format("weftio-packets: a kernel on {} has ended by itself", device_.name()));
    if (!port_.link_up()) {
        if (std::exchange(worker.down, true))
            return "";
        return fmt::format("weftio-packets: nothing can be sent: {}; waiting for the link", worker.failure_text);
    }
    worker.down = false;
    worker.sent.reset();
    launch(worker);
    return fmt::format("weftio-packets: sending again on {}", port_.spec());
}

std::string packet_server::look_after()
{
    if (port_.gone())
        throw error(errc::closed,
                    fmt::format("weftio-packets: port {} is gone: its device or its interface was removed; "
                                "start again when it is back",
                                port_.spec()));
    for (auto& each : workers_) {
        worker& worker = *each;
        worker.reports.for_each_ready(
            [&](auto, auto, auto, void* info) { std::memcpy(&worker.last, info, sizeof worker.last); });
        if (worker.kernel.wait_for(std::chrono::nanoseconds(0)))
            if (std::string said = revive(worker); !said.empty())
                return said;
    }
    return "";
}

void packet_server::for_each_ping(const std::function<void(const ping_info&)>& visit)
{
    for (auto& worker : workers_)
        worker->pings.for_each_ready(
            [&](auto, auto, auto, void* info) { visit(*static_cast<const ping_info*>(info)); });
}

totals packet_server::counters() const
{
    totals sum;
    sum.port = port_.counters();
    std::uint64_t delivered = 0;
    for (const auto& worker : workers_) {
        add(sum.kernels, worker->last);
        const eth_rxq_counters received = worker->received.counters();
        delivered += received.delivered;
        sum.out_of_buffer += received.out_of_buffer;
        sum.too_long += received.too_long;
        const eth_txq_counters sent = worker->sent.counters();
        sum.sent += sent.sent;
        sum.lost += sent.failed + sent.flushed;
    }
    sum.unread = delivered - std::min(delivered, sum.kernels.frames);
    return sum;
}

void packet_server::stop()
{
    if (std::exchange(stopped_, true))
        return;
    flows_.clear();
    for (auto& worker : workers_)
        worker->kernel.stop();
    for (auto& worker : workers_) {
        worker->kernel = {};
        worker->last = *shared_object<packets_counters>(worker->counters);
    }
    const auto is_idle = [](const auto& worker) {
        const eth_txq_counters sent = worker->sent.counters();
        return sent.enqueued == sent.sent + sent.waited + sent.failed + sent.flushed;
    };
    for (unsigned tries = 0; tries < 100 && !std::ranges::all_of(workers_, is_idle);
         ++tries) { // what is committed leaves
        if (inline_)
            port_.turn();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

} // namespace weftio::packets
