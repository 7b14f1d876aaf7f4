#include "weftio/memory_holder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "devices/backend.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

/// What comes with the descriptor.
struct message {
    std::array<char, 8> mark{'w', 'f', 't', 'm', 'e', 'm', '0', '1'};
    std::uint64_t bytes = 0;
};

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

/// Room for one descriptor beside a message.
union ancillary {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

[[noreturn]] void refuse(const char* call, const std::string& why)
{
    throw error(errc::invalid_argument, fmt::format("weftio: memory_holder: {}: {}", call, why));
}

[[noreturn]] void refuse_socket(const char* call, int socket)
{
    const int why = errno;
    if (why == EPIPE || why == ECONNRESET)
        throw error(errc::closed,
                    fmt::format("weftio: memory_holder: {}: the other process has closed the socket", call));
    refuse(call, fmt::format("descriptor {} is no connected Unix socket ({})", socket, std::strerror(why)));
}

/// Of memory that cannot shrink. Throws weftio::error.
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
    if (seen.st_size == 0)
        refuse(call, fmt::format("descriptor {} has no bytes", descriptor));
    return static_cast<std::size_t>(seen.st_size);
}

void wait_for_message(int socket, std::chrono::milliseconds timeout)
{
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd one{socket, POLLIN, 0};
        const int ready = poll(&one, 1, static_cast<int>(std::max<long>(0, left.count())));
        if (ready > 0)
            return;
        if (ready == 0)
            throw error(errc::timed_out,
                        fmt::format("weftio: memory_holder: receive: no memory came within {} ms", timeout.count()));
        if (errno != EINTR)
            refuse_socket("receive", socket);
    }
}

/// The descriptor that came with a message; -1: none, or several.
int descriptor_of(msghdr& received)
{
    int found = -1;
    for (cmsghdr* part = CMSG_FIRSTHDR(&received); part; part = CMSG_NXTHDR(&received, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS && part->cmsg_len == CMSG_LEN(sizeof found))
            std::memcpy(&found, CMSG_DATA(part), sizeof found);
    return found;
}

} // namespace

memory_holder memory_holder::make(std::size_t bytes, const std::string& name)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole == 0 || whole > std::size_t{1} << 62)
        refuse("make", fmt::format("{} bytes; ask for at least one", bytes));
    if (name.size() > 200)
        refuse("make", fmt::format("a name of {} letters; give 200 at most", name.size()));
    memory_holder made(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), whole);
    if (made.descriptor_ < 0 || ftruncate(made.descriptor_, static_cast<off_t>(whole)) != 0 ||
        fcntl(made.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        throw error(errc::out_of_memory, fmt::format("weftio: memory_holder: make: the system gives no {} bytes ({})",
                                                     whole, std::strerror(errno)));
    return made;
}

memory_holder memory_holder::take(int descriptor)
{
    const std::size_t bytes = size_of("take", descriptor);
    return {descriptor, bytes};
}

memory_holder memory_holder::receive(int socket, std::chrono::milliseconds timeout)
{
    wait_for_message(socket, timeout);
    message got{.mark = {}};
    ancillary beside{};
    iovec part{&got, sizeof got};
    msghdr received{};
    received.msg_iov = &part;
    received.msg_iovlen = 1;
    received.msg_control = &beside;
    received.msg_controllen = sizeof beside;
    const ssize_t bytes = recvmsg(socket, &received, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (bytes < 0)
        refuse_socket("receive", socket);
    if (bytes == 0)
        throw error(errc::closed, "weftio: memory_holder: receive: the other process has closed the socket");
    memory_holder held(descriptor_of(received), got.bytes);
    if (bytes != sizeof got || got.mark != message{}.mark || held.descriptor_ < 0)
        refuse("receive", "what came is no memory of memory_holder::send()");
    if (size_of("receive", held.descriptor_) != got.bytes)
        refuse("receive", fmt::format("memory of {} bytes was announced, and another one came", got.bytes));
    return held;
}

memory_holder::memory_holder(memory_holder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, 0))
{}

memory_holder& memory_holder::operator=(memory_holder&& other) noexcept
{
    std::swap(descriptor_, other.descriptor_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

memory_holder::~memory_holder()
{
    if (descriptor_ >= 0)
        close(descriptor_);
}

void memory_holder::send(int socket) const
{
    message what{.bytes = bytes_};
    ancillary beside{};
    iovec part{&what, sizeof what};
    msghdr sent{};
    sent.msg_iov = &part;
    sent.msg_iovlen = 1;
    sent.msg_control = &beside;
    sent.msg_controllen = sizeof beside;
    cmsghdr* const header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor_);
    std::memcpy(CMSG_DATA(header), &descriptor_, sizeof descriptor_);
    ssize_t bytes = -1;
    do
        bytes = sendmsg(socket, &sent, MSG_NOSIGNAL);
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0)
        refuse_socket("send", socket);
}

memory memory_holder::map(const device& on) const
{
    if (descriptor_ < 0)
        refuse("map", "it was moved from, and holds nothing");
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

} // namespace weftio
