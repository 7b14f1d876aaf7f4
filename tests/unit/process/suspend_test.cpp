// A process that is suspended and continued, as by Ctrl-Z, while kernels send, receive and wait for deadlines.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "patience.hpp"
#include "scene.hpp"
#include "stage.hpp"

namespace {

using namespace std::chrono_literals;
using weftio::test::ends_well, weftio::test::eventually, weftio::test::patience, weftio::test::scene,
    weftio::test::scene_argument, weftio::test::stage;

/// A process that suspends its parent once, when it is told to.
class suspender {
 public:
    suspender()
    {
        if (pipe(ends_) != 0 || (child_ = fork()) != 0)
            return;
        char go = 0;
        const bool wanted = read(ends_[0], &go, 1) == 1;
        if (wanted) {
            kill(getppid(), SIGSTOP);
            std::this_thread::sleep_for(1500ms);
            kill(getppid(), SIGCONT);
        }
        _exit(wanted ? 0 : 1);
    }
    /// Returns whether this process was suspended, and was continued.
    bool suspend() const
    {
        int status = -1;
        return write(ends_[1], "", 1) == 1 && waitpid(child_, &status, 0) == child_ && status == 0;
    }

 private:
    int ends_[2]{};
    pid_t child_ = -1;
};

const scene suspended_and_continued("suspended_and_continued", [] {
    constexpr std::uint32_t frames = 20;
    const suspender other; // forks, so it comes first
    stage all("null");
    weftio::eth_txq paced(all.port, all.device, {.entries = 64});
    if (!all.run())
        return 1;
    weftio_dev_eth_txq* const txq = paced.handle();
    const std::uint64_t begin_ns = weftio::utc_now_ns();
    for (std::uint32_t frame = 1; frame <= frames; ++frame) { // most of them while the process is suspended
        weftio_dev_eth_txq_wait_time_enqueue_strong(txq, weftio::eth_txq::timestamp(begin_ns + frame * 100'000'000),
                                                    WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(all.frames.handle(), 0), 60,
                                               WEFTIO_DEV_SEND_NONE);
    }
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    if (!other.suspend())
        return 2;
    const std::uint64_t sent = all.out.counters().sent;
    if (!eventually([&] { return paced.counters().sent == frames && all.out.counters().sent > sent + 1000; }))
        return 4;
    const weftio::eth_txq_counters count = paced.counters();
    return count.waited == frames && count.failed == 0 && count.flushed == 0 ? 3 : 5;
});

TEST(ProcessSuspend, KernelsAndDeadlinesGoOn)
{
    ends_well("suspended_and_continued", "", 3, 1);
}

} // namespace
