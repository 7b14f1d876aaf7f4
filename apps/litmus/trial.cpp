#include "trial.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "reading.hpp"
#include "writing.hpp"

namespace weftio::litmus {

namespace {

using clock = std::chrono::steady_clock;

class cell_run {
 public:
    cell_run(const cell& wanted, const trial_options& options, const machine& on, const std::function<bool()>& stopped)
        : stage_(wanted, options, on), writing_(stage_),
          reading_(wanted.seen_by == reader::cpu ? read_by_cpu(stage_, stopped) : read_by_gpu(stage_, stopped))
    {
        if (wanted.where == place::gpu)
            write_once(stage_);
    }

    outcome play()
    {
        const auto begin = clock::now();
        std::thread writes([this] { write_all(); });
        try {
            reading_->read_all();
        } catch (...) {
            keep(std::current_exception());
        }
        stage_.over = true;
        writes.join();
        reading_->end();
        stage_.disconnect(); // before its memory goes
        if (first_failure_)
            std::rethrow_exception(first_failure_);
        return {.of = stage_.what,
                .trials = reading_->trials(),
                .stale = reading_->stale(),
                .seconds = std::chrono::duration<double>(clock::now() - begin).count(),
                .by_dma_buf = stage_.target_region.by_dma_buf()};
    }

 private:
    void keep(std::exception_ptr failed)
    {
        if (!failing_.exchange(true))
            first_failure_ = failed;
        stage_.over = true;
    }

    void write_all()
    try {
        stage_.use_owner();
        for (std::uint64_t round = 1; !stage_.over; ++round) {
            writing_.write_round(round);
            while (stage_.read < round && !stage_.over)
                std::this_thread::yield();
        }
    } catch (...) {
        keep(std::current_exception());
    }

    stage stage_;
    writing writing_;
    const std::unique_ptr<reading> reading_;
    std::atomic<bool> failing_{false};
    std::exception_ptr first_failure_;
};

} // namespace

double outcome::upper_bound() const
{
    if (trials == 0)
        return 1;
    // The mean at which `stale` or fewer come with a probability of 0.02.
    double low = static_cast<double>(stale), high = low + 10 * std::sqrt(low + 1) + 10;
    for (int step = 0; step < 100; ++step) {
        const double mean = (low + high) / 2;
        double probability = 0, term = -mean; // logarithm of e^-mean mean^k / k!
        if (stale < 100'000)
            for (std::uint64_t k = 0; k <= stale; term += std::log(mean) - std::log(static_cast<double>(++k)))
                probability += std::exp(term);
        else // a normal distribution is as good
            probability = std::erfc((mean - static_cast<double>(stale)) / std::sqrt(2 * mean)) / 2;
        (probability > 0.02 ? low : high) = mean;
    }
    return std::min(1.0, high / static_cast<double>(trials));
}

std::vector<int> machine::gpus() const
{
    std::vector<int> numbers;
    for (const gpu* const each : {owner, peer})
        if (each)
            numbers.push_back(each->number());
    return numbers;
}

std::string why_not(const cell& wanted, const machine& on)
{
    if (std::string never = wanted.why_never(); !never.empty())
        return never;
    if (wanted.needs_gpu() && !on.owner)
        return "needs --gpu";
    if (wanted.seen_by == reader::peer_gpu && !on.peer)
        return "needs --peer-gpu";
    if (wanted.needs_second_nic() && on.second.device.empty())
        return "needs --second";
    if (std::string none = wanted.vmm ? why_no_vmm(*on.owner) : ""; !none.empty())
        return none;
    if (wanted.how == flush::driver && (on.owner->flush_options() & 1) == 0)
        return "the GPU has no flush by the driver's call";
    if (!on.atomics_in_gpu && wanted.by == writer::write_then_atomic && wanted.flag_in_gpu())
        return "the NIC refuses atomics in memory of a GPU";
    return {};
}

outcome run(const cell& wanted, const trial_options& options, const machine& on, const std::function<bool()>& stopped)
{
    return cell_run(wanted, options, on, stopped).play();
}

} // namespace weftio::litmus
