#include <algorithm>
#include <cerrno>
#include <chrono>
#include <unordered_map>
#include <vector>

#include "driver.hpp"

using namespace weftio::cufile;

namespace {

/// The operations of one submission, with the handles that they use.
struct submission {
    std::unordered_map<CUfileHandle_t, held_handle> files; // each is held once
    std::vector<weftio::file_operation> operations;
};

void add(submission& all, const session& session, const CUfileIOParams_t& entry)
{
    require(entry.mode == CUFILE_BATCH, CU_FILE_INVALID_VALUE);
    require(entry.opcode == CUFILE_READ || entry.opcode == CUFILE_WRITE, CU_FILE_INVALID_VALUE);
    const auto& what = entry.u.batch;
    require(what.file_offset >= 0, CU_FILE_INVALID_VALUE);
    auto held = all.files.find(entry.fh);
    if (held == all.files.end())
        held = all.files.emplace(entry.fh, session.find_handle(entry.fh)).first;
    using kind = weftio::file_operation::kind;
    all.operations.push_back({.what = entry.opcode == CUFILE_READ ? kind::read : kind::write,
                              .on = &held->second->on,
                              .memory = session.memory_of(what.devPtr_base, what.devPtr_offset, what.size),
                              .bytes = what.size,
                              .offset = static_cast<std::uint64_t>(what.file_offset),
                              .cookie = entry.cookie});
}

CUfileIOEvents_t event_of(const weftio::file_event& event) noexcept
{
    const weftio::file_result& result = event.result;
    if (result.bytes > 0 || result.ok())
        return {event.cookie, CUFILE_COMPLETE, static_cast<std::size_t>(result.bytes)};
    if (result.error == ECANCELED)
        return {event.cookie, CUFILE_CANCELED, 0};
    return {event.cookie, CUFILE_FAILED, static_cast<std::size_t>(-static_cast<std::int64_t>(result.error))};
}

/// Null: without end. Throws CU_FILE_INVALID_VALUE.
std::chrono::nanoseconds duration_of(const timespec* timeout)
{
    constexpr std::int64_t longest_seconds = 1'000'000'000; // fits into 64 bits of nanoseconds
    if (!timeout)
        return std::chrono::seconds(longest_seconds);
    require(timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1'000'000'000, CU_FILE_INVALID_VALUE);
    const std::int64_t seconds = std::min<std::int64_t>(timeout->tv_sec, longest_seconds);
    return std::chrono::seconds(seconds) + std::chrono::nanoseconds(timeout->tv_nsec);
}

std::shared_ptr<weftio::file_batch> batch_named(CUfileBatchHandle_t name)
{
    const auto session = driver::here().if_open();
    require(session != nullptr, CU_FILE_INVALID_VALUE);
    return session->find_batch(name);
}

/// Returns when nothing is in flight: callers free their memory then.
void cancel(weftio::file_batch& batch)
{
    batch.cancel();
    std::vector<weftio::file_event> dropped(batch.capacity());
    batch.status(dropped.size(), dropped, duration_of(nullptr));
}

} // namespace

extern "C" {

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t* batch_idp, unsigned nr)
{
    return guarded(__func__, [&] {
        require(batch_idp != nullptr, CU_FILE_INVALID_VALUE);
        *batch_idp = driver::here().current()->add_batch(nr);
    });
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr, CUfileIOParams_t* iocbp, unsigned int)
{
    return guarded(__func__, [&] {
        const auto batch = batch_named(batch_idp);
        require(iocbp || nr == 0, CU_FILE_INVALID_VALUE);
        require(nr <= batch->capacity(), CU_FILE_BATCH_FULL);
        const auto session = driver::here().current();
        submission all;
        for (unsigned i = 0; i < nr; ++i)
            add(all, *session, iocbp[i]);
        require(batch->submit(all.operations), CU_FILE_BATCH_FULL);
    });
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp, unsigned min_nr, unsigned* nr,
                                     CUfileIOEvents_t* iocbp, struct timespec* timeout)
{
    return guarded(__func__, [&] {
        const auto batch = batch_named(batch_idp);
        require(nr && iocbp && min_nr <= *nr, CU_FILE_INVALID_VALUE);
        const auto longest = duration_of(timeout);
        std::vector<weftio::file_event> events(std::min(*nr, batch->capacity()));
        const std::size_t taken = batch->status(std::min<std::size_t>(min_nr, events.size()), events, longest);
        std::transform(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(taken), iocbp, event_of);
        *nr = static_cast<unsigned>(taken);
    });
}

CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp)
{
    return guarded(__func__, [&] { cancel(*batch_named(batch_idp)); });
}

void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp)
{
    guarded(__func__, [&] {
        if (const auto session = driver::here().if_open())
            session->end_batch(batch_idp);
    });
}

} // extern "C"
