#include "storage/statistics.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

namespace weftio::storage {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

void add_to(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept
{
    to.fetch_add(value, relaxed);
}

void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept
{
    for (std::uint64_t seen = to.load(relaxed); seen < value && !to.compare_exchange_weak(seen, value, relaxed);) {
    }
}

std::size_t index_of(io::kind what) noexcept
{
    return what == io::kind::read ? 0 : what == io::kind::write ? 1 : 2;
}

} // namespace

int gpu_of(const place& memory) noexcept
{
    return gpu_of(memory.owner ? memory.owner.get() : memory.block ? memory.block->owner.get() : nullptr);
}

int gpu_of(const devices::device_backend* owner) noexcept
{
    return owner ? owner->cuda_number() : -1;
}

tally::tally(unsigned level) : level_(level)
{
    share();
    if (!page_) {
        own_ = std::make_unique<live_statistics>();
        page_ = own_.get();
    }
    page_->process = static_cast<std::uint64_t>(::getpid());
    page_->level = level;
    add_rows();
}

tally::~tally()
{
    rows_.clear(); // they read the page
    if (descriptor_ >= 0) {
        ::munmap(page_, sizeof(live_statistics));
        ::close(descriptor_);
    }
}

/// Puts the page into a memfd. Without one, as where no descriptor is left, the page is this process's alone.
void tally::share()
{
    descriptor_ = ::memfd_create(statistics_name, MFD_CLOEXEC);
    if (descriptor_ < 0)
        return;
    void* mapped = ::ftruncate(descriptor_, sizeof(live_statistics)) == 0
                       ? ::mmap(nullptr, sizeof(live_statistics), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
                       : MAP_FAILED;
    if (mapped != MAP_FAILED) {
        page_ = new (mapped) live_statistics;
        return;
    }
    ::close(descriptor_);
    descriptor_ = -1;
}

std::uint64_t tally::now() const noexcept
{
    if (level_ == 0)
        return 0;
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

measured tally::begin(std::size_t bytes, const place& memory) const noexcept
{
    return {now(), bytes, level_ >= 3 ? gpu_of(memory) : -1};
}

measured tally::begin(std::size_t bytes, const devices::device_backend* owner) const noexcept
{
    return {now(), bytes, level_ >= 3 ? gpu_of(owner) : -1};
}

void tally::add(io::kind what, const file_result& result, const measured& how) noexcept
{
    const std::size_t which = index_of(what), way_number = static_cast<std::size_t>(result.way);
    const auto bytes = static_cast<std::uint64_t>(result.bytes);
    live_statistics::per_way& way = page_->ways[way_number];
    add_to(way.operations[which], 1);
    if (which < 2)
        add_to(way.bytes[which], bytes);
    if (!result.ok())
        add_to(way.errors[which], 1);
    add_to(page_->falls[static_cast<std::size_t>(result.fall)], 1);
    if (how.begin_ns == 0)
        return;
    const std::uint64_t latency = now() - how.begin_ns;
    add_to(way.latency_ns[which], latency);
    raise(way.latency_max_ns[which], latency);
    if (level_ >= 2 && which < 2) {
        const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(how.bytes)),
                                                  live_statistics::sizes_count - 1);
        add_to(page_->sizes[way_number][which][bucket], 1);
    }
    if (level_ >= 3 && how.gpu >= 0 && static_cast<std::size_t>(how.gpu) < live_statistics::gpus_count) {
        live_statistics::per_gpu& gpu = page_->gpus[static_cast<std::size_t>(how.gpu)][way_number];
        add_to(gpu.operations, 1);
        add_to(gpu.errors, result.ok() ? 0 : 1);
        add_to(gpu.bytes, bytes);
    }
}

file_counters tally::read() const noexcept
{
    const auto value = [](const std::atomic<std::uint64_t>& of) { return of.load(relaxed); };
    file_counters counters;
    for (std::size_t i = 0; i < counters.ways.size(); ++i) {
        const live_statistics::per_way& way = page_->ways[i];
        counters.ways[i] = {value(way.operations[0]), value(way.bytes[0]), value(way.errors[0]),
                            value(way.operations[1]), value(way.bytes[1]), value(way.errors[1]),
                            value(way.operations[2]), value(way.errors[2])};
    }
    for (std::size_t i = 0; i < counters.falls.size(); ++i)
        counters.falls[i] = value(page_->falls[i]);
    return counters;
}

} // namespace weftio::storage
