// Cost of finding registered memory: registration_cache beside the cache of UCX (ucs/memory/rcache.h), and what it
// costs to register without one. All rows of a round are measured in turn.
//
//   ./memory_bench                     7 rounds
//   ./memory_bench --entries 100000    a smaller cache for the rows with many entries; 1,000,000 need 8 GB of addresses
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "machine.hpp"
#include "weftio/registration_cache.hpp"
#include "weftio/weftio.hpp"
#ifdef WEFTIO_WITH_UCS
extern "C" { // which the second header does not say
#include <ucm/api/ucm.h>
#include <ucs/memory/rcache.h>
}
#endif

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::size_t page = 4096, hot = 64;
constexpr auto peer_writes = weftio::access::local_write | weftio::access::remote_write;

struct options : bench::common_options {
    std::size_t entries = 1'000'000;
    unsigned repeats = 200'000; ///< of each hit in a round
};

/// Pages with a page between each two, so that no two of them become one registration. Untouched ones take no memory.
class scattered_pages {
 public:
    explicit scattered_pages(std::size_t count) : bytes_(2 * count * page)
    {
        void* const at =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            throw std::runtime_error(
                fmt::format("memory_bench: no {} bytes of addresses: use fewer --entries", bytes_));
        begin_ = static_cast<std::byte*>(at);
    }
    scattered_pages(const scattered_pages&) = delete;
    scattered_pages& operator=(const scattered_pages&) = delete;
    ~scattered_pages() { munmap(begin_, bytes_); }

    void* operator[](std::size_t number) const { return begin_ + 2 * number * page; }

 private:
    std::size_t bytes_;
    std::byte* begin_;
};

/// Nanoseconds of one of `count` calls.
template <class What>
double ns_of(std::size_t count, What&& what)
{
    const auto begin = clock::now();
    for (std::size_t each = 0; each != count; ++each)
        what(each);
    return std::chrono::duration<double, std::nano>(clock::now() - begin).count() / static_cast<double>(count);
}

/// The order in which many entries are asked for.
std::vector<std::uint32_t> random_order(std::size_t entries, std::size_t asked)
{
    std::mt19937 random(1);
    std::uniform_int_distribution<std::uint32_t> any(0, static_cast<std::uint32_t>(entries - 1));
    std::vector<std::uint32_t> order(asked);
    std::ranges::generate(order, [&] { return any(random); });
    return order;
}

#ifdef WEFTIO_WITH_UCS
/// The cache that UCX's transports use, with registrations that do nothing.
class ucx_cache {
 public:
    ucx_cache()
    {
        static const ucs_rcache_ops_t nothing{
            .mem_reg = [](void*, ucs_rcache_t*, void*, ucs_rcache_region_t*, std::uint16_t) { return UCS_OK; },
            .mem_dereg = [](void*, ucs_rcache_t*, ucs_rcache_region_t*) {},
            .dump_region = [](void*, ucs_rcache_t*, ucs_rcache_region_t*, char*, std::size_t) {}};
        const ucs_rcache_params_t wanted{.region_struct_size = sizeof(ucs_rcache_region_t),
                                         .alignment = UCS_RCACHE_MIN_ALIGNMENT,
                                         .max_alignment = page,
                                         .ucm_events = UCM_EVENT_VM_UNMAPPED,
                                         .ucm_event_priority = 1000,
                                         .ops = &nothing,
                                         .context = nullptr,
                                         .flags = UCS_RCACHE_FLAG_NO_PFN_CHECK,
                                         .max_regions = ~0ul,
                                         .max_size = ~std::size_t{0},
                                         .max_unreleased = ~std::size_t{0}};
        if (ucs_rcache_create(&wanted, "bench", nullptr, &cache_) != UCS_OK)
            throw std::runtime_error("memory_bench: UCX makes no cache");
    }
    ucx_cache(const ucx_cache&) = delete;
    ucx_cache& operator=(const ucx_cache&) = delete;
    ~ucx_cache() { ucs_rcache_destroy(cache_); }

    void hit(void* at)
    {
        ucs_rcache_region_t* found = nullptr;
        if (ucs_rcache_get(cache_, at, page, PROT_READ | PROT_WRITE, nullptr, &found) != UCS_OK)
            throw std::runtime_error("memory_bench: UCX finds nothing");
        benchmark::DoNotOptimize(found);
        ucs_rcache_region_put(cache_, found);
    }

 private:
    ucs_rcache_t* cache_ = nullptr;
};
#endif

/// What is measured in each round. The caches exist all the time; those with many entries are filled once.
class ground {
 public:
    explicit ground(const options& wanted)
        : wanted_(wanted), pages_(wanted.entries), order_(random_order(wanted.entries, wanted.repeats)), few_(at_),
          many_(at_, {.budget_bytes = 4 * wanted.entries * page})
    {
        try {
            watched_.emplace(at_, registration_cache_options{.staleness = registration_staleness::userfault});
        } catch (const error& refused) {
            refused_ = refused.what();
        }
        for (std::size_t each = 0; each != hot; ++each) {
            (void)few_.get(pages_[each], page);
#ifdef WEFTIO_WITH_UCS
            ucx_few_.hit(pages_[each]);
#endif
        }
        for (std::size_t each = 0; each != wanted.entries; ++each) {
            (void)many_.get(pages_[each], page);
#ifdef WEFTIO_WITH_UCS
            ucx_many_.hit(pages_[each]);
#endif
        }
        if (watched_)
            for (std::size_t each = 0; each != hot; ++each)
                (void)watched_->get(own_[each], page);
    }

    const std::string& refused() const
    {
        return refused_;
    }

    double hit()
    {
        return ns_of(wanted_.repeats, [&](std::size_t) { find(few_, pages_[0]); });
    }
    double hit_of_hot(registration_cache& in)
    {
        return ns_of(wanted_.repeats, [&](std::size_t each) { find(in, pages_[each % hot]); });
    }
    double hot_alone()
    {
        return hit_of_hot(few_);
    }
    double hot_among_many()
    {
        return hit_of_hot(many_);
    }
    double random_hit()
    {
        return ns_of(order_.size(), [&](std::size_t each) { find(many_, pages_[order_[each]]); });
    }
    double watched_hit()
    {
        return ns_of(wanted_.repeats, [&](std::size_t) { find(*watched_, own_[0]); });
    }
    double remote_hit()
    {
        const registration held = few_.get(pages_[0], page, peer_writes);
        return ns_of(wanted_.repeats, [&](std::size_t) {
            const registration found = few_.get(pages_[0], page, peer_writes);
            benchmark::DoNotOptimize(found.rkey());
        });
    }
    double remote_key()
    {
        return ns_of(changes, [&](std::size_t) { (void)few_.get(pages_[0], page, peer_writes); });
    }
    /// Of pages that nobody has asked for since they were dropped.
    double miss(registration_cache& in, const scattered_pages& pages)
    {
        double sum = 0;
        for (std::size_t each = 0; each != changes; ++each) {
            void* const at = pages[hot + each % hot];
            sum += ns_of(1, [&](std::size_t) { (void)in.get(at, page); });
            in.invalidate(at, page);
        }
        return sum / changes;
    }
    double miss()
    {
        return miss(few_, pages_);
    }
    double watched_miss()
    {
        return miss(*watched_, own_);
    }
    /// The same without a cache. Closing is not measured, as with a miss.
    double register_region()
    {
        double sum = 0;
        for (std::size_t each = 0; each != changes; ++each) {
            std::optional<memory_region> made;
            sum += ns_of(1, [&](std::size_t) {
                made.emplace(at_, cpu_.adopt(pages_[hot + each % hot], page),
                             region_options{.rights = weftio::access::local_write});
            });
        }
        return sum / changes;
    }
    double register_and_close()
    {
        return ns_of(changes, [&](std::size_t) {
            const memory bytes = cpu_.adopt(pages_[0], page);
            const memory_region made(at_, bytes, {.rights = peer_writes});
        });
    }
    /// Hits a microsecond of `threads` threads, each with an entry of its own, or all with one.
    double rate(unsigned threads, bool one_entry)
    {
        std::vector<std::thread> all;
        std::atomic<unsigned> ready{0};
        std::atomic<double> sum{0};
        for (unsigned thread = 0; thread != threads; ++thread)
            all.emplace_back([&, thread] {
                ++ready;
                while (ready != threads)
                    std::this_thread::yield();
                void* const at = pages_[one_entry ? 0 : thread * 8];
                sum += 1e3 / ns_of(wanted_.repeats, [&](std::size_t) { find(few_, at); });
            });
        for (std::thread& each : all)
            each.join();
        return sum;
    }
#ifdef WEFTIO_WITH_UCS
    double ucx_hit()
    {
        return ns_of(wanted_.repeats, [&](std::size_t) { ucx_few_.hit(pages_[0]); });
    }
    double ucx_hot()
    {
        return ns_of(wanted_.repeats, [&](std::size_t each) { ucx_many_.hit(pages_[each % hot]); });
    }
    double ucx_random()
    {
        return ns_of(order_.size(), [&](std::size_t each) { ucx_many_.hit(pages_[order_[each]]); });
    }
#endif

 private:
    static constexpr std::size_t changes = 2000;

    static void find(registration_cache& in, void* at)
    {
        const registration found = in.get(at, page);
        benchmark::DoNotOptimize(found.lkey());
    }

    const options& wanted_;
    port at_ = port::open("null");
    device cpu_ = device::open("cpu");
    scattered_pages pages_, own_{2 * hot};
    std::vector<std::uint32_t> order_;
    registration_cache few_, many_;
    std::optional<registration_cache> watched_;
    std::string refused_;
#ifdef WEFTIO_WITH_UCS
    ucx_cache ucx_few_, ucx_many_;
#endif
};

/// A row of the table, and how it is measured.
struct row {
    std::string name, unit, peer;
    std::function<double(ground&)> measure;
    std::vector<double> values{};
};

/// Peers stand before the rows that are compared with them.
std::vector<row> rows_of(const options& wanted, const ground& at)
{
    const auto among = [&](const char* what) { return fmt::format("{}{} entries", what, wanted.entries); };
    std::vector<row> rows;
    const auto add = [&](std::string name, const char* unit, std::string peer, std::function<double(ground&)> measure) {
        rows.push_back({std::move(name), unit, std::move(peer), std::move(measure)});
    };
    std::string of_hit, of_random, of_hot;
#ifdef WEFTIO_WITH_UCS
    add(of_hit = "UCX: hit", "ns", "", &ground::ucx_hit);
    add(of_hot = among("UCX: 64 hot ones among "), "ns", "", &ground::ucx_hot);
    add(of_random = among("UCX: random hit among "), "ns", "", &ground::ucx_random);
#endif
    add("hit: local key", "ns", of_hit, &ground::hit);
    add("hit: remote key that somebody holds", "ns", of_hit, &ground::remote_hit);
    if (at.refused().empty())
        add("hit: local key, userfault", "ns", of_hit, &ground::watched_hit);
    add("64 hot ones alone", "ns", "", &ground::hot_alone);
    add(among("64 hot ones among "), "ns", "64 hot ones alone", &ground::hot_among_many);
    add(among("random hit among "), "ns", of_random, &ground::random_hit);
    add("register 4 KiB", "ns", "", &ground::register_region);
    add("miss of 4 KiB", "ns", "register 4 KiB", static_cast<double (ground::*)()>(&ground::miss));
    if (at.refused().empty())
        add("miss of 4 KiB, userfault", "ns", "register 4 KiB", &ground::watched_miss);
    add("register and close 4 KiB", "ns", "", &ground::register_and_close);
    add("remote key made and ended", "ns", "register and close 4 KiB", &ground::remote_key);
    add("hits of one thread", "M/s", "", [](ground& on) { return on.rate(1, true); });
    if (bench::usable_cores().size() >= 4) {
        add("hits of 4 threads, an entry each", "M/s", "hits of one thread",
            [](ground& on) { return on.rate(4, false); });
        add("hits of 4 threads, one entry", "M/s", "hits of one thread", [](ground& on) { return on.rate(4, true); });
    }
    return rows;
}

int measure(const options& wanted)
{
    ground on(wanted);
    std::vector<row> rows = rows_of(wanted, on);
    for (unsigned round = 0; round != wanted.rounds; ++round)
        for (row& each : rows)
            each.values.push_back(each.measure(on));
    bench::table table("memory_bench");
    for (row& each : rows)
        table.add({.name = each.name, .unit = each.unit, .values = std::move(each.values), .peer = each.peer});
#ifndef WEFTIO_WITH_UCS
    table.leave_out("UCX", "needs libucx-dev when it is built");
#endif
    if (!on.refused().empty())
        table.leave_out("userfault", on.refused());
    if (bench::usable_cores().size() < 4)
        table.leave_out("hits of 4 threads", "needs 4 cores");
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 7;
    CLI::App app("Cost of finding registered memory");
    app.add_option("--entries", wanted.entries, "registrations of the large caches")
        ->check(CLI::Range(std::size_t{1000}, std::size_t{4'000'000}))
        ->capture_default_str();
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return measure(wanted); });
}
