#include "common/network.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "common/command.hpp"

namespace weftio::bench {

namespace {

void run_ip(std::vector<std::string> words)
{
    words.insert(words.begin(), "ip");
    if (int status = run_command(words); status != 0)
        throw std::runtime_error(fmt::format("\"{}\" failed with status {}; install iproute2, or name existing ports",
                                             fmt::join(words, " "), status));
}

} // namespace

void make_private_network(const std::string& near, const std::string& peer, unsigned mtu)
{
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
        throw std::runtime_error(fmt::format(
            "cannot create a network namespace ({}); run as root, or name existing ports", std::strerror(errno)));
    // As "ip netns exec" does: mounts /sys of this namespace, visible to this process only.
    mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    umount2("/sys", MNT_DETACH);
    mount("sysfs", "/sys", "sysfs", 0, nullptr);
    std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1; // no neighbor discovery among the frames
    run_ip({"link", "add", near, "type", "veth", "peer", "name", peer});
    for (const std::string& end : {near, peer})
        run_ip({"link", "set", end, "mtu", std::to_string(mtu), "up"});
}

} // namespace weftio::bench
