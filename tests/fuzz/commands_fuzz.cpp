// Any commands that a program could write to a node of weftio-run, executed by the engine on a port of its own.
//
// The input is a row of commands: a length, then so many bytes. Addresses in them are moved into memory of the
// fuzzer's, or into a hole beside it: others would be the fuzzer's own. Each command has an answer that Linux gives,
// and nothing is left behind.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/guarded.hpp"
#include "engine/commands.hpp"
#include "engine/context.hpp"
#include "engine/settings.hpp"
#include "expect.hpp"
#include "only_ports.hpp"
#include "program_memory.hpp"

namespace weftio::fuzz {

namespace {

using verbs::context;

constexpr std::size_t most_commands = 64;

verbs::node& the_node()
{
    static verbs::watcher& events = *new verbs::watcher;
    static verbs::node& made = *[] {
        core::guard_memory();
        port opened = port::open("loopback", {.idle = idle_policy::adaptive, .eal_arguments = {"--no-telemetry"}});
        rdma_device rdma(opened, {.address = "198.18.0.1", .link_local = true});
        return new verbs::node{opened, rdma, device::open("cpu"), events, verbs::settings{}.doorbell_bytes, ""};
    }();
    return made;
}

std::set<int> descriptors()
{
    std::set<int> found;
    DIR* const all = opendir("/proc/self/fd");
    while (const dirent* each = readdir(all))
        if (const int number = std::atoi(each->d_name); number > 2 && number != dirfd(all))
            found.insert(number);
    closedir(all);
    return found;
}

/// One command of the input, whose addresses are made good ones or holes.
class written {
 public:
    /// @param channel  descriptor of the completion channel that was made last
    written(std::span<const std::uint8_t> bytes, std::uint32_t channel) : bytes_(std::min(bytes.size(), room_.size()))
    {
        std::copy_n(bytes.begin(), bytes_, room_.begin());
        if (bytes_ < sizeof head_)
            return;
        std::memcpy(&head_, room_.data(), sizeof head_);
        move_addresses();
        if (is(IB_USER_VERBS_CMD_CREATE_CQ))
            put_channel(channel);
    }
    bool is(unsigned command) const noexcept { return bytes_ >= sizeof head_ && head_.command == command; }
    /// The first word of an answer that was given.
    std::uint32_t answered() const noexcept
    {
        const std::byte* to = nullptr;
        std::uint32_t word = 0;
        std::memcpy(&to, &room_[sizeof head_], sizeof to);
        std::memcpy(&word, to, sizeof word);
        return word;
    }
    const void* data() const noexcept { return room_.data(); }
    std::size_t size() const noexcept { return bytes_; }

 private:
    static constexpr std::size_t behind_extended = sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_ex_cmd_hdr);

    bool extended() const noexcept { return (head_.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0; }
    /// Every address but these: those of answers lie behind the first header in both forms.
    void move_addresses()
    {
        move_address(sizeof head_);
        switch (head_.command & IB_USER_VERBS_CMD_COMMAND_MASK) {
            case IB_USER_VERBS_CMD_DEALLOC_PD:
            case IB_USER_VERBS_CMD_DEREG_MR:
            case IB_USER_VERBS_CMD_MODIFY_QP: move_back(); break;
            case IB_USER_VERBS_CMD_REG_MR: move_address(sizeof head_ + offsetof(ib_uverbs_reg_mr, start)); break;
            case IB_USER_VERBS_CMD_REREG_MR: move_address(sizeof head_ + offsetof(ib_uverbs_rereg_mr, start)); break;
            case IB_USER_VERBS_CMD_CREATE_CQ: move_of_driver(sizeof(ib_uverbs_create_cq)); break;
            case IB_USER_VERBS_CMD_RESIZE_CQ: move_of_driver(sizeof(ib_uverbs_resize_cq)); break;
            case IB_USER_VERBS_CMD_CREATE_QP: move_of_driver(sizeof(ib_uverbs_create_qp)); break;
            default: break;
        }
    }
    /// The driver's part begins with addresses of a ring and of a doorbell record.
    void move_of_driver(std::size_t core)
    {
        const std::size_t at = extended() ? behind_extended + head_.in_words * std::size_t{8} : sizeof head_ + core;
        move_address(at);
        move_address(at + 8);
    }
    void move_address(std::size_t at)
    {
        std::uint64_t value = 0;
        if (at + sizeof value > bytes_)
            return;
        std::memcpy(&value, &room_[at], sizeof value);
        kept_ = value;
        if (value == 0 && extended()) // no answer is wanted
            return;
        value = reinterpret_cast<std::uint64_t>(arena()) + value % (arena_bytes + 8192);
        std::memcpy(&room_[at], &value, sizeof value);
    }
    /// Numbers of descriptors are not the input's to know.
    void put_channel(std::uint32_t channel)
    {
        const std::size_t at = sizeof head_ + offsetof(ib_uverbs_create_cq, comp_channel);
        if (at + sizeof channel <= bytes_ && room_[at] == 1)
            std::memcpy(&room_[at], &channel, sizeof channel);
    }
    /// There is no answer: a handle lies there.
    void move_back()
    {
        if (!extended() && bytes_ >= sizeof head_ + sizeof kept_)
            std::memcpy(&room_[sizeof head_], &kept_, sizeof kept_);
    }

    std::array<std::uint8_t, 1024> room_{};
    std::size_t bytes_;
    ib_uverbs_cmd_hdr head_{};
    std::uint64_t kept_ = 0;
};

void execute_all(std::span<const std::uint8_t> input)
{
    constexpr std::array errors{EINVAL, EFAULT, ENOENT, EBUSY, ENOSPC, ENOMEM, EOPNOTSUPP, EMFILE, ETIMEDOUT, EACCES};
    context opened(the_node(), 0);
    std::uint32_t channel = 0;
    for (std::size_t count = 0; count != most_commands && input.size() > 1; ++count) {
        const std::size_t bytes = std::min<std::size_t>(input[0] * std::size_t{4} + (input[1] & 3), input.size() - 2);
        const written one(input.subspan(2, bytes), channel);
        input = input.subspan(2 + bytes);
        const ssize_t result = opened.execute(0, one.data(), one.size());
        expect(result == static_cast<ssize_t>(one.size()) || std::ranges::count(errors, -result) == 1,
               "an answer that Linux gives");
        if (result > 0 && one.is(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL))
            channel = one.answered();
    }
    close(opened.program());
}

/// Programs close what they got: channels. What else is new has been left by the engine.
void close_new(const std::set<int>& before)
{
    for (const int number : descriptors()) {
        struct stat what;
        if (before.contains(number) || fstat(number, &what) != 0)
            continue;
        expect(S_ISSOCK(what.st_mode), "no descriptor of the engine's is left");
        close(number);
    }
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::the_node();
    static const bool warm = [] {
        std::memset(weftio::fuzz::arena(), 0, weftio::fuzz::arena_bytes);
        return true;
    }();
    static_cast<void>(warm);
    const std::set<int> before = weftio::fuzz::descriptors();
    weftio::fuzz::execute_all({data, bytes});
    weftio::fuzz::close_new(before);
    return 0;
}
