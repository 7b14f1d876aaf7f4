#include "server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "names.hpp"
#include "site.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(serve, "serve.kernel.h");

namespace weftio::packets {

namespace {

constexpr std::uint32_t receive_slots = 4096, send_entries = 1024;
/// Of the HTTP server.
constexpr std::uint32_t longest_head = 4096, longest_target = 2048, longest_body = 65'536, snapshots = 8;
constexpr std::uint64_t request_ns = 10'000'000'000;
/// Ethernet header and two VLAN tags.
constexpr std::uint32_t most_link_bytes = 22;

static_assert(offsetof(packets_worker, counters) ==
                  offsetof(packets_worker, tcp) + offsetof(tcp_endpoint, counters) + sizeof(tcp_counters),
              "report_of() takes both for one packets_report");

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

/// The MAC address that the kernels answer with. A tap driver gives its interface the port's: the kernels take another
/// one, so that interface and port are two hosts.
std::array<std::uint8_t, 6> own_mac(const port& port)
{
    std::array<std::uint8_t, 6> mac = port.mac();
    if (port.spec().starts_with("tap:"))
        mac.back() ^= 1;
    return mac;
}

template <class T>
T* as(const memory& memory)
{
    return static_cast<T*>(memory.device_address());
}

/// The smallest power of two that is not below `count`.
std::uint32_t table_size(std::uint32_t count)
{
    return std::bit_ceil(std::max(count, 64u));
}

void add(packets_report& sum, const packets_report& more)
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
          report(device.allocate(sizeof(packets_report), memory_kind::cpu_device)),
          reports(device, {.items = 4, .custom_info_bytes = sizeof(packets_report)}),
          pings(device, {.items = 256, .custom_info_bytes = sizeof(ping_info)})
    {
        host.attach(sent, {.on_sent = {}, .on_error = [this](const send_failure& failure) { why = failure.text; }});
    }

    eth_rxq received;
    eth_txq sent;
    buf_arr frames;
    memory buckets, lists, path, buffers, free_buffers, snapshots; ///< of its connections
    std::uint32_t buffer_count = 0;
    memory report; ///< the kernel writes it when it ends
    semaphore reports, pings;
    progress_engine host;
    std::string why;       ///< the send queue has failed
    packets_report last{}; ///< as reported
    bool down = false;     ///< its send queue has failed, and waits for the link
    running_kernel kernel;
};

packet_server::packet_server(const server_options& options)
    : device_(weftio::device::open(options.device)), port_(weftio::port::open(options.port, options_for(options))),
      inline_(runs_inline(options))
{
    make_settings(options);
    make_tables(options);
    make_workers(options);
    for (std::size_t each = 0; each < workers_.size(); ++each)
        launch(each);
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
    addresses_.push_back(link_local(own_mac(port_)));
    packets_settings made{};
    for (const address& own : addresses_) {
        own_address& written = made.addresses[made.address_count++];
        std::ranges::copy(own.bytes, written.bytes);
        written.version = own.version;
        written.prefix = own.prefix;
    }
    std::ranges::copy(own_mac(port_), made.mac);
    made.echo_port = options.echo_port;
    made.http_port = options.http_port;
    made.ping_report = options.ping_report;
    made.busy = options.busy;
    made.statistics_ns = static_cast<weftio_u64>(std::llround(options.interval_s * 1e9));
    settings_ = shared_memory(sizeof made);
    settings_.upload(&made, sizeof made);
}

memory packet_server::shared_memory(std::size_t bytes) const
{
    const bool is_gpu = device_.name().starts_with("cuda");
    return device_.allocate(bytes, is_gpu ? memory_kind::device : memory_kind::cpu_device);
}

void packet_server::make_tables(const server_options& options)
{
    const site pages({.root = options.root, .counters = counter_names()});
    std::vector<std::byte> image(pages.bytes());
    pages.write(image);
    snapshot_bytes_ = http_snapshot_bytes(reinterpret_cast<const http_site*>(image.data()));
    site_ = shared_memory(image.size());
    site_.upload(image.data(), image.size());

    tcp_settings settings{};
    tcp_default_settings(&settings);
    std::random_device random;
    for (weftio_u64& half : settings.key)
        half = weftio_u64{random()} << 32 | random();
    settings.mtu = port_.mtu();
    settings.receive_window = longest_head;
    settings.half_open_limit = std::clamp(options.connections / 2 / options.queues, 1u, 1024u);
    tcp_settings_ = shared_memory(sizeof settings);
    tcp_settings_.upload(&settings, sizeof settings);

    tcp_pool pool{};
    pool.limit = options.connections;
    pool_ = shared_memory(sizeof pool);
    pool_.upload(&pool, sizeof pool);
    records_ = shared_memory(sizeof(connection) * options.connections);
}

packets_worker packet_server::describe(const server_options& options, const worker& worker) const
{
    packets_worker made{};
    made.http.site = as<http_site>(site_);
    made.http.limits = {request_ns, longest_head, longest_target, longest_body, 0};
    made.http.values = {reinterpret_cast<weftio_u64*>(static_cast<std::byte*>(workers_memory_.device_address()) +
                                                      offsetof(packets_worker, tcp) + offsetof(tcp_endpoint, counters)),
                        options.queues, sizeof(packets_worker) / sizeof(weftio_u64)};
    made.http.snapshots = {as<weftio_u8>(worker.snapshots), snapshot_bytes_, snapshots, 0, 0};
    made.http.path = as<weftio_u8>(worker.path);
    made.http.buffers = as<weftio_u8>(worker.buffers);
    made.http.free_buffers = as<weftio_u32>(worker.free_buffers);
    made.http.buffer_count = made.http.free_count = worker.buffer_count;
    made.tcp.records = as<weftio_u8>(records_);
    made.tcp.pool = as<tcp_pool>(pool_);
    made.tcp.settings = as<tcp_settings>(tcp_settings_);
    made.tcp.buckets = as<weftio_u32>(worker.buckets);
    made.tcp.lists = as<weftio_u32>(worker.lists);
    made.tcp.record_bytes = sizeof(connection);
    made.tcp.bucket_mask = table_size(options.connections) - 1;
    return made;
}

void packet_server::make_workers(const server_options& options)
{
    workers_memory_ = shared_memory(sizeof(packets_worker) * options.queues);
    std::vector<packets_worker> made;
    for (unsigned each = 0; each < options.queues; ++each) {
        auto& worker = *workers_.emplace_back(
            std::make_unique<packet_server::worker>(port_, device_, static_cast<int>(each % port_.engines())));
        worker.buffer_count = std::max(options.connections / 16 / options.queues, 16u);
        worker.buckets = shared_memory(sizeof(weftio_u32) * table_size(options.connections));
        worker.lists = shared_memory(sizeof(weftio_u32) * TCP_LISTS);
        worker.path = shared_memory(longest_target);
        worker.buffers = shared_memory(std::size_t{longest_head} * worker.buffer_count);
        worker.snapshots = shared_memory(std::size_t{snapshot_bytes_} * snapshots);
        std::vector<weftio_u32> free(worker.buffer_count);
        std::iota(free.begin(), free.end(), 0u);
        worker.free_buffers = shared_memory(sizeof(weftio_u32) * free.size());
        worker.free_buffers.upload(free.data(), sizeof(weftio_u32) * free.size());
        made.push_back(describe(options, worker));
    }
    workers_memory_.upload(made.data(), sizeof(packets_worker) * made.size());
}

void packet_server::launch(std::size_t number)
{
    worker& worker = *workers_[number];
    worker.kernel = device_.launch(serve_kernel, {}, worker.received, worker.sent, worker.frames,
                                   static_cast<const packets_settings*>(settings_.device_address()),
                                   as<packets_worker>(workers_memory_) + number, worker.reports, worker.pings,
                                   as<packets_report>(worker.report));
}

std::string packet_server::revive(std::size_t number)
{
    worker& worker = *workers_[number];
    worker.host.progress();
    if (!worker.sent.failed())
        throw error(errc::device_error,
                    fmt::format("weftio-packets: a kernel on {} ended unexpectedly", device_.name()));
    if (!port_.link_up()) {
        if (std::exchange(worker.down, true))
            return "";
        return fmt::format("weftio-packets: sending failed: {}; waiting for the link", worker.why);
    }
    worker.down = false;
    worker.sent.reset();
    launch(number);
    return fmt::format("weftio-packets: resumed sending on {}", port_.spec());
}

std::string packet_server::look_after()
{
    if (port_.gone())
        throw error(errc::closed,
                    fmt::format("weftio-packets: port {} is gone: its device or its interface was removed; "
                                "start again when it is back",
                                port_.spec()));
    for (std::size_t each = 0; each < workers_.size(); ++each) {
        worker& worker = *workers_[each];
        worker.reports.for_each_ready(
            [&](auto, auto, auto, void* info) { std::memcpy(&worker.last, info, sizeof worker.last); });
        if (worker.kernel.wait_for(std::chrono::nanoseconds(0)))
            if (std::string said = revive(each); !said.empty())
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
    sum.unread = delivered - std::min(delivered, sum.kernels.packets.frames);
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
        worker->last = *static_cast<const packets_report*>(worker->report.cpu_address());
    }
    const auto is_idle = [](const auto& worker) {
        const eth_txq_counters sent = worker->sent.counters();
        return sent.enqueued == sent.sent + sent.waited + sent.failed + sent.flushed;
    };
    // What is committed leaves, also when the engine's thread has to wait for a core.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (!std::ranges::all_of(workers_, is_idle) && std::chrono::steady_clock::now() < deadline) {
        if (inline_)
            port_.turn();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

} // namespace weftio::packets
