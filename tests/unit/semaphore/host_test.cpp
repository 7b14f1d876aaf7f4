// The host class: what it accepts, what it shows of the items, what it refuses to show.
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(produce_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(consume_items, "semaphore_kernels.h");

namespace weftio::test {
namespace {

using semaphore_status::done;
using semaphore_status::free;
using semaphore_status::hold;
using semaphore_status::ready;
using testing::ElementsAre;
using testing::HasSubstr;

class HostSemaphore : public each_device {};

TEST_P(HostSemaphore, ItemsAreFreeAtFirstAndKeepWhatTheyAreGiven)
{
    semaphore items(where(), {.items = 4, .custom_info_bytes = 100});
    for (std::uint32_t index = 0; index < 4; ++index) {
        EXPECT_EQ(items.get_status(index), free);
        EXPECT_EQ(items.set_packet_info(index, ready, {.count = 10 + index, .first = 20 + index}), WEFTIO_DEV_OK);
        std::memset(items.get_custom_info(index), static_cast<int>(index), 100);
    }
    EXPECT_EQ(items.set_status(2, done), WEFTIO_DEV_OK);
    EXPECT_EQ(items.get_status(2), done);
    EXPECT_FALSE(items.get_packet_info(2));
    EXPECT_EQ(items.get_packet_info(2, done)->count, 12u);
    EXPECT_EQ(items.get_packet_info(3)->first, 23u);
    for (std::uint32_t index = 0; index < 4; ++index)
        EXPECT_EQ(static_cast<const std::uint8_t*>(items.get_custom_info(index))[99], index);
}

TEST_P(HostSemaphore, IndicesRunRoundTheItems)
{
    semaphore items(where(), {.items = 8, .custom_info_bytes = 1});
    items.set_packet_info(0xffff'ffff, ready, {.count = 1, .first = 2});
    EXPECT_EQ(items.get_status(7), ready);
    EXPECT_EQ(items.get_packet_info(15)->first, 2u);
    EXPECT_EQ(items.get_custom_info(7), items.get_custom_info(0xffff'ffff));
    EXPECT_NE(items.get_custom_info(7), items.get_custom_info(8));
}

TEST_P(HostSemaphore, HoldsOneItemAndAMillion)
{
    for (std::uint32_t count : {1u, 1u << 20}) {
        semaphore items(where(), {.items = count});
        EXPECT_EQ(items.items(), count);
        items.set_status(count - 1, hold);
        EXPECT_EQ(items.get_status(2 * count - 1), hold);
        EXPECT_EQ(items.get_status(count), count == 1 ? hold : free);
    }
}

TEST_P(HostSemaphore, HoldsAnyNumberOfItems)
{
    for (std::uint32_t count : {3u, 100u, (1u << 20) - 1}) {
        semaphore items(where(), {.items = count, .custom_info_bytes = 1});
        EXPECT_EQ(items.items(), count);
        items.set_status(count - 1, hold);
        EXPECT_EQ(items.get_status(2 * count - 1), hold);
        EXPECT_EQ(items.get_status(count), free);
        EXPECT_EQ(items.get_custom_info(0), items.get_custom_info(5 * count));
        EXPECT_NE(items.get_custom_info(0), items.get_custom_info(count - 1));
    }
}

TEST(SemaphoreIndices, GoOnWithTheNextItemWhereTheyWrap)
{
    const device cpu = device::open("cpu"); // where the host may use a handle
    for (std::uint32_t count : {1u, 3u, 4u, 100u, 1u << 20}) {
        const semaphore items(cpu, {.items = count});
        const auto last = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / count * count - 1);
        EXPECT_EQ(weftio_dev_semaphore_slot(items.handle(), last), count - 1);
        EXPECT_EQ(weftio_dev_semaphore_next(items.handle(), last), 0u);
        EXPECT_EQ(weftio_dev_semaphore_next(items.handle(), last - 1), last);
        EXPECT_EQ(weftio_dev_semaphore_next(items.handle(), 0), 1u);
    }
}

TEST_P(HostSemaphore, RefusesSizesThatItCannotHave)
{
    for (std::uint32_t items : {0u, (1u << 20) + 1, UINT32_MAX}) {
        error refused = error_of([&] { semaphore(where(), {.items = items}); });
        EXPECT_EQ(refused.code(), errc::invalid_argument);
        EXPECT_THAT(refused.what(), HasSubstr("items is " + std::to_string(items)));
    }
    constexpr std::uint32_t most_info = 1u << 20;
    EXPECT_EQ(error_of([&] { semaphore(where(), {.custom_info_bytes = most_info + 1}); }).code(),
              errc::invalid_argument);
    EXPECT_NO_THROW(semaphore(where(), {.items = 1, .custom_info_bytes = most_info}));
}

TEST_P(HostSemaphore, RefusesAtSetUpThatTheCpuReadsWhatLivesOnlyOnTheDevice)
{
    auto refusal = [this](semaphore_options options) { return error_of([&] { semaphore(where(), options); }); };
    error of_items = refusal({.kind = memory_kind::device, .cpu_access = true});
    EXPECT_EQ(of_items.code(), errc::not_reachable);
    EXPECT_THAT(of_items.what(), HasSubstr("items are of kind \"device\""));
    error of_info = refusal({.custom_info_bytes = 8, .custom_info_kind = memory_kind::device, .cpu_access = true});
    EXPECT_EQ(of_info.code(), errc::not_reachable);
    EXPECT_THAT(of_info.what(), HasSubstr("custom info is of kind \"device\""));
    EXPECT_NO_THROW(semaphore(where(), {.custom_info_kind = memory_kind::device, .cpu_access = true}))
        << "there is none";
}

/// What each accessor says of a semaphore that the CPU may not look into.
void expect_out_of_reach(semaphore& items, const char* why)
{
    const std::vector<std::function<void()>> accessors{
        [&] { items.get_status(0); },      [&] { items.set_status(0, hold); },
        [&] { items.get_packet_info(0); }, [&] { items.set_packet_info(0, ready, {}); },
        [&] { items.get_custom_info(0); }, [&] { items.for_each_ready([](auto...) {}); }};
    for (const auto& accessor : accessors) {
        error refused = error_of(accessor);
        EXPECT_EQ(refused.code(), errc::not_reachable);
        EXPECT_THAT(refused.what(), HasSubstr(why));
    }
}

TEST_P(HostSemaphore, ThrowsInsteadOfReadingWhatLivesOnlyOnTheDevice)
{
    semaphore items(where(), {.kind = memory_kind::device, .custom_info_bytes = 8});
    expect_out_of_reach(items, "items are of kind \"device\"");
}

TEST_P(HostSemaphore, ThrowsWhereItWasMadeWithoutCpuAccess)
{
    semaphore items(where(), {.custom_info_bytes = 8, .cpu_access = false});
    expect_out_of_reach(items, "cpu_access = false");
}

TEST_P(HostSemaphore, ShowsItemsWhoseCustomInfoLivesOnlyOnTheDevice)
{
    semaphore items(where(), {.items = 2, .custom_info_bytes = 8, .custom_info_kind = memory_kind::device});
    items.set_packet_info(0, ready, {.count = 5});
    EXPECT_EQ(items.get_status(0), ready);
    error refused = error_of([&] { items.get_custom_info(0); });
    EXPECT_EQ(refused.code(), errc::not_reachable);
    EXPECT_THAT(refused.what(), HasSubstr("custom info is of kind \"device\""));
    void* shown = &items;
    EXPECT_EQ(items.for_each_ready([&](auto, auto, auto, void* info) { shown = info; }), 1u);
    EXPECT_EQ(shown, nullptr);
}

TEST_P(HostSemaphore, HasNoCustomInfoUnlessAskedFor)
{
    semaphore items(where(), {.items = 2});
    EXPECT_EQ(items.get_custom_info(1), nullptr);
}

TEST_P(HostSemaphore, VisitsReadyItemsInOrderOnceAndFreesThem)
{
    semaphore items(where(), {.items = 4, .custom_info_bytes = 1});
    std::vector<std::uint32_t> visited;
    auto visit = [&](std::uint32_t index, std::uint32_t count, std::uint32_t first, void* info) {
        EXPECT_EQ(count, index + 100);
        EXPECT_EQ(first, index + 200);
        EXPECT_EQ(info, items.get_custom_info(index));
        EXPECT_EQ(items.get_status(index), ready) << "freed too early";
        visited.push_back(index);
    };
    auto produce = [&](std::uint32_t index) { items.set_packet_info(index, ready, {index + 100, index + 200}); };

    EXPECT_EQ(items.for_each_ready(visit), 0u);
    for (std::uint32_t index : {0u, 1u, 3u}) // not 2: it ends there
        produce(index);
    EXPECT_EQ(items.for_each_ready(visit), 2u);
    for (std::uint32_t index : {2u, 4u, 5u})
        produce(index);
    EXPECT_EQ(items.for_each_ready(visit), 4u);
    EXPECT_EQ(items.for_each_ready(visit), 0u);
    EXPECT_THAT(visited, ElementsAre(0, 1, 2, 3, 4, 5));
    for (std::uint32_t index = 0; index < 4; ++index)
        EXPECT_EQ(items.get_status(index), free);
}

TEST_P(HostSemaphore, VisitsAtMostOnceRound)
{
    semaphore items(where(), {.items = 2, .check_transitions = false});
    items.set_status(0, ready);
    items.set_status(1, ready);
    auto visit_and_refill = [&](std::uint32_t index, auto...) { items.set_status(index + 1, ready); };
    EXPECT_EQ(items.for_each_ready(visit_and_refill), 2u);
}

TEST_P(HostSemaphore, AnItemWhoseVisitThrowsComesAgain)
{
    semaphore items(where(), {.items = 2});
    items.set_status(0, ready);
    EXPECT_THROW(items.for_each_ready([](auto...) { throw std::runtime_error("not now"); }), std::runtime_error);
    EXPECT_EQ(items.get_status(0), ready);
    EXPECT_EQ(items.for_each_ready([](auto...) {}), 1u);
}

TEST_P(HostSemaphore, MovesWithItsItems)
{
    semaphore first(where(), {.items = 2});
    first.set_status(1, hold);
    weftio_dev_semaphore* handle = first.handle();
    semaphore second(std::move(first));
    first = std::move(second);
    EXPECT_EQ(first.handle(), handle);
    EXPECT_EQ(first.get_status(1), hold);
}

TEST_P(HostSemaphore, SaysThatItWasMovedFrom)
{
    semaphore items(where(), {.items = 4}), moved = std::move(items);
    EXPECT_EQ(items.handle(), nullptr);
    EXPECT_EQ(items.control(), nullptr);
    EXPECT_EQ(items.items(), 0u);
    EXPECT_EQ(items.illegal_transitions().count, 0u);
    const std::function<void()> refused[] = {[&] { (void)items.get_status(0); }, [&] { items.set_status(0, ready); },
                                             [&] { (void)items.get_custom_info(0); }, [&] { (void)items.peer(); },
                                             [&] { items.reset(); }};
    for (const auto& call : refused) {
        const error refusal = error_of(call);
        EXPECT_EQ(refusal.code(), errc::closed);
        EXPECT_THAT(refusal.what(), HasSubstr("it was moved from; use the object that it was moved to"));
    }
    const error refusal = error_of([&] {
        (void)where().launch(produce_items_kernel, {1, 1}, items, 1u, static_cast<account*>(nullptr));
    });
    EXPECT_THAT(refusal.what(), HasSubstr("an argument is an object that was moved from"));
}

TEST_P(HostSemaphore, ResetFreesItemsOfEveryKindAndStartsAtZero)
{
    for (memory_kind kind : {memory_kind::device, memory_kind::cpu_device}) {
        semaphore items(where(), {.items = 4, .kind = kind});
        shared<account> tally(where());
        run(produce_items_kernel, {1, 1}, items, 4u, tally.on_device());
        items.reset();
        run(produce_items_kernel, {1, 1}, items, 4u, tally.on_device()); // would wait for ever were they not free
        run(consume_items_kernel, {1, 1}, items, 4u, tally.on_device());
        EXPECT_EQ(tally[0].passed, 4u);
        EXPECT_EQ(tally[0].failed, 0u);
    }
    semaphore items(where(), {.items = 4});
    items.set_status(0, ready);
    items.for_each_ready([](auto...) {});
    items.reset();
    items.set_status(0, ready);
    EXPECT_EQ(items.for_each_ready([](std::uint32_t index, auto...) { EXPECT_EQ(index, 0u); }), 1u);
}

INSTANTIATE_TEST_SUITE_P(On, HostSemaphore, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
