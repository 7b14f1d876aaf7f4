#include "weftio/memory_holder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "devices/backend.hpp"
#include "devices/cuda/shared_memory.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

namespace cuda = devices::cuda;

/// What comes with the descriptor.
struct message {
    static constexpr std::array<char, 8> of_host{'w', 'f', 't', 'm', 'e', 'm', '0', '1'},
        of_gpu{'w', 'f', 't', 'g', 'p', 'u', '0', '1'};
    static constexpr std::size_t host_bytes = 16;

    std::array<char, 8> mark{};
    std::uint64_t bytes = 0;
    std::array<char, 16> gpu{}; ///< its address on PCIe; not sent of the host's

    std::size_t size() const noexcept { return mark == of_gpu ? sizeof *this : host_bytes; }
};
static_assert(sizeof(message) == 32);

cuda::cuda_device* gpu_of(const device& which)
{
    return dynamic_cast<cuda::cuda_device*>(&detail::internals::backend(which));
}

cuda::cuda_device& require_gpu(const char* call, const device& which)
{
    cuda::cuda_device* const gpu = gpu_of(which);
    if (!gpu)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_holder: {}: {} is no GPU of CUDA; open cuda:N", call, which.name()));
    return *gpu;
}

struct mapping {
    void* at;
    std::size_t bytes;

    mapping(void* where, std::size_t size) : at(where), bytes(size) {}
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    ~mapping() { munmap(at, bytes); }
};

/// A block of memory in a mapping, which goes after it.
struct mapped_block {
    mapped_block(std::unique_ptr<mapping> in, const std::shared_ptr<devices::device_backend>& owner)
        : pages(std::move(in)), block(owner)
    {}
    const std::unique_ptr<mapping> pages;
    devices::memory_block block;
};

/// Room for what may come beside a message: as many descriptors as Linux passes at once, and what options of the socket
/// add, such as the sender's credentials.
union ancillary {
    cmsghdr header;
    std::array<char, CMSG_SPACE(253 * sizeof(int)) + 512> bytes;
};

[[noreturn]] void refuse(const char* call, const std::string& why)
{
    throw error(errc::invalid_argument, fmt::format("weftio: memory_holder: {}: {}", call, why));
}

[[noreturn]] void say_closed(const char* call)
{
    throw error(errc::closed, fmt::format("weftio: memory_holder: {}: the other process has closed the socket", call));
}

[[noreturn]] void refuse_socket(const char* call, int socket)
{
    const int why = errno;
    if (why == EPIPE || why == ECONNRESET || why == ECONNREFUSED)
        say_closed(call);
    refuse(call, fmt::format("descriptor {} is no connected Unix socket ({})", socket, std::strerror(why)));
}

void require_socket(const char* call, int socket)
{
    int domain = 0, listens = 0;
    socklen_t of_domain = sizeof domain, of_listens = sizeof listens;
    sockaddr_un peer{};
    socklen_t of_peer = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &of_domain) != 0)
        refuse_socket(call, socket);
    if (domain == AF_UNIX && getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &of_listens) == 0 && !listens &&
        (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &of_peer) == 0 || errno != ENOTCONN))
        return;
    errno = domain == AF_UNIX ? ENOTCONN : EAFNOSUPPORT;
    refuse_socket(call, socket);
}

/// Of memory that can be written and cannot shrink. Throws weftio::error.
std::size_t size_of(const char* call, int descriptor)
{
    struct stat seen {};
    const int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || fstat(descriptor, &seen) != 0)
        refuse(call, fmt::format("descriptor {} is no memory of memfd_create()", descriptor));
    if (!(seals & F_SEAL_SHRINK))
        refuse(call, fmt::format("the size of descriptor {} can shrink, and who reads what is gone gets SIGBUS; set "
                                 "F_SEAL_SHRINK",
                                 descriptor));
    if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) || (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDWR)
        refuse(call, fmt::format("descriptor {} is not to be written, by its seals or as it was opened", descriptor));
    if (seen.st_size == 0)
        refuse(call, fmt::format("descriptor {} has no bytes", descriptor));
    return static_cast<std::size_t>(seen.st_size);
}

/// Waits until the socket can be read or written. Returns false when the time is over.
bool wait_for(const char* call, int socket, short what, std::chrono::milliseconds timeout)
{
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds for_ever = std::chrono::hours(24 * 365 * 100); // longer ones would overflow
    timeout = std::clamp(timeout, std::chrono::milliseconds(0), for_ever);
    const auto begin = clock::now();
    for (;;) {
        const auto left = timeout - std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
        pollfd one{socket, what, 0};
        const int ready = poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            refuse_socket(call, socket);
        if (ready == 0 && clock::now() - begin >= timeout)
            return false;
    }
}

/// Descriptors that came with a message; those that nobody takes are closed.
class passed {
 public:
    explicit passed(msghdr& with)
    {
        for (cmsghdr* part = CMSG_FIRSTHDR(&with); part; part = CMSG_NXTHDR(&with, part))
            if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
                for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len && count_ < all_.size();
                     at += sizeof(int))
                    std::memcpy(&all_[count_++], reinterpret_cast<const char*>(part) + at, sizeof(int));
    }
    passed(const passed&) = delete;
    passed& operator=(const passed&) = delete;
    ~passed()
    {
        for (std::size_t each = 0; each < count_; ++each)
            if (all_[each] >= 0)
                close(all_[each]);
    }
    /// The only one; -1: there is none, or several.
    int only() const noexcept { return count_ == 1 ? all_[0] : -1; }
    int take() noexcept { return std::exchange(all_[0], -1); }

 private:
    std::array<int, 256> all_{};
    std::size_t count_ = 0;
};

/// So that a message does not come without its descriptor, and is gone. Throws weftio::error.
void require_free_descriptor(int socket)
{
    const int spare = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (spare < 0)
        throw error(
            errc::out_of_memory,
            fmt::format("weftio: memory_holder: receive: the process has no descriptor left ({}); what was sent "
                        "waits: raise `ulimit -n`, or close some",
                        std::strerror(errno)));
    close(spare);
}

} // namespace

memory_holder memory_holder::make(std::size_t bytes, const std::string& name)
{
    constexpr std::size_t most = std::size_t{1} << 62;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (bytes == 0)
        refuse("make", "0 bytes; ask for at least one");
    if (bytes > most)
        throw error(errc::out_of_memory,
                    fmt::format("weftio: memory_holder: make: {} bytes; no system has that many", bytes));
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (name.size() > 200)
        refuse("make", fmt::format("a name of {} letters; give 200 at most", name.size()));
    memory_holder made(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), whole);
    if (made.descriptor_ < 0 || ftruncate(made.descriptor_, static_cast<off_t>(whole)) != 0 ||
        fcntl(made.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        throw error(errc::out_of_memory, fmt::format("weftio: memory_holder: make: the system gives no {} bytes ({})",
                                                     whole, std::strerror(errno)));
    return made;
}

memory_holder memory_holder::make(const device& gpu, std::size_t bytes)
{
    cuda::cuda_device& on = require_gpu("make", gpu);
    if (bytes == 0)
        refuse("make", "0 bytes; ask for at least one");
    const cuda::shared_memory made = cuda::make_shared_memory(on, bytes);
    return {made.descriptor, made.bytes, on.pci_address()};
}

memory_holder memory_holder::of(const device& gpu, const void* address)
{
    const cuda::cuda_device& on = require_gpu("of", gpu);
    const cuda::shared_memory found = cuda::export_shared_memory(on, reinterpret_cast<std::uintptr_t>(address));
    return {found.descriptor, found.bytes, on.pci_address()};
}

memory_holder memory_holder::take(int descriptor)
{
    const std::size_t bytes = size_of("take", descriptor);
    return {descriptor, bytes};
}

memory_holder memory_holder::receive(int socket, std::chrono::milliseconds timeout)
{
    require_socket("receive", socket);
    if (!wait_for("receive", socket, POLLIN, timeout))
        throw error(errc::timed_out,
                    fmt::format("weftio: memory_holder: receive: no memory came within {} ms", timeout.count()));
    require_free_descriptor(socket);
    message got;
    ancillary beside{};
    iovec part{&got, sizeof got};
    msghdr received{};
    received.msg_iov = &part;
    received.msg_iovlen = 1;
    received.msg_control = &beside;
    received.msg_controllen = sizeof beside;
    const ssize_t bytes = recvmsg(socket, &received, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) // another thread was faster
        throw error(errc::timed_out, "weftio: memory_holder: receive: another thread has taken what came");
    if (bytes < 0)
        refuse_socket("receive", socket);
    passed descriptors(received);
    pollfd end{socket, POLLRDHUP, 0};
    if (bytes == 0 && poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLRDHUP)))
        say_closed("receive");
    const bool known = got.mark == message::of_host || got.mark == message::of_gpu;
    if (!known || bytes != static_cast<ssize_t>(got.size()) || (received.msg_flags & MSG_TRUNC) || got.bytes == 0 ||
        descriptors.only() < 0)
        refuse("receive", "what came is no memory of memory_holder::send()");
    if (got.mark == message::of_gpu)
        return {descriptors.take(), got.bytes, {got.gpu.data(), strnlen(got.gpu.data(), got.gpu.size())}};
    if (size_of("receive", descriptors.only()) != got.bytes)
        refuse("receive", fmt::format("memory of {} bytes was announced, and another one came", got.bytes));
    return {descriptors.take(), got.bytes};
}

memory_holder::memory_holder(memory_holder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, 0)),
      gpu_(std::move(other.gpu_))
{}

memory_holder& memory_holder::operator=(memory_holder&& other) noexcept
{
    std::swap(descriptor_, other.descriptor_);
    std::swap(bytes_, other.bytes_);
    std::swap(gpu_, other.gpu_);
    return *this;
}

memory_holder::~memory_holder()
{
    if (descriptor_ >= 0)
        close(descriptor_);
}

void memory_holder::send(int socket) const
{
    require_held("send");
    require_socket("send", socket);
    message what{.mark = gpu_.empty() ? message::of_host : message::of_gpu, .bytes = bytes_};
    std::copy_n(gpu_.begin(), std::min(gpu_.size(), what.gpu.size()), what.gpu.begin());
    ancillary beside{};
    iovec part{&what, what.size()};
    msghdr sent{};
    sent.msg_iov = &part;
    sent.msg_iovlen = 1;
    sent.msg_control = &beside;
    sent.msg_controllen = CMSG_SPACE(sizeof descriptor_);
    cmsghdr* const header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor_);
    std::memcpy(CMSG_DATA(header), &descriptor_, sizeof descriptor_);
    while (sendmsg(socket, &sent, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (errno == EAGAIN)
            (void)wait_for("send", socket, POLLOUT, std::chrono::hours(1));
        else if (errno != EINTR)
            refuse_socket("send", socket);
    }
}

void memory_holder::require_held(const char* call) const
{
    if (descriptor_ < 0)
        refuse(call, "it was moved from, and holds nothing");
}

memory memory_holder::map(const device& on) const
{
    require_held("map");
    if (!gpu_.empty())
        return map_on_gpu(on);
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED)
        throw error(errc::out_of_memory, fmt::format("weftio: memory_holder: map: the system maps no {} bytes ({})",
                                                     bytes_, std::strerror(errno)));
    auto pages = std::make_unique<mapping>(at, bytes_);
    const memory adopted = on.adopt(at, bytes_);
    const auto& as = *detail::internals::block(adopted);
    auto held = std::make_shared<mapped_block>(std::move(pages), as.owner);
    held->block.at = as.at;
    held->block.bytes = bytes_;
    held->block.kind = as.kind;
    held->block.adopted = true;
    return detail::internals::make_memory({held, &held->block});
}

memory memory_holder::map_on_gpu(const device& on) const
{
    if (!gpu_of(on))
        throw error(errc::not_reachable,
                    fmt::format("weftio: memory_holder: map: this is memory of the GPU at {}, and {} is none; open "
                                "that GPU, by its address or as cuda:N",
                                gpu_, on.name()));
    return cuda::map_shared_memory(on, {descriptor_, bytes_});
}

} // namespace weftio
