// rdma_client_server: a client's kernel fills buffers of a server by RDMA, by WRITE and by SEND with immediate values,
// whenever the server's kernel signals that a buffer is ready.
//
//   ./rdma_client_server                                                         both ends in this process
//   ./rdma_client_server --listen 18515 -n net_af_packet0,iface=eth0             the server; and on another host:
//   ./rdma_client_server --connect 192.0.2.1:18515 -n net_af_packet0,iface=eth0
//   ./rdma_client_server --connections 3     several connections, whose messages take receives from one ring
//   ./rdma_client_server --cache             the peer's keys come from a registration cache
//   ./rdma_client_server -g cuda:0 --payload device     all payload lies in the GPU's own memory
//
// With --cm, the two programs connect their queue pairs by the RDMA connection manager.
#include "rdma_client_server.kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "../sample.hpp"
#include "weftio/registration_cache.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(rdma_server, "rdma_client_server.kernel.h");
WEFTIO_DEFINE_KERNEL(rdma_client, "rdma_client_server.kernel.h");
WEFTIO_DEFINE_KERNEL(rdma_shared_server, "rdma_client_server.kernel.h");
WEFTIO_DEFINE_KERNEL(rdma_shared_client, "rdma_client_server.kernel.h");

namespace {

using weftio::access;
constexpr access peer_may = access::local_write | access::remote_write | access::remote_read;

struct options {
    std::string listen, connect, port = "loopback", device = "cpu", address;
    std::uint32_t count = 4, timeout = 30, connections = 1;
    bool shared = false, cm = false, cache = false;
    weftio::memory_kind payload = weftio::memory_kind::cpu_device;

    bool is_server() const { return connect.empty(); }
    bool shares() const { return shared || connections > 1; }
};

/// The byte that fills piece `piece`.
std::uint8_t byte_of(std::size_t piece)
{
    return static_cast<std::uint8_t>(piece % 255 + 1);
}
bool is_whole(const std::uint8_t* bytes, std::size_t piece)
{
    return std::all_of(bytes, bytes + PIECE_BYTES, [&](std::uint8_t byte) { return byte == byte_of(piece); });
}

const char* name_of(std::uint32_t kind)
{
    return kind == WEFTIO_DEV_RDMA_WRITE_IMM ? "WRITE" : kind == WEFTIO_DEV_RDMA_SEND_IMM ? "SEND" : "nothing";
}

/// Keys of the peer that a registration cache makes: each connection asks for the same bytes and gets the same key.
struct cached_keys {
    cached_keys(const weftio::port& port, const weftio::memory& memory, std::uint32_t connections) : cache(port)
    {
        while (held.size() != connections)
            held.push_back(cache.get(memory.cpu_address(), memory.bytes(), peer_may));
        remote = {reinterpret_cast<std::uintptr_t>(memory.cpu_address()), memory.bytes(), held.front().rkey(),
                  peer_may};
    }
    std::string text() const
    {
        const weftio::registration_cache_counters now = cache.counters();
        return fmt::format("registration cache: {} of {} requests registered memory, {} key for the peer", now.misses,
                           now.hits + now.misses, now.remote_keys);
    }

    weftio::registration_cache cache;
    std::vector<weftio::registration> held; ///< while the peer may use the key
    weftio::remote_region remote;
};

/// Pieces of payload in memory of the chosen kind, which kernels and the NIC use.
struct payload {
    payload(const weftio::port& port, const weftio::device& device, weftio::memory_kind kind, std::uint32_t count,
            std::uint32_t bytes)
        : memory(device.allocate(std::size_t{count} * bytes, kind)), region(port, memory),
          pieces(region, device, {.count = count, .buffer_bytes = bytes, .stride_bytes = bytes})
    {}

    weftio::memory memory;
    weftio::memory_region region;
    weftio::buf_arr pieces;
};

/// The bytes, wherever they lie.
std::vector<std::uint8_t> content_of(const weftio::memory& memory)
{
    std::vector<std::uint8_t> all(memory.bytes());
    memory.download(all.data(), all.size());
    return all;
}

/// One end: queue pairs, memory that the peer may access, and the description of the peer's memory.
struct end {
    end(const options& wanted, const weftio::port& port, const weftio::device& device, const std::string& address,
        weftio::memory of_peer, weftio::tcp_exchange peer)
        : at(port, {.address = address}), memory(std::move(of_peer)),
          region(port, memory, {.rights = wanted.cache ? access::local_write : peer_may}), exchange(std::move(peer))
    {
        if (wanted.cache)
            keys.emplace(port, memory, wanted.connections);
        if (wanted.shares())
            several.emplace(at, device, wanted.connections);
        else
            own.emplace(at, device);
        if (wanted.cm)
            connect_by_manager(wanted);
        else
            for (weftio::rdma_queue* queue : queues())
                queue->connect(exchange.swap(queue->address()));
        theirs = exchange.swap(keys ? keys->remote : weftio::remote_region::of(region));
        exchange.meet(); // the peer has connected its queue pairs, too
    }

    std::vector<weftio::rdma_queue*> queues()
    {
        if (own)
            return {&*own};
        std::vector<weftio::rdma_queue*> all;
        for (std::uint32_t each = 0; each != several->size(); ++each)
            all.push_back(&(*several)[each]);
        return all;
    }

    /// The server listens, and accepts each connection with the queue whose index the client gives it.
    void connect_by_manager(const options& wanted)
    {
        constexpr std::uint16_t port = 18515; // of RDMA, not of TCP
        const std::chrono::milliseconds patience = std::chrono::seconds(wanted.timeout);
        const auto stop = [] { return sample::interrupted != 0; };
        std::optional<weftio::rdma_listener> listener;
        if (wanted.is_server())
            listener.emplace(at, port, weftio::rdma_listen_options{.stop = stop});
        const std::string ours = at.address();
        const auto bytes = exchange.swap(std::span(reinterpret_cast<const std::uint8_t*>(ours.data()), ours.size()));
        const std::string peer(bytes.begin(), bytes.end());
        const std::vector<weftio::rdma_queue*> all = queues();
        for (std::uint8_t each = 0; each != all.size(); ++each) {
            if (!wanted.is_server()) {
                connections.push_back(weftio::rdma_connect(
                    at, peer, port, *all[each], {.private_data = {each}, .timeout = patience, .stop = stop}));
                continue;
            }
            weftio::rdma_request request = listener->next(patience);
            const std::size_t index = request.private_data()[0];
            connections.push_back(request.accept(*all.at(index), {.timeout = patience, .stop = stop}));
        }
    }

    /// Waits until the kernel has ended; stops it if the user interrupts or the peer is gone. Returns whether nothing
    /// failed.
    bool finish(weftio::running_kernel& kernel)
    {
        weftio::progress_engine progress;
        for (weftio::rdma_queue* queue : queues())
            progress.attach(*queue, {.on_sent = {}, .on_error = [](const weftio::send_failure& failure) {
                                         fmt::print(stderr, "{}\n", failure.text);
                                     }});
        while (!sample::interrupted && kernel.alive() && exchange.connected()) {
            progress.progress();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        kernel.stop();
        kernel.wait_for(std::chrono::seconds(5));
        progress.progress();
        bool failed = false;
        for (const weftio::rdma_queue* queue : queues())
            failed = failed || queue->failed();
        if (!failed || !exchange.connected())
            exchange.meet(); // the queue pairs serve the peer until then; throws if the peer is gone
        return !failed;
    }

    weftio::rdma_device at;
    std::optional<weftio::rdma_queue> own;           ///< with a receive ring of its own
    std::optional<weftio::rdma_connections> several; ///< or those that share one
    weftio::memory memory;
    weftio::memory_region region;
    std::optional<cached_keys> keys; ///< with --cache: the region then has no rights for the peer
    weftio::tcp_exchange exchange;
    weftio::remote_region theirs;
    std::vector<weftio::rdma_connection> connections; ///< with --cm; disconnected first
};

bool serve(const options& wanted, const weftio::port& port, const weftio::device& device, weftio::tcp_exchange client)
{
    const std::string address = wanted.address.empty() ? "10.0.0.1" : wanted.address;
    end here(wanted, port, device, address, device.allocate(std::size_t{wanted.count} * BUFFER_BYTES, wanted.payload),
             std::move(client));
    weftio::buf_arr buffers(here.region, device, {.count = wanted.count, .buffer_bytes = BUFFER_BYTES});
    weftio::buf_arr landing(port, device, {.count = 64, .buffer_bytes = PIECE_BYTES});
    auto arrival_memory = device.allocate(wanted.count * 2 * sizeof(arrival), weftio::memory_kind::cpu_device);
    auto* const arrivals = static_cast<arrival*>(arrival_memory.device_address());
    auto kernel = wanted.shares()
                      ? device.launch(rdma_shared_server_kernel, {}, *here.several, here.several->receives(), buffers,
                                      landing, here.theirs.on_device(), arrivals)
                      : device.launch(rdma_server_kernel, {}, *here.own, here.own->receives(), buffers,
                                      here.theirs.on_device(), arrivals);
    bool as_sent = here.finish(kernel);
    const auto* const came = static_cast<const arrival*>(arrival_memory.cpu_address());
    const std::vector<std::uint8_t> content = content_of(here.memory);
    for (std::uint32_t piece = 0; piece < wanted.count * 2; ++piece) {
        const auto* const bytes = content.data() + std::size_t{piece} * PIECE_BYTES;
        const bool right = is_whole(bytes, piece) && came[piece].immediate == piece &&
                           came[piece].kind == (piece / 2 % 2 ? WEFTIO_DEV_RDMA_SEND_IMM : WEFTIO_DEV_RDMA_WRITE_IMM);
        fmt::print("Server: buffer {}, piece {}: {} with immediate value {}, bytes of {:#04x}{}{}\n", piece / 2,
                   piece % 2, name_of(came[piece].kind), came[piece].immediate, bytes[0],
                   wanted.shares() ? fmt::format(", by connection {}", came[piece].connection) : "",
                   right ? "" : ": not the bytes sent");
        as_sent = as_sent && right;
    }
    if (here.keys)
        fmt::print("Server: {}\n", here.keys->text());
    return as_sent;
}

bool ask(const options& wanted, const weftio::port& port, const weftio::device& device, weftio::tcp_exchange server)
{
    const std::string address = wanted.address.empty() ? "10.0.0.2" : wanted.address;
    end here(wanted, port, device, address,
             device.allocate(wanted.connections * sizeof(weftio_u64), weftio::memory_kind::cpu_device),
             std::move(server));
    const auto pieces = static_cast<std::uint32_t>(here.theirs.bytes / PIECE_BYTES);
    payload from(port, device, wanted.payload, pieces, PIECE_BYTES);
    payload back(port, device, wanted.payload, 1, pieces * PIECE_BYTES);
    std::vector<std::uint8_t> content(from.memory.bytes());
    for (std::size_t at = 0; at != content.size(); ++at)
        content[at] = byte_of(at / PIECE_BYTES);
    from.memory.upload(content.data(), content.size());
    const auto* const signals = static_cast<const weftio_u64*>(here.memory.device_address());
    auto kernel = wanted.shares() ? device.launch(rdma_shared_client_kernel, {}, *here.several, from.pieces,
                                                  here.theirs.on_device(), signals, back.pieces)
                                  : device.launch(rdma_client_kernel, {}, *here.own, from.pieces,
                                                  here.theirs.on_device(), signals, back.pieces);
    bool as_sent = here.finish(kernel);
    content = content_of(back.memory);
    std::uint32_t whole = 0;
    for (std::uint32_t piece = 0; piece < pieces; ++piece)
        whole += is_whole(content.data() + std::size_t{piece} * PIECE_BYTES, piece);
    const auto ready = *static_cast<const weftio_u64*>(here.memory.cpu_address());
    fmt::print("Client: {} of {} buffers were ready; {} pieces sent, {} verified\n", ready, pieces / 2, pieces, whole);
    if (here.keys)
        fmt::print("Client: {}\n", here.keys->text());
    return as_sent && ready == pieces / 2 && whole == pieces;
}

int run(const options& wanted)
{
    const weftio::exchange_options patience{.timeout = std::chrono::seconds(wanted.timeout),
                                            .stop = [] { return sample::interrupted != 0; }};
    auto device = weftio::device::open(wanted.device);
    auto port = weftio::port::open(wanted.port);
    if (!wanted.connect.empty())
        return ask(wanted, port, device, weftio::tcp_exchange::connect(wanted.connect, patience)) ? 0 : 1;
    weftio::tcp_listener listener(wanted.listen.empty() ? "127.0.0.1:0" : wanted.listen);
    fmt::print("Listening at TCP port {}, kernel on {}, RDMA on {} ({})\n", listener.port(), device.name(), port.spec(),
               port.driver());
    std::fflush(stdout);
    std::future<bool> client;
    if (wanted.listen.empty())
        client = std::async(std::launch::async, [&, where = fmt::format("127.0.0.1:{}", listener.port())] {
            return ask(wanted, port, device, weftio::tcp_exchange::connect(where, patience));
        });
    const bool served = serve(wanted, port, device, listener.accept(patience));
    return (!client.valid() || client.get()) && served ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A client's kernel fills a server's buffers by RDMA. Without --listen and --connect, both run "
                 "here.\n\nBoth ends must be on one link. They first exchange data over TCP, which needs an interface "
                 "with a Linux address: use another one than that of --port, or net_af_packet0,iface=NAME as port, "
                 "with which Linux keeps using NAME; iface:NAME may take all packets of NAME."};
    options wanted;
    app.option_defaults()->always_capture_default();
    auto* listen = app.add_option("--listen", wanted.listen, "run the server, at this TCP port: PORT or ADDRESS:PORT");
    auto* connect = app.add_option("--connect", wanted.connect, "run the client of the server at HOST:PORT");
    connect->excludes(listen);
    app.add_option("-n,--port", wanted.port, "loopback, iface:NAME, a PCI address or DPDK devargs");
    app.add_option("-g,--device", wanted.device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N");
    app.add_option("--address", wanted.address,
                   "address of this end's queue pair, IPv4 or IPv6; default: 10.0.0.1 (server) and 10.0.0.2 (client)");
    app.add_option("--count", wanted.count, "number of the server's buffers")
        ->check(CLI::Range(1, 1 << 20))
        ->excludes(connect);
    app.add_option("--connections", wanted.connections,
                   "connections of the two ends, the same number at both; more than 1 share a receive ring")
        ->check(CLI::Range(1, 64));
    app.add_flag("--shared", wanted.shared, "the shared receive ring also for 1 connection, at both ends");
    app.add_flag("--cm", wanted.cm, "connect the queue pairs by the RDMA connection manager, at both ends");
    app.add_flag("--cache", wanted.cache, "take the key for the peer from a registration cache");
    const std::map<std::string, weftio::memory_kind> kinds{{"cpu_device", weftio::memory_kind::cpu_device},
                                                           {"device", weftio::memory_kind::device}};
    app.add_option(
           "--payload", wanted.payload,
           "memory of the payload: cpu_device, or device, the GPU's own, which its copy engine reads and writes")
        ->transform(CLI::CheckedTransformer(kinds))
        ->default_str("cpu_device");
    app.add_option("--timeout", wanted.timeout, "seconds to wait for the peer; 0: no limit");
    app.set_version_flag("-V,--version", "rdma_client_server " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] {
        if (!wanted.address.empty() && wanted.listen.empty() && wanted.connect.empty())
            throw CLI::ValidationError("--address",
                                       "needs --listen or --connect; in one process, both ends use their own");
        if (wanted.cm && wanted.listen.empty() && wanted.connect.empty())
            throw CLI::ValidationError("--cm", "needs --listen or --connect");
        return run(wanted);
    });
}
