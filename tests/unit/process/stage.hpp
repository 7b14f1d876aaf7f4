// A port with queues and kernels, for scenes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "patience.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

/// A port, its queues, and kernels that use them.
struct stage {
    explicit stage(const std::string& spec, port_options options = {});

    /// Starts a kernel that receives and one that sends, and waits until both have. Returns whether they did.
    bool run();
    /// Sends frames by a kernel and waits until they have been sent. Returns whether they were.
    bool send(std::uint32_t count);
    std::uint32_t seen() const { return weftio_load_acquire_sys_u32(static_cast<std::uint32_t*>(words.cpu_address())); }

    weftio::device device;
    weftio::port port;
    eth_rxq in;
    eth_txq out;
    buf_arr frames;
    memory words;
    flow all;
    running_kernel receives, sends;
};

} // namespace weftio::test
