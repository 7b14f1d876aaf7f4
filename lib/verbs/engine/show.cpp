#include "show.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "device_paths.hpp"
#include "weftio/rdma_dump.hpp"

namespace weftio::verbs {

namespace {

/// Listens at a path. Returns no descriptor on failure, such as a path too long for a socket.
descriptor listen_at(const std::string& path)
{
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (path.size() >= sizeof where.sun_path)
        return {};
    std::memcpy(where.sun_path, path.c_str(), path.size());
    descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (made.number() < 0 || bind(made.number(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
        listen(made.number(), 4) != 0)
        return {};
    return out_of_the_way(std::move(made));
}

/// Sends the text to a reader. A reader that does not read is given up after a second.
void send_all(int to, std::string_view text)
{
    constexpr int patience_ms = 1000;
    while (!text.empty()) {
        const ssize_t sent = send(to, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        pollfd ready{.fd = to, .events = POLLOUT, .revents = 0};
        if (sent > 0)
            text.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EAGAIN || poll(&ready, 1, patience_ms) != 1)
            return; // it has gone, or does not read
    }
}

std::string show(const completions& each, std::uint32_t handle)
{
    return fmt::format("completion queue {}: number {}, {} entries{}{}\n", handle, each.queue->number(),
                       each.queue->entries(), each.tells ? ", tells a channel" : "",
                       each.queue->overrun() ? ", overrun" : "");
}

std::string show(const region& each, std::uint32_t handle)
{
    const auto right = [&](access which, const char* name) {
        return (each.registered->rights() & which) == which ? name : "";
    };
    return fmt::format("memory region {}: key {:#x}, {} bytes at {:#x}{}{}{}{}\n", handle, each.registered->lkey(),
                       each.length, each.start, right(access::local_write, ", local write"),
                       right(access::remote_write, ", remote write"), right(access::remote_read, ", remote read"),
                       right(access::remote_atomic, ", remote atomic"));
}

} // namespace

std::string show(context& of)
{
    const std::scoped_lock lock(of.mutex);
    std::string text = fmt::format("{} protection domains, {} memory regions, {} completion queues, {} queue pairs\n",
                                   of.domains.size(), of.regions.size(), of.completion_queues.size(), of.pairs.size());
    for (const auto& [handle, each] : of.regions)
        text += show(*each, handle);
    for (const auto& [handle, each] : of.completion_queues)
        text += show(*each, handle);
    for (const auto& [handle, each] : of.pairs)
        text += to_string(each->queue->dump()) + "\n";
    return text;
}

show_socket::show_socket(watcher& events, const std::string& folder, std::function<std::string()> text)
    : events_(events), text_(std::move(text)), path_(folder + "/" + show_name), listening_(listen_at(path_))
{
    if (listening_.number() >= 0)
        events_.watch(listening_.number(), [this] { answer(); });
}

show_socket::~show_socket()
{
    if (listening_.number() < 0)
        return;
    events_.forget(listening_.number());
    unlink(path_.c_str());
}

void show_socket::answer() const
{
    const descriptor to(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (to.number() >= 0)
        send_all(to.number(), text_());
}

} // namespace weftio::verbs
