// Kernels of the stand-in: it has none but that of weftio-litmus, which it knows by its name and plays on a thread of
// the CPU, by the alias of the GPU's memory. It is a translation by hand: only a GPU says whether the PTX text does the
// same.
#include <cstring>

#include "cuda_state.hpp"

using namespace stand_in;

namespace {

/// As apps/litmus/cuda.hpp has them.
enum control { stop = 0, answered = 1, asked = 8, trials_done = 9, stale_seen = 10, rounds_read = 11, ended_at = 12 };
struct task {
    std::uint64_t flags, data, control, pairs, words, trials, until, asks;
};

int the_module, the_kernel;

std::uint64_t load(const std::uint64_t* from)
{
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
void store(std::uint64_t* to, std::uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
std::uint64_t* words_at(std::uint64_t address)
{
    return reinterpret_cast<std::uint64_t*>(alias_of(address));
}

class reading {
 public:
    explicit reading(const task& what)
        : task_(what), flags_(words_at(what.flags)), data_(words_at(what.data)), control_(words_at(what.control))
    {}

    void run()
    {
        bool goes_on = true;
        for (std::uint64_t round = 1; goes_on; ++round) {
            for (std::uint64_t pair = 0; goes_on && pair < task_.pairs; ++pair)
                goes_on = read(pair, round);
            if (goes_on)
                store(control_ + rounds_read, round);
        }
        store(control_ + ended_at, 1);
    }

 private:
    /// Returns whether to go on.
    bool read(std::uint64_t pair, std::uint64_t round)
    {
        if (!wait(flags_ + pair * 8, round))
            return false;
        ++done_;
        if (task_.asks != 0) {
            store(control_ + asked, done_);
            if (!wait(control_ + answered, done_))
                return false;
        }
        bool is_stale = false;
        for (std::uint64_t word = task_.words; word-- > 0;)
            is_stale |= load(data_ + pair * task_.words + word) != round * 0x9e3779b97f4a7c15;
        stale_ += is_stale;
        store(control_ + trials_done, done_);
        store(control_ + stale_seen, stale_);
        return done_ != task_.trials && (task_.until == 0 || stale_ < task_.until);
    }
    bool wait(const std::uint64_t* word, std::uint64_t value) const
    {
        for (; load(word) != value; std::this_thread::yield())
            if (load(control_ + stop) != 0)
                return false;
        return true;
    }

    const task task_;
    std::uint64_t *const flags_, *const data_, *const control_;
    std::uint64_t done_ = 0, stale_ = 0;
};

} // namespace

extern "C" {

int cuModuleLoadData(void** module, const void* image)
{
    const bool is_known = std::strstr(static_cast<const char*>(image), ".entry weftio_litmus(") != nullptr;
    *module = is_known ? static_cast<void*>(&the_module) : gpus;
    return current() ? success : invalid_context;
}
int cuModuleGetFunction(void** function, void* module, const char* name)
{
    if (module != &the_module || std::strcmp(name, "weftio_litmus") != 0)
        return not_found;
    *function = &the_kernel;
    return success;
}
int cuFuncGetAttribute(int*, int, void*)
{
    return not_found;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, std::size_t)
{
    return not_found;
}
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream* in,
                   void** arguments, void**)
{
    if (function != &the_kernel || !in || in->kernel.joinable())
        return not_found;
    if (status_of(in) != success)
        return status_of(in);
    task what{};
    for (std::size_t at = 0; at < sizeof what / 8; ++at)
        std::memcpy(reinterpret_cast<std::byte*>(&what) + at * 8, arguments[at], 8);
    if (!is_reached(what.data, in->of->number) || !is_reached(what.flags, in->of->number))
        return invalid_value;
    in->is_busy = true;
    in->kernel = std::thread([in, what] {
        reading(what).run();
        in->is_busy = false;
    });
    return success;
}

} // extern "C"
