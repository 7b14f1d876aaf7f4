#include "trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

namespace weftio::litmus {

namespace {

using clock = std::chrono::steady_clock;

/// Words of eight bytes for a NIC, zeroed, at a page of their own.
class words {
 public:
    explicit words(std::size_t count)
        : count_((count + 511) / 512 * 512), at_(static_cast<std::uint64_t*>(std::aligned_alloc(4096, count_ * 8)))
    {
        if (!at_)
            throw std::bad_alloc();
        std::memset(at_, 0, count_ * 8);
    }
    ~words() { std::free(at_); }
    words(const words&) = delete;
    words& operator=(const words&) = delete;

    std::uint64_t* at(std::size_t word) { return at_ + word; }
    std::size_t bytes() const { return count_ * 8; }

 private:
    const std::size_t count_;
    std::uint64_t* const at_;
};

/// Others than this thread write the word.
std::uint64_t seen(const std::uint64_t* word, std::memory_order order = std::memory_order_relaxed)
{
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(order);
}

/// The word of data in a round: all of its bytes differ from those of the rounds before.
std::uint64_t word_of(std::uint64_t round)
{
    return round * 0x9e3779b97f4a7c15; // odd: no two rounds have the same
}

/// Data and flags of all pairs. In round r every word of data becomes word_of(r), then the flag becomes r.
class cell_run {
 public:
    cell_run(const cell& wanted, const trial_options& options, const port_options& at,
             const std::function<bool()>& stopped)
        : cell_(wanted), options_(options), stopped_(stopped), nic_(at, 3 * options.pairs), words_(options.bytes / 8),
          // The flags lie behind the data of all pairs, a cache line each.
          target_(std::size_t{options.pairs} * (words_ + 8)), other_(std::size_t{options.pairs} * 8),
          source_(std::size_t{options.pairs} * words_ + 8), scratch_(512),
          target_region_(nic_.domain(), target_.at(0), target_.bytes(), wanted.relaxed),
          other_region_(nic_.domain(), other_.at(0), other_.bytes(), wanted.relaxed),
          source_region_(nic_.domain(), source_.at(0), source_.bytes(), false),
          scratch_region_(nic_.domain(), scratch_.at(0), scratch_.bytes(), false)
    {}

    outcome play()
    {
        const auto begin = clock::now();
        std::thread writes([this] { write_all(); });
        try {
            read_all();
        } catch (...) {
            keep(std::current_exception());
        }
        over_ = true;
        writes.join();
        nic_.disconnect(); // before its memory goes
        if (first_failure_)
            std::rethrow_exception(first_failure_);
        return {.of = cell_,
                .trials = trials_,
                .stale = stale_,
                .seconds = std::chrono::duration<double>(clock::now() - begin).count()};
    }

 private:
    std::uint64_t* data(std::uint32_t pair) { return target_.at(std::size_t{pair} * words_); }
    std::uint64_t* flag(std::uint32_t pair)
    {
        return cell_.flag == flag_place::other_region
                   ? other_.at(std::size_t{pair} * 8)
                   : target_.at(std::size_t{options_.pairs} * words_ + std::size_t{pair} * 8);
    }
    std::uint32_t flag_key() const
    {
        return cell_.flag == flag_place::other_region ? other_region_.rkey() : target_region_.rkey();
    }
    void keep(std::exception_ptr failed)
    {
        if (!failing_.exchange(true))
            first_failure_ = failed;
        over_ = true;
    }

    void write_all()
    try {
        for (std::uint64_t round = 1; !over_; ++round) {
            const std::size_t end = std::size_t{options_.pairs} * words_;
            std::fill_n(source_.at(0), end, word_of(round));
            *source_.at(end) = round;
            for (std::uint32_t pair = 0; pair < options_.pairs; ++pair)
                write(pair, pair + 1 == options_.pairs);
            wait_for_sent();
            while (read_ < round && !over_)
                std::this_thread::yield();
        }
    } catch (...) {
        keep(std::current_exception());
    }

    /// Data, then the flag; between them, where it is asked for, a READ that the flag waits for.
    void write(std::uint32_t pair, bool signaled)
    {
        const bool with_immediate = cell_.by == writer::write_with_immediate;
        const bool reads = cell_.how == flush::read_same_pair;
        ibv_sge from_source{reinterpret_cast<std::uintptr_t>(source_.at(std::size_t{pair} * words_)), words_ * 8,
                            source_region_.lkey()};
        ibv_sge from_end{reinterpret_cast<std::uintptr_t>(source_.at(std::size_t{options_.pairs} * words_)), 8,
                         source_region_.lkey()};
        ibv_sge to_scratch{reinterpret_cast<std::uintptr_t>(scratch_.at(0)), 8, scratch_region_.lkey()};
        ibv_send_wr bytes{}, read{}, notice{};
        bytes.opcode = IBV_WR_RDMA_WRITE;
        bytes.sg_list = &from_source;
        bytes.num_sge = 1;
        bytes.wr.rdma = {reinterpret_cast<std::uintptr_t>(data(pair)), target_region_.rkey()};
        read.opcode = IBV_WR_RDMA_READ;
        read.sg_list = &to_scratch;
        read.num_sge = 1;
        read.wr.rdma = {reinterpret_cast<std::uintptr_t>(data(pair) + words_ - 1), target_region_.rkey()};
        notice.send_flags = reads ? IBV_SEND_FENCE : 0;
        if (with_immediate) {
            notice.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
            notice.imm_data = pair;
            notice.wr.rdma = bytes.wr.rdma;
            if (!reads) { // the data are those of the same request
                notice.sg_list = &from_source;
                notice.num_sge = 1;
            }
        } else if (cell_.by == writer::write_then_atomic) {
            notice.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
            notice.sg_list = &to_scratch;
            notice.num_sge = 1;
            notice.wr.atomic = {reinterpret_cast<std::uintptr_t>(flag(pair)), 1, 0, flag_key()};
        } else {
            notice.opcode = IBV_WR_RDMA_WRITE;
            notice.sg_list = &from_end;
            notice.num_sge = 1;
            notice.wr.rdma = {reinterpret_cast<std::uintptr_t>(flag(pair)), flag_key()};
        }
        notice.send_flags |= signaled ? IBV_SEND_SIGNALED : 0;
        ibv_send_wr* first = &notice;
        if (reads) {
            read.next = first;
            first = &read;
        }
        if (!with_immediate || reads) {
            bytes.next = first;
            first = &bytes;
        }
        nic_.writer().post(*first);
    }

    void wait_for_sent()
    {
        ibv_wc done{};
        while (nic_.writer().take_sent(&done, 1) == 0 && !over_)
            std::this_thread::yield();
    }

    /// Throws failure when nothing has come for long.
    bool ended()
    {
        constexpr std::chrono::seconds patience{10};
        if (turns_++ % 4096 != 0)
            return over_;
        if (const auto now = clock::now(); trials_ != trials_then_) {
            trials_then_ = trials_;
            since_ = now;
        } else if (now - since_ > patience) {
            throw failure(fmt::format("the flag of trial {} has not come for {} s", trials_ + 1, patience.count()));
        }
        return over_ || stopped_();
    }

    void read_all()
    {
        const bool by_completion = cell_.flag == flag_place::completion;
        for (std::uint32_t pair = 0; by_completion && pair < options_.pairs; ++pair)
            nic_.target().post_receive();
        for (std::uint64_t round = 1;; ++round) {
            for (std::uint32_t at = 0; at < options_.pairs; ++at) {
                const std::uint32_t pair = by_completion ? take_notice() : wait_for_flag(at, round);
                if (pair == none)
                    return;
                if (cell_.how == flush::read_other_pair)
                    read_back(pair);
                check(pair, round);
                if (trials_ == options_.trials || (options_.until != 0 && stale_ >= options_.until))
                    return;
            }
            read_ = round;
        }
    }

    static constexpr std::uint32_t none = 0xffffffff;

    std::uint32_t wait_for_flag(std::uint32_t pair, std::uint64_t round)
    {
        for (const std::uint64_t* const word = flag(pair); seen(word, std::memory_order_acquire) != round;) {
            if (ended())
                return none;
            if (turns_ % 64 == 0)
                std::this_thread::yield();
        }
        return pair;
    }

    std::uint32_t take_notice()
    {
        ibv_wc notice{};
        while (nic_.target().take_received(&notice, 1) == 0) {
            if (ended())
                return none;
            if (turns_ % 64 == 0)
                std::this_thread::yield();
        }
        nic_.target().post_receive();
        std::atomic_thread_fence(std::memory_order_acquire);
        return notice.imm_data < options_.pairs ? notice.imm_data : throw failure("an immediate is not what was sent");
    }

    /// By another queue pair of the same NIC.
    void read_back(std::uint32_t pair)
    {
        ibv_sge to{reinterpret_cast<std::uintptr_t>(scratch_.at(8)), 8, scratch_region_.lkey()};
        ibv_send_wr read{};
        read.opcode = IBV_WR_RDMA_READ;
        read.sg_list = &to;
        read.num_sge = 1;
        read.send_flags = IBV_SEND_SIGNALED;
        read.wr.rdma = {reinterpret_cast<std::uintptr_t>(data(pair) + words_ - 1), target_region_.rkey()};
        nic_.flusher().post(read);
        ibv_wc done{};
        while (nic_.flusher().take_sent(&done, 1) == 0)
            if (over_)
                return;
        std::atomic_thread_fence(std::memory_order_acquire);
    }

    /// The last bytes first: they arrive last.
    void check(std::uint32_t pair, std::uint64_t round)
    {
        bool stale = false;
        for (std::uint32_t word = words_; word-- > 0;)
            stale |= seen(data(pair) + word) != word_of(round);
        ++trials_;
        stale_ += stale;
    }

    const cell cell_;
    const trial_options options_;
    const std::function<bool()>& stopped_;
    nic nic_;
    const std::uint32_t words_;
    words target_, other_, source_, scratch_;
    region target_region_, other_region_, source_region_, scratch_region_;
    std::uint64_t trials_ = 0, stale_ = 0, turns_ = 0, trials_then_ = 0;
    clock::time_point since_ = clock::now();
    std::atomic<std::uint64_t> read_{0};
    std::atomic<bool> over_{false}, failing_{false};
    std::exception_ptr first_failure_;
};

} // namespace

const char* to_string(writer by) noexcept
{
    switch (by) {
        case writer::write: return "WRITE";
        case writer::write_then_atomic: return "WRITE, then atomic";
        case writer::write_with_immediate: return "WRITE with immediate";
    }
    return "";
}
const char* to_string(flag_place where) noexcept
{
    switch (where) {
        case flag_place::same_region: return "same region";
        case flag_place::other_region: return "other region";
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
    }
    return "";
}

std::string cell::words() const
{
    return fmt::format("{} / {} / {} / {}", to_string(by), to_string(flag), to_string(how),
                       relaxed ? "relaxed" : "strict");
}

std::vector<cell> all_cells()
{
    std::vector<cell> all;
    for (const bool relaxed : {false, true})
        for (const writer by : {writer::write, writer::write_then_atomic, writer::write_with_immediate})
            for (const flag_place where : {flag_place::same_region, flag_place::other_region, flag_place::completion})
                for (const flush how : {flush::none, flush::read_same_pair, flush::read_other_pair})
                    if ((by == writer::write_with_immediate) == (where == flag_place::completion))
                        all.push_back({by, where, how, relaxed});
    return all;
}

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

outcome run(const cell& wanted, const trial_options& options, const port_options& at,
            const std::function<bool()>& stopped)
{
    return cell_run(wanted, options, at, stopped).play();
}

} // namespace weftio::litmus
