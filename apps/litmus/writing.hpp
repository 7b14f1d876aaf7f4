// Who writes data and flags.
#pragma once

#include "stage.hpp"

namespace weftio::litmus {

/// Of one thread, which makes it.
class writing {
 public:
    explicit writing(stage& of);

    /// Data and flag of each pair, in order. Returns when all requests have ended, or the cell is over. Throws failure.
    void write_round(std::uint64_t round);

 private:
    void write(std::uint32_t pair, bool signaled);
    void write_data(std::uint32_t pair);
    void write_flag_by(nic& by, std::uint32_t pair, const region& source, std::uint32_t key);
    void write_flags_of_second();
    void copy(std::uint32_t pair);
    void wait_for_sent(nic& of);

    stage& stage_;
    std::optional<stream> copies_;
    std::optional<words> round_in_gpu_;
};

/// Has the NIC write the first pair's data, zeros, as they are: what it sets up with its first write into memory of a
/// GPU would wait for a kernel that runs. Throws failure.
void write_once(stage& to);

} // namespace weftio::litmus
