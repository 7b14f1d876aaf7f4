// One cell of the table: data, then a flag, many times, and how often who has seen the flag does not see the data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cells.hpp"
#include "verbs.hpp"

namespace weftio::litmus {

struct trial_options {
    std::uint64_t trials = 1'000'000;
    std::uint64_t until = 0;    ///< ends after so many stale reads; 0: after all trials
    std::uint32_t pairs = 1024; ///< of data and flag, in flight at once
    std::uint32_t bytes = 256;  ///< of data; a multiple of 8
};

/// Who takes part. It outlives the trials.
struct machine {
    port_options port{};
    nic_words nic{}, second_nic{}; ///< as they were found; no name: there is none
    port_options second{};         ///< of the NIC that writes flags; no device: there is none
    const gpu* owner = nullptr;    ///< of memory, and of kernels and copies; nullptr: there is none
    const gpu* peer = nullptr;     ///< that reads the memory of the other one; the same
    bool atomics_in_gpu = true;    ///< false: the NIC has refused one, in memory of a GPU

    /// Numbers of owner and peer, as far as they are there.
    std::vector<int> gpus() const;
};

struct outcome {
    cell of{};
    std::uint64_t trials = 0;
    std::uint64_t stale = 0;
    double seconds = 0;
    bool by_dma_buf = false; ///< how memory of the GPU was registered; else by its address
    std::string refused{};   ///< not empty: it was not run, and why
    bool never = false;      ///< with `refused`: there is no such row here, whatever goes wrong or right

    /// Of the rate of stale reads, with 98 % confidence: with it so few stale reads, or fewer, come once in 50 runs
    /// (a Poisson distribution).
    double upper_bound() const;
};

/// Why this machine has no such row, as a sentence. Empty: it has.
std::string why_not(const cell& wanted, const machine& on);

/// Runs one cell, with queue pairs of its own. Blocks. The caller's thread reads, or waits for the kernel that does;
/// another one writes. Throws failure.
/// @pre why_not() is empty
/// @throws access_refused  if the NIC refuses a request, such as an atomic in memory of a GPU
/// @param stopped  asked at times; true ends the cell early
outcome run(const cell& wanted, const trial_options& options, const machine& on, const std::function<bool()>& stopped);

} // namespace weftio::litmus
