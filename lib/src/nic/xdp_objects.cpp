#include "nic/xdp_objects.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

namespace weftio::nic {

namespace {

bool is_xdp_socket(int descriptor)
{
    int domain = 0;
    socklen_t bytes = sizeof domain;
    return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_XDP;
}

/// The line of a BPF descriptor's fdinfo that begins with `key`: "map_id:\t7".
std::string bpf_id(int descriptor, std::string_view key)
{
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(descriptor));
    for (std::string line; std::getline(info, line);)
        if (line.starts_with(key))
            return line;
    return "";
}

/// Name of the object behind a descriptor; empty when it is of another kind.
std::string object_of(int descriptor, const std::string& target)
{
    if (target.starts_with("socket:"))
        return is_xdp_socket(descriptor) ? target : "";
    if (target == "anon_inode:bpf-map")
        return bpf_id(descriptor, "map_id:");
    return target == "anon_inode:bpf-prog" ? bpf_id(descriptor, "prog_id:") : "";
}

void for_each(const std::function<void(int descriptor, const std::string& object)>& visit)
{
    std::error_code ignored;
    std::filesystem::directory_iterator all("/proc/self/fd", ignored);
    for (; all != std::filesystem::directory_iterator(); all.increment(ignored)) {
        int descriptor = std::stoi(all->path().filename());
        std::string target = std::filesystem::read_symlink(all->path(), ignored);
        if (std::string object = object_of(descriptor, target); !object.empty())
            visit(descriptor, object);
    }
}

} // namespace

xdp_objects xdp_objects_open()
{
    xdp_objects open;
    for_each([&](int, const std::string& object) { open.insert(object); });
    return open;
}

void close_descriptors(const xdp_objects& objects) noexcept
try {
    if (!objects.empty())
        for_each([&](int descriptor, const std::string& object) {
            if (objects.contains(object))
                close(descriptor);
        });
} catch (const std::exception&) { // for want of memory they stay open
}

} // namespace weftio::nic
