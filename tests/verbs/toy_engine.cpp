// A fake engine for tests of the preloaded library: it records the calls that reach it and reports them in its answers.
//
// TOY_DEVICES devices [2]; TOY_FAILS: it does not start; TOY_VERSION: its version of the seam.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/tree.hpp"
#include "seam.hpp"

namespace {

using namespace weftio::verbs;

std::mutex guard;
std::map<ino_t, unsigned> nodes; ///< inode of a node: its device
std::atomic<unsigned> closes{0}, counts{0};
std::map<std::string, unsigned> refusals; ///< calls of refused(), by its arguments
std::optional<tree> files;
weftio_verbs_engine engine;
const weftio_verbs_host* the_host = nullptr;

int open_node(unsigned device, int flags)
{
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0), 0, ends) != 0)
        return -errno;
    struct stat file;
    ::fstat(ends[0], &file);
    const std::scoped_lock lock(guard);
    nodes[file.st_ino] = device;
    return ends[0];
}

int device_of(int descriptor)
{
    struct stat file;
    if (::fstat(descriptor, &file) != 0 || !S_ISSOCK(file.st_mode))
        return -ENOTTY;
    const std::scoped_lock lock(guard);
    const auto found = nodes.find(file.st_ino);
    return found == nodes.end() ? -ENOTTY : static_cast<int>(found->second);
}

/// Whether the host has the device, as a thread of a thread of the engine's sees it, which also duplicates a node.
bool sees_device_from_afar(int descriptor)
{
    bool sees = false;
    std::thread([&] {
        std::thread([&] {
            sees = ::access("/sys/class/infiniband/mlx5_0/node_guid", F_OK) == 0;
            ::close(::dup(descriptor));
        }).join();
    }).join();
    return sees;
}

/// Hides a driver's folder for a moment. Returns 2 if it was hidden from this thread meanwhile, and only from this
/// thread; else 1.
ssize_t try_to_hide(const std::string& folder)
{
    struct stat file;
    the_host->hide_drivers(true);
    const bool here = ::stat(folder.c_str(), &file) == 0;
    bool elsewhere = false;
    std::thread([&] { elsewhere = ::stat(folder.c_str(), &file) == 0; }).join();
    the_host->hide_drivers(false);
    const bool afterwards = ::stat(folder.c_str(), &file) == 0;
    return !here && elsewhere && afterwards ? 2 : 1;
}

constexpr std::string_view about_refusals = "refused ";

unsigned count_refusals(std::string_view what)
{
    const std::scoped_lock lock(guard);
    return refusals[std::string(what)];
}

/// Answers by the text that was written. "closes": number of calls of closed(), minus one; "counts":
/// 4000 + number of calls of count(); "fail": EINVAL; "path",
/// "thread": the engine calls intercepted functions, 2: the host has no such device; a path: hides it; "refused WHAT":
/// 3000 + number of calls of refused() with these words; other text: 1000 + the number of the device.
ssize_t write_command(int descriptor, const void* command, std::size_t bytes)
{
    const int device = device_of(descriptor);
    if (device < 0)
        return device;
    static pthread_mutex_t unguarded = PTHREAD_MUTEX_INITIALIZER; // a canceled thread would leave it locked
    ::pthread_mutex_lock(&unguarded);
    [[maybe_unused]] const ssize_t none = ::read(-1, nullptr, 0); // where threads are canceled
    ::pthread_mutex_unlock(&unguarded);
    const std::string_view text(static_cast<const char*>(command), bytes);
    if (text == "fail")
        return -EINVAL;
    if (text == "closes")
        return closes;
    if (text == "counts")
        return 4000 + counts;
    if (text == "path")
        return ::access("/sys/class/infiniband/mlx5_0/node_guid", F_OK) == 0 ? 1 : 2;
    if (text.starts_with('/'))
        return try_to_hide(std::string(text));
    if (text == "thread")
        return sees_device_from_afar(descriptor) ? 1 : 2;
    if (text.starts_with(about_refusals))
        return 3000 + static_cast<ssize_t>(count_refusals(text.substr(about_refusals.size())));
    return 1000 + device;
}

int map(int descriptor, void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address)
{
    if (const int device = device_of(descriptor); device < 0)
        return device;
    if (offset != 4096)
        return -EINVAL;
    *address = ::mmap(wish, bytes, protection, flags | MAP_ANONYMOUS, -1, 0);
    if (*address == MAP_FAILED)
        return -errno;
    std::memcpy(*address, "toy", 4);
    return 0;
}

/// FIONREAD (its socket would know): ENOTTY; other requests: 2000 + the number of the device.
int control(int descriptor, unsigned long request, void*)
{
    const int device = device_of(descriptor);
    return device < 0 || request == FIONREAD ? -ENOTTY : 2000 + device;
}

void closed()
{
    ++closes;
}

void refused(const char* which, bool probe)
{
    const std::scoped_lock lock(guard);
    ++refusals[which + std::string(probe ? " probe" : "")];
}

void count()
{
    ++counts;
}

std::vector<device_description> describe_devices(unsigned count)
{
    std::vector<device_description> devices(count);
    for (unsigned i = 0; i < count; ++i) {
        const auto last = static_cast<std::uint8_t>(i + 1);
        devices[i] = {.name = fmt::format("mlx5_{}", i),
                      .guid = 0x0200'00ff'fe00'0001u + i,
                      .firmware = "28.39.1002",
                      .mtu_bytes = 4200,
                      .mac = {2, 0, 0, 0, 0, last},
                      .gids = {{.gid = fmt::format("fe80:0000:0000:0000:0000:00ff:fe00:{:04x}", i + 1),
                                .interface = fmt::format("weft{}", i)},
                               {.gid = fmt::format("0000:0000:0000:0000:0000:ffff:0a4d:{:04x}", i + 1),
                                .interface = fmt::format("weft{}", i)}}};
    }
    return devices;
}

unsigned number_in(const char* variable, unsigned otherwise)
{
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::atoi(text));
}

const std::atomic<int> hears_calls{0};
void called(long, const unsigned long*, std::uint64_t) {}
bool stop_watching(std::uintptr_t, std::size_t)
{
    return false;
}

} // namespace

extern "C" const weftio_verbs_engine* weftio_verbs_start(const weftio_verbs_host* host)
try {
    if (std::getenv("TOY_FAILS") != nullptr) {
        std::fputs("toy: it does not start\n", stderr);
        return nullptr;
    }
    the_host = host;
    std::thread([] { ::dlopen("libm.so.6", RTLD_NOW); }).join(); // as DPDK loads its drivers
    const unsigned devices = number_in("TOY_DEVICES", 2);
    files.emplace(describe_devices(devices));
    engine = {.version = number_in("TOY_VERSION", seam_version),
              .devices = devices,
              .tree = files->path().c_str(),
              .open = open_node,
              .write = write_command,
              .map = map,
              .control = control,
              .closed = closed,
              .refused = refused,
              .count = count,
              .hears_calls = &hears_calls,
              .called = called,
              .stop_watching = stop_watching};
    return &engine;
} catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return nullptr;
}
