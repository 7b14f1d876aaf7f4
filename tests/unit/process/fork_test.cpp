// Children of a program with ports: what they leave alone.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "own_network.hpp"
#include "scene.hpp"
#include "stage.hpp"

namespace {

using weftio::test::ends_well, weftio::test::eventually, weftio::test::in_own_network, weftio::test::scene,
    weftio::test::scene_argument, weftio::test::stage;

constexpr int times = 5;

std::unique_ptr<stage> kept_stage;

/// Forks, and returns how the child ended; -1: by a signal.
int in_a_child(int (*play)())
{
    const pid_t child = fork();
    if (child == 0)
        std::exit(play()); // with static destructors
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool goes_on(stage& all)
{
    const std::uint64_t before = all.out.counters().sent;
    return eventually([&] { return all.out.counters().sent > before + 100; });
}

int fork_and_go_on(weftio::engine_mode mode)
{
    kept_stage = std::make_unique<stage>(scene_argument(), weftio::port_options{.mode = mode});
    if (!kept_stage->run())
        return 1;
    for (int child = 0; child < 3; ++child)
        if (in_a_child([] { return 5; }) != 5)
            return 2;
    return goes_on(*kept_stage) ? 3 : 4;
}

const scene forks_with_threads("forks_with_threads", [] { return fork_and_go_on(weftio::engine_mode::thread); });
const scene forks_inline("forks_inline", [] { return fork_and_go_on(weftio::engine_mode::inline_worker); });

const scene child_that_destroys("child_that_destroys", [] {
    kept_stage = std::make_unique<stage>(scene_argument());
    if (!kept_stage->run())
        return 1;
    if (in_a_child([] {
            kept_stage.reset();
            return 5;
        }) != 5)
        return 2;
    return goes_on(*kept_stage) ? 3 : 4;
});

const scene child_that_opens("child_that_opens", [] {
    kept_stage = std::make_unique<stage>(scene_argument());
    const int child = in_a_child([] {
        try {
            weftio::port::open("null");
        } catch (const weftio::error& refused) {
            return std::string_view(refused.what()).find("the parent of this one") != std::string_view::npos ? 5 : 6;
        }
        return 7;
    });
    return child == 5 ? 3 : child;
});

TEST(Fork, LeavesAChildThatExitsAndItsParentUnhurt)
{
    for (const char* spec : {"null", "loopback"}) {
        ends_well("forks_with_threads", spec, 3, times);
        ends_well("forks_inline", spec, 3, times);
    }
}

const scene forks_inline_sending("forks_inline_sending", [] {
    kept_stage =
        std::make_unique<stage>(scene_argument(), weftio::port_options{.mode = weftio::engine_mode::inline_worker});
    if (!kept_stage->send(8))
        return 1;
    for (int child = 0; child < 3; ++child)
        if (in_a_child([] { return 5; }) != 5)
            return 2;
    return kept_stage->send(8) ? 3 : 4;
});

TEST(Fork, LeavesAParentOnAnInterfaceUnhurt)
{
    in_own_network("children of programs on interfaces", [] {
        for (const char* spec : {"net_af_packet_fork,iface=v1", "iface:v1"})
            ends_well("forks_inline_sending", spec, 3, times);
    });
}

TEST(Fork, LetsAChildEndObjectsOfItsParent)
{
    ends_well("child_that_destroys", "loopback", 3, times);
}

TEST(Fork, RefusesAPortInAChildInOneSentence)
{
    ends_well("child_that_opens", "loopback", 3, 1);
}

} // namespace
