#include "storage/synchronous.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/cancellation.hpp"
#include "storage/transfer_queue.hpp"

namespace weftio::storage {

namespace {

/// Whether one thread's own calls do it as well as any.
bool is_simple(open_file& file, const plan& made, const place& memory, std::size_t bytes)
{
    const file_engine_options& options = file.engine().options();
    return options.only != file_way::uring && (memory.cpu || made.vendor.file) && made.fall == file_fall::none &&
           made.error == 0 && bytes <= options.part_bytes;
}

/// The one zone of a plan that needs no bounce.
const zone& only_zone(const plan& made)
{
    const auto found =
        std::find_if(made.zones.begin(), made.zones.end(), [](const zone& each) { return each.begin != each.end; });
    return found == made.zones.end() ? made.zones.front() : *found;
}

file_result by_calls(open_file& file, io::kind what, const plan& made, std::byte* address)
{
    const zone& in = only_zone(made);
    const vendor_use* const vendor = made.vendor.file ? &made.vendor : nullptr;
    file_result result{.way = vendor ? file_way::cufile : file_way::posix,
                       .fall = vendor ? file_fall::none : file.engine().without_uring(),
                       .position = in.begin};
    int fd = in.fd;
    while (result.position != in.end) {
        const std::int64_t more = execute({.what = what,
                                           .fd = fd,
                                           .offset = result.position,
                                           .address = address + result.bytes,
                                           .bytes = static_cast<std::uint32_t>(in.end - result.position),
                                           .vendor = vendor});
        if (more < 0 || (more == 0 && what == io::kind::write))
            result.error = more < 0 ? static_cast<int>(-more) : ENOSPC;
        if (more <= 0)
            break;
        result.bytes += more;
        result.position += static_cast<std::uint64_t>(more);
        if (static_cast<std::uint64_t>(more) % in.align == 0)
            continue;
        if (what == io::kind::read)
            break; // O_DIRECT ends inside a block only where the file does
        fd = std::max(file.buffered(), fd);
    }
    return result;
}

file_result by_queue(const std::shared_ptr<open_file>& file, request request, bool direct)
{
    context& engine = file->engine();
    auto queue = engine.take_queue(direct);
    (void)queue->submit(std::move(request));
    ended ended;
    while (queue->take({&ended, 1}) == 0)
        queue->wait(std::chrono::seconds(1));
    engine.give_back(std::move(queue));
    return ended.result;
}

/// Waits until writes of that kind may begin.
void pass(write_gate& gate, write_gate::kind wanted)
{
    if (wanted == write_gate::kind::none || gate.try_enter(wanted))
        return;
    if (wanted == write_gate::kind::cached)
        gate.wait();
    while (!gate.try_enter(wanted))
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (wanted == write_gate::kind::cached)
        gate.waited();
}

} // namespace

void locate(const context& engine, place& memory)
{
    if (!memory.cpu)
        return;
    if (memory.block) {
        memory.registered = engine.buffers.registered_at(memory.cpu);
        return;
    }
    const std::size_t room = memory.bytes;
    memory = engine.buffers.find(memory.cpu);
    memory.bytes = std::min(memory.bytes, room);
}

file_result transfer(const std::shared_ptr<open_file>& file, io::kind what, place memory, std::size_t bytes,
                     std::uint64_t offset)
{
    context& engine = file->engine();
    engine.require_process();
    const core::not_cancelled until_done;
    locate(engine, memory);
    const measured how = engine.counts.begin(bytes, memory);
    for (;;) {
        const plan made = plan_transfer(*file, what, memory, bytes, offset);
        const bool refused = !made.vendor.file && engine.options().strict && engine.without_uring() != file_fall::none;
        if (refused || !is_simple(*file, made, memory, bytes)) {
            if (find_cuda_driver())
                locate(engine, memory);
            return by_queue(file, {what, file, memory, bytes, offset, 0}, made.direct);
        }
        const zone& in = only_zone(made);
        pass(file->gate, in.gate);
        const file_result result = by_calls(*file, what, made, memory.device ? memory.device : memory.cpu);
        if (in.gate != write_gate::kind::none)
            file->gate.leave(in.gate);
        // A GPU's memory, and its driver was loaded since the engine was made: nothing was transferred.
        if (result.error == EFAULT && !memory.block && find_cuda_driver()) {
            locate(engine, memory);
            continue;
        }
        engine.account(what, result, how);
        return result;
    }
}

file_result sync(open_file& file, bool data_only)
{
    file.engine().require_process();
    const core::not_cancelled until_done;
    const io::kind what = data_only ? io::kind::data_sync : io::kind::sync;
    const measured how = file.engine().counts.begin(0, {});
    const std::int64_t status = execute({.what = what, .fd = file.descriptor()});
    const file_result result{.error = status < 0 ? static_cast<int>(-status) : 0,
                             .way = file_way::posix,
                             .fall = file.engine().without_uring()};
    file.engine().account(what, result, how);
    return result;
}

} // namespace weftio::storage
