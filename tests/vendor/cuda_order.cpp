// Writes of a NIC into memory of the stand-in's GPUs: a test makes them, and they arrive late.
#include <thread>

#include "cuda_state.hpp"

using namespace stand_in;

namespace {

/// What each GPU promises, as the driver's attributes have it.
struct promises {
    int ordering = 100, flush_options = 1, stream_flushes = 1;
};
promises promised;
int lacked_from_start()
{
    const char* const number = std::getenv("STAND_IN_LACKS");
    return number ? std::atoi(number) : 0;
}
std::atomic<int> lacking{lacked_from_start()};

struct write {
    device_pointer to;
    std::uint32_t value;
};
std::mutex writes_mutex;
std::vector<write> late;
unsigned flushes = 0;

/// What copies have on their way: they arrive when others have come behind them.
struct late_copy {
    device_pointer to;
    std::vector<std::byte> bytes;
};
auto& late_copies = *new std::deque<late_copy>; // stays: streams end in handlers of exit()
auto& of_nics = *new std::vector<void (*)()>;

/// @pre writes_mutex is held
void arrive(const late_copy& one)
{
    for (std::size_t at = 0; at < one.bytes.size(); at += 8) { // word by word, as a kernel reads
        std::uint64_t word = 0;
        std::memcpy(&word, one.bytes.data() + at, 8);
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(alias_of(one.to + at)), word, __ATOMIC_RELEASE);
    }
}

/// @pre writes_mutex is held
void arrive_all()
{
    for (const late_copy& each : std::exchange(late_copies, {}))
        arrive(each);
}

} // namespace

void stand_in::end_copies()
{
    const std::lock_guard lock(writes_mutex);
    arrive_all();
}

void stand_in::flush()
{
    const std::lock_guard lock(writes_mutex);
    ++flushes;
    for (const auto& each : std::exchange(late, {}))
        __atomic_store_n(reinterpret_cast<std::uint32_t*>(alias_of(each.to)), each.value, __ATOMIC_RELEASE);
    arrive_all();
    for (auto* const each : of_nics)
        each();
}

bool stand_in::is_late(device_pointer to, const void* from, std::size_t bytes)
{
    static const char* const wanted = std::getenv("STAND_IN_COPIES");
    constexpr std::size_t most = 64;
    if (!wanted || std::strcmp(wanted, "late") != 0 || bytes <= 8 || bytes % 8 != 0)
        return false;
    const std::lock_guard lock(writes_mutex);
    const auto* const first = static_cast<const std::byte*>(from);
    late_copies.push_back({to, {first, first + bytes}});
    if (late_copies.size() > most) {
        arrive(late_copies.front());
        late_copies.pop_front();
    }
    return true;
}

extern "C" {

/// For a stand-in of a NIC: called by each flush, so that what it has on its way arrives.
void stand_in_on_flush(void (*arrive)())
{
    const std::lock_guard lock(writes_mutex);
    of_nics.push_back(arrive);
}
/// For a stand-in of a NIC: where the CPU finds the byte at an address of a GPU; any other address as it is.
void* stand_in_alias(device_pointer address)
{
    return alias_of(address);
}

/// For tests.
void stand_in_promise(int ordering, int flush_options, int stream_flushes)
{
    promised = {ordering, flush_options, stream_flushes};
}
/// For tests: GPUs lack what this attribute tells; 0: nothing. The variable STAND_IN_LACKS is the same from the start.
void stand_in_lack(int attribute)
{
    lacking = attribute;
}
/// For tests: a NIC has written, and nobody sees it before a flush.
void stand_in_write_late(std::uint32_t* to, std::uint32_t value)
{
    const std::lock_guard lock(writes_mutex);
    late.push_back({reinterpret_cast<device_pointer>(to), value});
}
/// For tests: how often somebody has flushed.
unsigned stand_in_flushes()
{
    const std::lock_guard lock(writes_mutex);
    return flushes;
}
int cuDeviceGetAttribute(int* value, int attribute, int)
{
    constexpr int integrated = 18, can_flush_remote_writes = 98, flush_writes_options = 117, writes_ordering = 118;
    if (attribute == lacking) {
        *value = 0;
        return success;
    }
    switch (attribute) {
        case integrated: *value = 0; break;
        case can_flush_remote_writes: *value = promised.stream_flushes; break;
        case flush_writes_options: *value = promised.flush_options; break;
        case writes_ordering: *value = promised.ordering; break;
        default: *value = 1;
    }
    return success;
}
int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    if (!current())
        return invalid_context;
    if (target != 0 || (scope != 100 && scope != 200))
        return invalid_value;
    flush();
    return success;
}
int cuStreamWaitValue32_v2(stream* in, device_pointer at, std::uint32_t value, unsigned flags)
{
    constexpr unsigned flushes_then = 1u << 30;
    if (status_of(in) != success)
        return status_of(in);
    do_in_order([=] {
        while (static_cast<std::int32_t>(
                   __atomic_load_n(reinterpret_cast<std::uint32_t*>(alias_of(at)), __ATOMIC_ACQUIRE) - value) < 0)
            std::this_thread::yield();
        if (flags & flushes_then)
            flush();
    });
    return success;
}
int cuCtxGetFlags(unsigned* flags)
{
    *flags = current() ? current()->flags : 0;
    return current() ? success : invalid_context;
}
int cuCtxSetFlags(unsigned flags)
{
    if (!current())
        return invalid_context;
    current()->flags = flags;
    return success;
}

} // extern "C"
