// What stands beside the good queue: queues that misbehave, wait, send or are idle.
#pragma once

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "machine.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

constexpr std::uint32_t frame_bytes = 64;

/// A thread that repeats step() from start() to end(). Its queues ring their doorbells directly: in inline mode a push
/// would run the engine, which only the good kernel may do.
class neighbor {
 public:
    neighbor() = default;
    neighbor(const neighbor&) = delete;
    neighbor& operator=(const neighbor&) = delete;
    virtual ~neighbor() = default;

    void start(int core)
    {
        thread_ = std::thread([this, core] {
            stay_on(core);
            while (!ending_.load(std::memory_order_relaxed))
                step();
        });
    }
    void end()
    {
        ending_ = true;
        if (thread_.joinable())
            thread_.join();
    }

 protected:
    virtual void step() = 0;
    bool ends() const { return ending_.load(std::memory_order_relaxed); }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

/// Does not use the port and keeps its core busy, as all other neighbors do.
class stranger : public neighbor {
 protected:
    void step() override { benchmark::DoNotOptimize(++steps_); }

 private:
    unsigned steps_ = 0;
};

using maker = std::function<std::unique_ptr<neighbor>(const port&, const device&)>;

/// Neighbors that are measured, as one row of the table.
struct neighbor_row {
    const char* name;
    maker make;
    maker same_frames = nullptr; ///< sends as many frames, without what the row is about
};

const std::vector<neighbor_row>& neighbor_rows();

} // namespace weftio::bench
