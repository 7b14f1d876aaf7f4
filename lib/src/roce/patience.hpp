// Timeouts, retries and the window of a requester.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "net/roce_rules.hpp"

namespace weftio::roce {

/// The caller passes the time, in nanoseconds of a clock that never goes back. 0 means "never".
class patience {
 public:
    /// @param timeout  code: 4.096 us x 2^timeout; 0: wait without limit
    /// @param retries  0..7;  @param rnr_retries  0..7; 7: retry without limit
    patience(std::uint8_t timeout, std::uint8_t retries, std::uint8_t rnr_retries, std::uint32_t window) noexcept
        : timeout_ns_(net::ack_timeout_ns(timeout)), most_retries_(retries), most_rnr_retries_(rnr_retries),
          most_window_(window), window_(window), threshold_(window)
    {}

    /// Packets that may be in flight.
    std::uint32_t window() const noexcept { return window_; }
    /// Whether a loss has narrowed the window, which has not opened again.
    bool is_narrow() const noexcept { return window_ != most_window_; }
    /// Whether something was repeated and no packet has been acknowledged since.
    bool repeating() const noexcept { return retries_ != 0 || rnr_retries_ != 0 || gap_seen_; }

    /// A packet was sent that needs an answer.
    /// @param usual_ns  how long answers take at most, nearly always; 0: unknown
    void expect_answer(std::uint64_t usual_ns, std::uint64_t now) noexcept
    {
        if (timeout_ns_ == 0)
            return;
        if (answer_by_ == 0)
            answer_by_ = now + timeout_ns_;
        if (overdue_at_ == 0 && usual_ns != 0)
            overdue_at_ = now + (usual_ns << std::max(probes_ - 1, 0));
    }
    /// `packets` packets were acknowledged.
    /// @param all  they were all that was ever sent
    void progress(std::uint32_t packets, bool all) noexcept
    {
        retries_ = rnr_retries_ = not_ready_ = probes_ = 0;
        gap_seen_ = false;
        if (before_probe_ != 0)
            end_probe(all);
        else if (is_narrow())
            widen(packets);
        answer_by_ = overdue_at_ = 0;
    }
    bool timed_out(std::uint64_t now) const noexcept { return answer_by_ != 0 && now >= answer_by_; }
    /// Waits for the answer once more, which is no retry.
    void wait_again(std::uint64_t now) noexcept { answer_by_ = now + timeout_ns_; }
    /// Whether the answer is late although the timeout has not expired.
    bool is_overdue(std::uint64_t now) const noexcept { return overdue_at_ != 0 && now >= overdue_at_; }
    /// The answer is overdue, and cannot have come yet.
    void expect_later(std::uint64_t usual_ns, std::uint64_t now) noexcept { overdue_at_ = now + usual_ns; }
    /// The answer is overdue, and one packet is repeated as a probe, which is no retry. First the last one that was
    /// sent: the peer acknowledges it, or sends a NAK. A peer that has sent its NAK before is silent, so each later
    /// probe is the first packet, alone, and its answer tells what was lost. Later ones wait longer and longer.
    /// @return whether to repeat the last packet; false: the first one
    bool probe() noexcept
    {
        overdue_at_ = 0;
        const bool first = probes_ == 0 && !repeating();
        probes_ = std::min<std::uint8_t>(probes_ + 1, most_probes);
        if (first)
            return true;
        if (before_probe_ == 0)
            before_probe_ = window_;
        probe_answered_ = false;
        window_ = 1;
        return false;
    }
    /// Whether there was a probe since the last progress.
    bool has_probed() const noexcept { return probes_ != 0; }
    /// A packet was lost.
    void narrow() noexcept
    {
        const std::uint32_t before = std::exchange(before_probe_, 0);
        threshold_ = std::min(most_window_, std::max((before != 0 ? before : window_) / 2, least_threshold));
        window_ = threshold_;
    }
    /// A packet was lost and is repeated at once. @return false: the retries are used up
    bool retry() noexcept
    {
        narrow();
        answer_by_ = overdue_at_ = 0;
        return retries_++ < most_retries_;
    }
    /// An answer shows a gap. @return false: an earlier one has shown it, and the packets were already repeated
    bool see_gap() noexcept { return !std::exchange(gap_seen_, true); }

    /// The peer sent an RNR NAK, which names the shortest time to wait. After that time one packet goes out alone; the
    /// others follow once it is acknowledged. A wait below 0.64 ms doubles with each consecutive RNR NAK, up to 0.64
    /// ms: a peer that is never ready must not get 100,000 retries a second. @return false: the RNR retries are used up
    bool wait_for_receiver(std::uint8_t timer_code, std::uint64_t now) noexcept
    {
        answer_by_ = overdue_at_ = before_probe_ = 0;
        window_ = 1;
        const std::uint64_t wait_ns = net::rnr_wait_ns(timer_code);
        resume_at_ = now + std::max(wait_ns, std::min(wait_ns << not_ready_, longest_growth_ns));
        if (not_ready_ != most_doublings)
            ++not_ready_;
        if (most_rnr_retries_ == 7) {
            rnr_retries_ = 1;
            return true;
        }
        return rnr_retries_++ < most_rnr_retries_;
    }
    bool waits(std::uint64_t now) noexcept
    {
        if (resume_at_ != 0 && now >= resume_at_)
            resume_at_ = 0;
        return resume_at_ != 0;
    }
    /// Whether the wait after an RNR NAK is still running.
    bool waits_for_receiver() const noexcept { return resume_at_ != 0; }
    std::uint8_t retries_left() const noexcept
    {
        return static_cast<std::uint8_t>(most_retries_ - std::min(retries_, most_retries_));
    }
    /// 7: no limit.
    std::uint8_t rnr_retries_left() const noexcept
    {
        return most_rnr_retries_ == 7
                   ? std::uint8_t{7}
                   : static_cast<std::uint8_t>(most_rnr_retries_ - std::min(rnr_retries_, most_rnr_retries_));
    }
    /// The latest time of the next action; 0: none.
    std::uint64_t deadline() const noexcept
    {
        if (resume_at_ != 0)
            return resume_at_;
        return overdue_at_ != 0 ? std::min(overdue_at_, answer_by_) : answer_by_;
    }

 private:
    static constexpr std::uint64_t longest_growth_ns = 640'000;
    static constexpr std::uint8_t most_doublings = 6, most_probes = 16;

    /// The first answer after a probe may be one to a packet before it, and others follow: then nothing was lost. The
    /// second one is to what was repeated.
    void end_probe(bool all) noexcept
    {
        if (all)
            window_ = std::exchange(before_probe_, 0);
        else if (std::exchange(probe_answered_, true))
            narrow();
    }
    /// Opens the window by each acknowledged packet up to half of what it was at the last loss, and then by every third
    /// one. With go-back-N, a loss costs a window, which so is two thirds of the packets between two losses.
    void widen(std::uint32_t packets) noexcept
    {
        const std::uint32_t fast = std::min(packets, threshold_ - std::min(threshold_, window_));
        slow_ += packets - fast;
        window_ = std::min(most_window_, window_ + fast + slow_ / slowness);
        slow_ %= slowness;
    }

    static constexpr std::uint32_t slowness = 3, least_threshold = 4;

    std::uint64_t timeout_ns_;
    std::uint64_t answer_by_ = 0;  ///< when the wait for an answer times out
    std::uint64_t overdue_at_ = 0; ///< when the answer is overdue
    std::uint64_t resume_at_ = 0;  ///< nothing is sent before: the peer was not ready
    std::uint8_t most_retries_, most_rnr_retries_;
    std::uint8_t retries_ = 0, rnr_retries_ = 0; ///< since the last progress
    std::uint8_t not_ready_ = 0;                 ///< RNR NAKs since the last progress, up to most_doublings
    std::uint8_t probes_ = 0;                    ///< since the last progress, up to most_probes
    bool gap_seen_ = false;
    bool probe_answered_ = false; ///< an answer has come since the last probe
    std::uint32_t most_window_, window_;
    std::uint32_t threshold_;        ///< the window opens fast up to here
    std::uint32_t slow_ = 0;         ///< acknowledged packets that have not opened the window yet
    std::uint32_t before_probe_ = 0; ///< the window before the first probe since the last progress; 0: there was none
};

} // namespace weftio::roce
