#include "reading.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

namespace weftio::litmus {

std::uint64_t seen(const std::uint64_t* word, std::memory_order order)
{
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(order);
}

bool reading::ended()
{
    constexpr std::chrono::seconds patience{10};
    if (turns_++ % 4096 != 0)
        return stage_.over;
    if (const auto now = std::chrono::steady_clock::now(); trials_ != trials_then_) {
        trials_then_ = trials_;
        since_ = now;
    } else if (now - since_ > patience) {
        throw failure(fmt::format("the flag of trial {} has not come for {} s", trials_ + 1, patience.count()));
    }
    return stage_.over || stopped_();
}

bool reading::waits()
{
    if (ended())
        return false;
    if (turns_ % 64 == 0)
        std::this_thread::yield();
    return true;
}

void reading::flush_data(std::uint32_t pair)
{
    switch (stage_.what.how) {
        case flush::read_other_pair:
            read_back(stage_.first, pair, stage_.scratch_region, stage_.target_region.rkey());
            break;
        case flush::read_second:
            read_back(*stage_.second, pair, *stage_.second_scratch, stage_.second_target->rkey());
            break;
        case flush::driver: stage_.on.owner->flush(stage_.what.seen_by != reader::gpu); break;
        case flush::cpu_load:
            seen(stage_.last_word(pair));
            std::atomic_thread_fence(std::memory_order_seq_cst);
            break;
        case flush::none:
        case flush::read_same_pair: break;
    }
}

/// By another queue pair of the NIC.
void reading::read_back(nic& by, std::uint32_t pair, const region& scratch, std::uint32_t key)
{
    ibv_sge to = piece(stage_.scratch.at(8), 8, scratch);
    ibv_send_wr read{};
    read.opcode = IBV_WR_RDMA_READ;
    read.sg_list = &to;
    read.num_sge = 1;
    read.send_flags = IBV_SEND_SIGNALED;
    read.wr.rdma = {reinterpret_cast<std::uintptr_t>(stage_.last_word(pair)), key};
    by.flusher().post(read);
    ibv_wc done{};
    while (by.flusher().take_sent(&done, 1) == 0)
        if (stage_.over)
            return;
    std::atomic_thread_fence(std::memory_order_acquire);
}

void reading::post_receives()
{
    for (std::uint32_t pair = 0; pair < stage_.options.pairs; ++pair)
        stage_.first.target().post_receive();
}

std::uint32_t reading::take_notice()
{
    ibv_wc notice{};
    if (stage_.first.target().take_received(&notice, 1) == 0)
        return none;
    stage_.first.target().post_receive();
    std::atomic_thread_fence(std::memory_order_acquire);
    return notice.imm_data < stage_.options.pairs ? notice.imm_data
                                                  : throw failure("an immediate is not what was sent");
}

namespace {

class cpu_reading : public reading {
 public:
    cpu_reading(stage& of, const std::function<bool()>& stopped) : reading(of, stopped)
    {
        if (of.what.where != place::gpu)
            return;
        of.use_owner();
        copies_.emplace();
        landing_.emplace(of.words_each, words::pinned);
    }

    void read_all() override
    {
        const bool by_completion = stage_.what.flag == flag_place::completion;
        if (by_completion)
            post_receives();
        for (std::uint64_t round = 1;; ++round) {
            for (std::uint32_t at = 0; at < stage_.options.pairs; ++at) {
                const std::uint32_t pair = by_completion ? wait_for_notice() : wait_for_flag(at, round);
                if (pair == none)
                    return;
                flush_data(pair);
                check(pair, round);
                if (trials_ == stage_.options.trials || (stage_.options.until != 0 && stale_ >= stage_.options.until))
                    return;
            }
            stage_.read = round;
        }
    }

 private:
    std::uint32_t wait_for_flag(std::uint32_t pair, std::uint64_t round)
    {
        while (flag_of(pair) != round)
            if (!waits())
                return none;
        return pair;
    }

    std::uint64_t flag_of(std::uint32_t pair)
    {
        if (!stage_.what.flag_in_gpu())
            return seen(stage_.flag(pair), std::memory_order_acquire);
        bring(stage_.flag(pair), 8);
        return *landing_->at(0);
    }

    std::uint32_t wait_for_notice()
    {
        for (;;) {
            if (const std::uint32_t pair = take_notice(); pair != none || !waits())
                return pair;
        }
    }

    void bring(const std::uint64_t* from, std::size_t bytes)
    {
        copies_->from_gpu(landing_->at(0), from, bytes);
        copies_->wait();
    }

    /// The last bytes first: they arrive last.
    void check(std::uint32_t pair, std::uint64_t round)
    {
        const std::uint64_t* data = stage_.data(pair);
        if (copies_) {
            bring(data, std::size_t{stage_.words_each} * 8);
            data = landing_->at(0);
        }
        bool stale = false;
        for (std::uint32_t word = stage_.words_each; word-- > 0;)
            stale |= seen(data + word) != word_of(round);
        ++trials_;
        stale_ += stale;
    }

    std::optional<stream> copies_;
    std::optional<words> landing_;
};

class gpu_reading : public reading {
 public:
    gpu_reading(stage& of, const std::function<bool()>& stopped)
        : reading(of, stopped), on_(of.what.seen_by == reader::peer_gpu ? *of.on.peer : *of.on.owner)
    {
        on_.use();
        made_.emplace();
        if (of.what.flag == flag_place::completion)
            notices_.emplace(std::size_t{of.options.pairs} * 8, words::pinned);
        control_.emplace(kernel::all_words, words::pinned);
        kernel_.emplace();
    }
    ~gpu_reading() override { end(); }

    void read_all() override
    {
        if (notices_)
            post_receives();
        start();
        for (bool goes_on = true; goes_on && seen(control_->at(kernel::ended), std::memory_order_acquire) == 0;) {
            const bool has_worked = notices_ ? bring_notice() : answer();
            update();
            goes_on = has_worked || waits();
        }
        end();
        update();
    }

    void end() noexcept override
    try {
        on_.use();
        if (!std::exchange(is_started_, false))
            return;
        std::atomic_ref(*control_->at(kernel::stop)).store(1, std::memory_order_release);
        made_->wait();
    } catch (const failure&) {
        // the GPU has failed, and read_all() has said so; no kernel runs
    }

 private:
    using kernel = reading_kernel;

    void start()
    {
        const std::uint64_t* const flags = notices_ ? notices_->at(0) : stage_.flag(0);
        on_.use();
        kernel_->start(*made_, {.flags = address(flags),
                                .data = address(stage_.data(0)),
                                .control = address(control_->at(0)),
                                .pairs = stage_.options.pairs,
                                .words = stage_.words_each,
                                .trials = stage_.options.trials,
                                .until = stage_.options.until,
                                .asks = !notices_ && stage_.what.flushed_by_reader()});
        is_started_ = true;
    }
    static std::uint64_t address(const std::uint64_t* of) { return reinterpret_cast<std::uintptr_t>(of); }

    bool bring_notice()
    {
        const std::uint32_t pair = take_notice();
        if (pair == none)
            return false;
        flush_data(pair);
        const std::atomic_ref flag(*notices_->at(std::size_t{pair} * 8));
        flag.store(flag.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        return true;
    }

    /// The kernel asks with the number of a trial, which counts from 1.
    bool answer()
    {
        const std::uint64_t asked = seen(control_->at(kernel::asked), std::memory_order_acquire);
        if (asked == answered_)
            return false;
        flush_data(static_cast<std::uint32_t>((asked - 1) % stage_.options.pairs));
        std::atomic_ref(*control_->at(kernel::answered)).store(asked, std::memory_order_release);
        answered_ = asked;
        return true;
    }

    /// Takes over what the kernel has counted. Throws failure if it has failed.
    void update()
    {
        const std::uint64_t rounds = seen(control_->at(kernel::rounds), std::memory_order_acquire);
        trials_ = seen(control_->at(kernel::trials));
        stale_ = seen(control_->at(kernel::stale));
        stage_.read = rounds;
        if (!is_started_ || ++updates_ % 4096 != 0)
            return;
        on_.use();
        if (!made_->is_busy() && seen(control_->at(kernel::ended), std::memory_order_acquire) == 0)
            throw failure("the kernel has ended early");
    }

    const gpu& on_;
    std::optional<stream> made_;
    std::optional<words> notices_, control_;
    std::optional<kernel> kernel_;
    std::uint64_t answered_ = 0, updates_ = 0;
    bool is_started_ = false;
};

} // namespace

std::unique_ptr<reading> read_by_cpu(stage& of, const std::function<bool()>& stopped)
{
    return std::make_unique<cpu_reading>(of, stopped);
}

std::unique_ptr<reading> read_by_gpu(stage& of, const std::function<bool()>& stopped)
{
    return std::make_unique<gpu_reading>(of, stopped);
}

} // namespace weftio::litmus
