#include "cells.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace weftio::litmus {

namespace {

bool by_copy_engine(const cell& of)
{
    return of.by == writer::copy_engine || of.by == writer::copy_engine_nic_flag;
}

bool is_flag_of_writer(const cell& of)
{
    if ((of.by == writer::write_with_immediate) != (of.flag == flag_place::completion))
        return false;
    if (of.flag == flag_place::host_memory)
        return of.where == place::gpu; // with data in the host it is another region
    return !by_copy_engine(of) || of.flag == flag_place::same_region;
}

bool is_flush_of_writer(const cell& of)
{
    switch (of.how) {
        case flush::none: return true;
        case flush::read_same_pair: return !by_copy_engine(of);
        case flush::read_other_pair: return of.by != writer::copy_engine;
        case flush::read_second: return of.by == writer::write_second_flag;
        case flush::driver: return of.where == place::gpu;
        case flush::cpu_load: // one row says why it cannot be
            return of.why_never().empty() ||
                   (of.by == writer::write && !of.relaxed && of.seen_by != reader::peer_gpu &&
                    of.flag == (of.where == place::gpu ? flag_place::host_memory : flag_place::same_region));
    }
    return false;
}

bool is_row(const cell& of)
{
    if (of.where == place::host && (of.seen_by == reader::peer_gpu || by_copy_engine(of)))
        return false;
    if (by_copy_engine(of) && of.relaxed)
        return false;
    if (of.by == writer::cpu_stores)
        return of.where == place::gpu && of.flag == flag_place::same_region && of.how == flush::none && !of.relaxed &&
               of.seen_by == reader::gpu;
    return is_flag_of_writer(of) && is_flush_of_writer(of);
}

/// Where data lie, and whether there they are in mapped memory.
std::vector<std::pair<place, bool>> memories(gpu_memories wanted)
{
    std::vector<std::pair<place, bool>> made{{place::host, false}};
    if (wanted.alloc)
        made.emplace_back(place::gpu, false);
    if (wanted.vmm)
        made.emplace_back(place::gpu, true);
    return made;
}

} // namespace

const char* to_string(writer by) noexcept
{
    switch (by) {
        case writer::write: return "WRITE";
        case writer::write_then_atomic: return "WRITE, then atomic";
        case writer::write_with_immediate: return "WRITE with immediate";
        case writer::write_second_flag: return "WRITE, second's flag";
        case writer::copy_engine: return "copy engine";
        case writer::copy_engine_nic_flag: return "copy, NIC's flag";
        case writer::cpu_stores: return "CPU stores";
    }
    return "";
}
const char* to_string(flag_place where) noexcept
{
    switch (where) {
        case flag_place::same_region: return "same region";
        case flag_place::other_region: return "other region";
        case flag_place::host_memory: return "host memory";
        case flag_place::completion: return "completion";
    }
    return "";
}
const char* to_string(flush how) noexcept
{
    switch (how) {
        case flush::none: return "none";
        case flush::read_same_pair: return "READ, same pair";
        case flush::read_other_pair: return "READ, other pair";
        case flush::read_second: return "READ, second NIC";
        case flush::driver: return "driver's call";
        case flush::cpu_load: return "CPU load";
    }
    return "";
}

const char* cell::memory_words() const noexcept
{
    return where == place::host ? "host" : vmm ? "GPU VMM" : "GPU";
}

const char* cell::reader_words() const noexcept
{
    switch (seen_by) {
        case reader::cpu: return where == place::gpu ? "CPU by copies" : "CPU";
        case reader::gpu: return "GPU";
        case reader::peer_gpu: return "second GPU";
    }
    return "";
}

std::string cell::words() const
{
    return fmt::format("{} / {} / {} / {} / data in {} / read by {}", to_string(by), to_string(flag), to_string(how),
                       relaxed ? "relaxed" : "strict", memory_words(), reader_words());
}

std::string cell::why_never() const
{
    if (by == writer::cpu_stores)
        return "the CPU can store into memory of a GPU only where GDRCopy maps it, which this program does not use";
    if (how == flush::cpu_load && where == place::gpu)
        return "the CPU can load from memory of a GPU only where GDRCopy maps it, which this program does not use";
    if (how == flush::cpu_load && seen_by == reader::cpu)
        return "a CPU load before the CPU reads the data is no row of its own: it loads them anyway";
    return {};
}

std::vector<cell> all_cells(gpu_memories wanted)
{
    std::vector<cell> all;
    for (const auto& [where, vmm] : memories(wanted))
        for (const reader seen_by : {reader::cpu, reader::gpu, reader::peer_gpu})
            for (const bool relaxed : {false, true})
                for (const writer by :
                     {writer::write, writer::write_then_atomic, writer::write_with_immediate, writer::write_second_flag,
                      writer::copy_engine, writer::copy_engine_nic_flag, writer::cpu_stores})
                    for (const flag_place flag : {flag_place::same_region, flag_place::other_region,
                                                  flag_place::host_memory, flag_place::completion})
                        for (const flush how : {flush::none, flush::read_same_pair, flush::read_other_pair,
                                                flush::read_second, flush::driver, flush::cpu_load})
                            if (const cell each{by, flag, how, relaxed, where, seen_by, vmm}; is_row(each))
                                all.push_back(each);
    return all;
}

} // namespace weftio::litmus
