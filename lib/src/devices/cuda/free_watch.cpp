#include "devices/cuda/free_watch.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/process.hpp"
#include "core/undying.hpp"
#include "devices/cuda/free_jumps.hpp"

namespace weftio::devices::cuda {

namespace {

/// Memory of which this thread has told already.
thread_local std::uintptr_t told_of = 0;

ending memory_at(const void* begin) noexcept
{
    return {.what = ending::kind::memory, .begin = reinterpret_cast<std::uintptr_t>(begin)};
}

/// Whether the driver has ended the primary context.
bool primary_is_over(device_number of) noexcept
{
    unsigned flags = 0;
    int active = 1;
    const driver& cuda = the_driver();
    return cuda.cuDevicePrimaryCtxGetState && cuda.cuDevicePrimaryCtxGetState(of, &flags, &active) == success &&
           active == 0;
}

} // namespace

/// Who is told, and how many threads are telling.
class free_watch::subscription {
 public:
    explicit subscription(free_listener& who) noexcept : who_(who) {}

    void tell(const ending& what) noexcept
    {
        users_.fetch_add(1, std::memory_order_seq_cst);
        if (!over_.load(std::memory_order_seq_cst))
            tell_of(what);
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            users_.notify_all();
    }
    void end() noexcept
    {
        over_.store(true, std::memory_order_seq_cst);
        for (unsigned in = users_.load(std::memory_order_acquire); in != 0; in = users_.load(std::memory_order_acquire))
            users_.wait(in, std::memory_order_acquire);
    }

 private:
    void tell_of(const ending& what) noexcept
    {
        switch (what.what) {
            case ending::kind::memory: return who_.freed(what.begin);
            case ending::kind::mapping: return who_.unmapped(what.begin, what.bytes);
            case ending::kind::context: return who_.context_ended(what.of);
            case ending::kind::primary: return who_.primary_ended(what.gpu);
            case ending::kind::release:
            case ending::kind::unseen: return;
        }
    }

    free_listener& who_;
    std::atomic<unsigned> users_{0};
    std::atomic<bool> over_{false};
};

free_watch& free_watch::instance()
{
    return core::undying<free_watch>();
}

std::shared_ptr<free_watch::subscription> free_watch::subscribe(free_listener& who)
{
    const std::scoped_lock lock(changes_);
    auto made = std::make_shared<subscription>(who);
    auto more = std::make_shared<listeners>(*present());
    more->push_back(made);
    if (!jumps_)
        jumps_ = std::make_unique<free_jumps>();
    const std::scoped_lock publish(mutex_);
    listeners_ = std::move(more);
    return made;
}

void free_watch::unsubscribe(const std::shared_ptr<subscription>& ended) noexcept
{
    ended->end(); // without the lock: a listener may wait for it
    const std::scoped_lock lock(changes_);
    try {
        auto fewer = std::make_shared<listeners>(*present());
        std::erase(*fewer, ended);
        if (fewer->empty())
            jumps_.reset();
        const std::scoped_lock publish(mutex_);
        listeners_ = std::move(fewer);
    } catch (const std::bad_alloc&) { // it stays in the list, and is told nothing
    }
}

std::shared_ptr<const free_watch::listeners> free_watch::present() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return listeners_;
}

/// Returns false if the process is a child of fork(), whose locks may be held for ever, or exits.
bool free_watch::tell(const ending& what) noexcept
{
    static const core::maker here;
    if (!here.may_end())
        return false;
    const std::shared_ptr<const listeners> all = present();
    for (const auto& each : *all)
        each->tell(what);
    return true;
}

free_watch::call::call(const ending& what) noexcept : what_(what)
{
    free_watch& watch = instance();
    watch.begun_.fetch_add(1, std::memory_order_seq_cst);
    if (what.what != ending::kind::memory || what.begin != told_of)
        told_ = watch.tell(what);
}

free_watch::call::~call()
{
    free_watch& watch = instance();
    if (what_.what == ending::kind::release && primary_is_over(what_.gpu))
        watch.tell({.what = ending::kind::primary, .gpu = what_.gpu});
    if (!told_ || (what_.what != ending::kind::memory && what_.what != ending::kind::mapping))
        watch.unseen_.fetch_add(1, std::memory_order_release);
    watch.ended_.fetch_add(1, std::memory_order_release);
}

freeing::freeing(const void* begin) noexcept
    : call_(memory_at(begin)), outer_(std::exchange(told_of, reinterpret_cast<std::uintptr_t>(begin)))
{}

freeing::~freeing()
{
    told_of = outer_;
}

} // namespace weftio::devices::cuda
