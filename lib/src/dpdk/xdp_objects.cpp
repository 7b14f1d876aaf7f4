#include "dpdk/xdp_objects.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace weftio::dpdk {

namespace {

bool is_xdp_socket(int descriptor)
{
    int domain = 0;
    socklen_t bytes = sizeof domain;
    return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_XDP;
}

/// Makes an object of that name; an empty one if the name is too long.
xdp_object named(std::string_view name) noexcept
{
    xdp_object object;
    if (name.size() < object.name.size())
        std::copy(name.begin(), name.end(), object.name.begin());
    return object;
}

/// Reads the line of a BPF descriptor's fdinfo that begins with `key`, such as "map_id:\t7".
xdp_object bpf_object(int descriptor, std::string_view key) noexcept
{
    char path[64], text[1024];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, text, sizeof text) : 0;
    if (file >= 0)
        close(file);
    std::string_view info(text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    auto at = info.find(key);
    return at == info.npos ? xdp_object() : named(info.substr(at, info.find('\n', at) - at));
}

/// Returns the object behind a descriptor; an empty one for other kinds.
xdp_object object_of(int descriptor, std::string_view target) noexcept
{
    if (target.starts_with("socket:"))
        return is_xdp_socket(descriptor) ? named(target) : xdp_object();
    if (target == "anon_inode:bpf-map")
        return bpf_object(descriptor, "map_id:");
    return target == "anon_inode:bpf-prog" ? bpf_object(descriptor, "prog_id:") : xdp_object();
}

/// Calls `visit(descriptor, object)` until it returns false. Allocates nothing itself.
template <class Visit>
void for_each(Visit&& visit) noexcept
{
    std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
    while (const dirent* entry = all ? readdir(all.get()) : nullptr) {
        char target[64] = ""; // longer targets are no such object
        if (readlinkat(dirfd(all.get()), entry->d_name, target, sizeof target - 1) < 0)
            continue; // "." and ".."
        int descriptor = std::atoi(entry->d_name);
        if (xdp_object object = object_of(descriptor, target); object != xdp_object() && !visit(descriptor, object))
            return;
    }
}

} // namespace

void list_xdp_objects(xdp_objects& into) noexcept
{
    into.clear();
    for_each([&](int, const xdp_object& object) {
        if (into.size() == into.capacity())
            return false;
        into.push_back(object);
        return true;
    });
}

xdp_objects xdp_objects_open()
{
    xdp_objects open;
    do {
        open.reserve(std::max<std::size_t>(64, 2 * open.capacity()));
        list_xdp_objects(open);
    } while (open.size() == open.capacity());
    return open;
}

void close_descriptors(const xdp_objects& objects) noexcept
{
    if (objects.empty())
        return;
    for_each([&](int descriptor, const xdp_object& object) {
        if (std::find(objects.begin(), objects.end(), object) != objects.end())
            close(descriptor);
        return true;
    });
}

std::vector<int> sockets_among(const xdp_objects& objects)
{
    xdp_objects left = objects;
    std::vector<int> found;
    found.reserve(left.size());
    for_each([&](int descriptor, const xdp_object& object) {
        if (is_xdp_socket(descriptor) && std::erase(left, object) != 0)
            found.push_back(descriptor);
        return true;
    });
    return found;
}

std::uint64_t lost_at(int socket) noexcept
{
    xdp_statistics seen{};
    socklen_t bytes = sizeof seen;
    return getsockopt(socket, SOL_XDP, XDP_STATISTICS, &seen, &bytes) == 0 ? seen.rx_dropped + seen.rx_ring_full : 0;
}

} // namespace weftio::dpdk
