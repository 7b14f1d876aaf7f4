// The memory of one cell, registered with its NICs.
#pragma once

#include <atomic>
#include <optional>

#include "trial.hpp"

namespace weftio::litmus {

/// Data and flags of all pairs. In round r every word of data becomes word_of(r), then the flag becomes r.
struct stage {
    stage(const cell& wanted, const trial_options& options, const machine& on);
    ~stage();
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;

    /// Ends all requests in flight.
    void disconnect();

    std::uint64_t* data(std::uint32_t pair) const { return target.at(std::size_t{pair} * words_each); }
    std::uint64_t* last_word(std::uint32_t pair) const { return data(pair) + words_each - 1; }
    std::uint64_t* flag(std::uint32_t pair) const
    {
        return flags_apart ? other.at(std::size_t{pair} * 8)
                           : target.at(std::size_t{options.pairs} * words_each + std::size_t{pair} * 8);
    }
    std::uint32_t flag_key() const { return flags_apart ? other_region.rkey() : target_region.rkey(); }
    std::uint32_t second_flag_key() const { return flags_apart ? second_other->rkey() : second_target->rkey(); }
    std::uint64_t* source_of_flags() const { return source.at(std::size_t{options.pairs} * words_each); }
    /// What the calling thread asks of the driver is about the GPU with the memory from now on.
    void use_owner() const
    {
        if (on.owner)
            on.owner->use();
    }

    const cell what;
    const trial_options options;
    const machine& on;
    const std::uint32_t words_each; ///< of data
    const bool flags_apart;         ///< in a region of their own
    nic first;
    std::optional<nic> second;
    words target, other, source, scratch; ///< the flags lie behind the data of all pairs, a cache line each
    region target_region, other_region, source_region, scratch_region;
    std::optional<region> second_target, second_other, second_source, second_scratch;

    std::atomic<std::uint64_t> read{0}; ///< rounds that have been read
    std::atomic<bool> over{false};
};

/// The word of data in a round: all of its bytes differ from those of the rounds before.
inline std::uint64_t word_of(std::uint64_t round)
{
    return round * 0x9e3779b97f4a7c15; // odd: no two rounds have the same
}

/// A piece of memory of the host, for a request.
inline ibv_sge piece(const std::uint64_t* at, std::size_t bytes, const region& of)
{
    return {reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(bytes), of.lkey()};
}

} // namespace weftio::litmus
