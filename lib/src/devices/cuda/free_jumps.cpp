#include "devices/cuda/free_jumps.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include <fmt/format.h>

#include "core/undying.hpp"
#include "devices/cuda/free_watch.hpp"
#include "hooks/entry_jump.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cuda {

namespace {

using kind = ending::kind;

// What the arguments of the driver's functions say.
ending of_free(device_pointer begin) noexcept
{
    return {.what = kind::memory, .begin = begin};
}
ending of_free_32(unsigned begin) noexcept // before CUDA 3.2
{
    return {.what = kind::memory, .begin = begin};
}
ending of_free_in_order(device_pointer begin, stream) noexcept
{
    return {.what = kind::memory, .begin = begin};
}
ending of_unmap(device_pointer begin, std::size_t bytes) noexcept
{
    return {.what = kind::mapping, .begin = begin, .bytes = bytes};
}
ending of_context(context which) noexcept
{
    return {.what = kind::context, .of = which};
}
ending of_reset(device_number gpu) noexcept
{
    return {.what = kind::primary, .gpu = gpu};
}
ending of_release(device_number gpu) noexcept
{
    return {.what = kind::release, .gpu = gpu};
}
ending of_any(void*) noexcept
{
    return {};
}
ending of_resources(unsigned, void*, stream) noexcept
{
    return {};
}

/// Called in place of one function of the driver.
template <auto Says, std::size_t Slot>
struct hook;
template <class... Arguments, ending (*Says)(Arguments...) noexcept, std::size_t Slot>
struct hook<Says, Slot> {
    static inline std::atomic<void*> original{nullptr};

    static result call(Arguments... arguments)
    {
        const free_watch::call seen(Says(arguments...));
        return reinterpret_cast<result (*)(Arguments...)>(original.load(std::memory_order_acquire))(arguments...);
    }
};

struct place {
    void* ours;
    std::atomic<void*>* original;
};

/// The driver may have several functions of a name: for each kind of default stream, and in its tables.
constexpr std::size_t most_of_a_name = 4;
using places = std::array<place, most_of_a_name>;

template <auto Says, std::size_t Row, std::size_t... Slot>
places make_places(std::index_sequence<Slot...>)
{
    return {place{reinterpret_cast<void*>(&hook<Says, Row * most_of_a_name + Slot>::call),
                  &hook<Says, Row * most_of_a_name + Slot>::original}...};
}
template <auto Says, std::size_t Row>
places places_of()
{
    return make_places<Says, Row>(std::make_index_sequence<most_of_a_name>());
}

struct driver_function {
    const char* symbol;
    const char* base; ///< by which cuGetProcAddress() knows it; nullptr: it is an older one of that name
    int version;      ///< of CUDA, since when it has these parameters
    places (*hooks)();
};

constexpr driver_function functions[] = {
    {"cuMemFree_v2", "cuMemFree", 3020, places_of<of_free, 0>},
    {"cuMemFree", nullptr, 0, places_of<of_free_32, 1>},
    {"cuMemFreeAsync", "cuMemFreeAsync", 11020, places_of<of_free_in_order, 2>},
    {"cuMemFreeAsync_ptsz", nullptr, 0, places_of<of_free_in_order, 3>},
    {"cuMemUnmap", "cuMemUnmap", 10020, places_of<of_unmap, 4>},
    {"cuIpcCloseMemHandle", "cuIpcCloseMemHandle", 4010, places_of<of_free, 5>},
    {"cuCtxDestroy_v2", "cuCtxDestroy", 4000, places_of<of_context, 6>},
    {"cuCtxDestroy", nullptr, 0, places_of<of_context, 7>},
    {"cuCtxDetach", "cuCtxDetach", 2000, places_of<of_any, 8>},
    {"cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset", 11000, places_of<of_reset, 9>},
    {"cuDevicePrimaryCtxReset", nullptr, 0, places_of<of_reset, 10>},
    {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", 11000, places_of<of_release, 11>},
    {"cuDevicePrimaryCtxRelease", nullptr, 0, places_of<of_release, 12>},
    // They end memory whose addresses they do not say: globals of kernels, and what other interfaces have lent.
    {"cuModuleUnload", "cuModuleUnload", 2000, places_of<of_any, 13>},
    {"cuLibraryUnload", "cuLibraryUnload", 12000, places_of<of_any, 14>},
    {"cuDestroyExternalMemory", "cuDestroyExternalMemory", 10000, places_of<of_any, 15>},
    {"cuGraphicsUnregisterResource", "cuGraphicsUnregisterResource", 3000, places_of<of_any, 16>},
    {"cuGraphicsUnmapResources", "cuGraphicsUnmapResources", 3000, places_of<of_resources, 17>},
    {"cuGraphicsUnmapResources_ptsz", nullptr, 0, places_of<of_resources, 18>},
    {"cuGreenCtxDestroy", "cuGreenCtxDestroy", 12040, places_of<of_any, 19>},
};

/// A function that has, or had, a jump: its page and its hook are used again.
struct jump {
    place hooked;
    std::unique_ptr<hooks::entry_jump> at;
    bool put = false;
};

std::vector<jump>& all_jumps()
{
    return core::undying<std::vector<jump>>();
}

/// A thread may be in a hook for as long as the driver likes: the library that has it stays.
void stay_loaded()
{
    Dl_info here{};
    if (dladdr(reinterpret_cast<void*>(&all_jumps), &here) != 0 && here.dli_fname)
        (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE); // not of a program, which stays anyway
}

/// The addresses of all functions of that name.
std::vector<void*> find(void* driver, const driver_function& which)
{
    using get_1 = result(const char*, void**, int, unsigned long long);
    using get_2 = result(const char*, void**, int, unsigned long long, int*);
    constexpr unsigned long long any = 0, one_default_stream = 1, one_a_thread = 2;
    std::vector<void*> found;
    const auto add = [&](void* address) {
        if (address && std::ranges::find(found, address) == found.end())
            found.push_back(address);
    };
    add(dlsym(driver, which.symbol));
    auto* const older = reinterpret_cast<get_1*>(dlsym(driver, "cuGetProcAddress"));
    auto* const newer = reinterpret_cast<get_2*>(dlsym(driver, "cuGetProcAddress_v2"));
    for (const unsigned long long flags : {any, one_default_stream, one_a_thread}) {
        void* address = nullptr;
        if (which.base && older && older(which.base, &address, which.version, flags) == success)
            add(address);
        address = nullptr;
        if (which.base && newer && newer(which.base, &address, which.version, flags, nullptr) == success)
            add(address);
    }
    return found;
}

void put(jump& known, const char* name)
{
    try {
        known.at->put();
    } catch (const error& refused) {
        if (refused.code() != errc::in_use) // somebody has put a jump of his own there since
            throw;
        known.at = std::make_unique<hooks::entry_jump>(name, known.at->function(), known.hooked.ours);
        known.hooked.original->store(known.at->original(), std::memory_order_release);
        known.at->put();
    }
    known.put = true;
}

void put_at(void* address, const driver_function& which)
{
    std::vector<jump>& all = all_jumps();
    const auto known = std::ranges::find_if(all, [&](const jump& each) { return each.at->function() == address; });
    if (known != all.end()) {
        if (!known->put)
            put(*known, which.symbol);
        return;
    }
    for (const place& one : which.hooks()) {
        if (one.original->load(std::memory_order_relaxed) != nullptr)
            continue;
        auto made = std::make_unique<hooks::entry_jump>(which.symbol, address, one.ours);
        all.reserve(all.size() + 1);
        one.original->store(made->original(), std::memory_order_release);
        put(all.emplace_back(jump{one, std::move(made)}), which.symbol);
        return;
    }
    throw error(errc::not_supported,
                fmt::format("weftio: cuda: this driver has more than {} functions {}: frees cannot be seen",
                            most_of_a_name, which.symbol));
}

} // namespace

free_jumps::free_jumps()
{
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        throw error(errc::not_found, fmt::format("weftio: cuda: no NVIDIA driver ({})", dlerror()));
    stay_loaded();
    try {
        for (const driver_function& each : functions)
            for (void* const address : find(driver, each))
                put_at(address, each);
    } catch (...) {
        remove();
        throw;
    }
}

free_jumps::~free_jumps()
{
    remove();
}

/// Where somebody has put a jump of his own over ours, ours stays and tells nobody.
void free_jumps::remove() noexcept
{
    for (jump& each : all_jumps())
        if (each.put && each.at->remove())
            each.put = false;
}

} // namespace weftio::devices::cuda
