// Four connected couples of queue pairs: one of each lends memory by windows, the other accesses it. Beside them, what
// docs/formats.md says should come of it (window_model.hpp), byte by byte.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/refusal.hpp"
#include "two_ends.hpp"
#include "window_entry.hpp"
#include "window_model.hpp"

namespace weftio::test {

class window_world {
 public:
    static constexpr std::size_t lent_bytes = 4096, inbox_bytes = 4096, own_bytes = 8192;
    static constexpr unsigned couples = 4, regions = 5, windows = 6, domains = 2;
    static constexpr std::uint32_t mtu = 256;

    /// @param memory_of  "cpu" or "opencl": whose memory is lent and received into
    window_world(ends_at where, unsigned seed, const std::string& memory_of);

    /// One random step; a failed expectation tells of the steps before.
    void step();
    /// The last steps, in words.
    std::string story() const;
    /// How often entries of lenders (false) and accessors (true) came to each reason.
    const std::map<std::pair<bool, refusal>, unsigned>& seen() const { return seen_; }

 private:
    struct couple {
        window_model::user lender_as;
        bool strict = true;
        std::unique_ptr<fake_pair> accessor, lender;
        std::optional<end_memory> own, inbox; ///< of the accessor; receives of the lender
        std::vector<std::uint8_t> own_model, inbox_model;
    };
    /// What an entry of a chain should come to.
    struct prediction {
        std::uint32_t position = 0;
        refusal at_home = refusal::none; ///< the reason that the own side gives
        refusal at_peer = refusal::none; ///< the reason that the peer gives
        bool silent = false;             ///< only the peer's side fails
    };

    std::size_t below(std::size_t end) { return random_() % end; }
    bool chance(unsigned in) { return below(in) == 0; }
    template <class... Words>
    void tell(fmt::format_string<Words...> text, Words&&... words)
    {
        if (told_.size() == 60)
            told_.pop_front();
        told_.push_back(fmt::format("{}: ", steps_) + fmt::format(text, std::forward<Words>(words)...));
    }

    void make_pairs(unsigned number);
    void connect(couple& at);
    void reset(couple& at);
    void make_region(unsigned number);
    void make_window(unsigned number);
    region_options random_options(unsigned domain, std::size_t bytes);
    void note_region(unsigned number, const region_options& options, std::size_t at, std::size_t bytes);

    std::uint32_t some_window_key(const couple& of, bool for_access);
    std::uint32_t some_key();
    void lend_some();
    prediction bind_some(couple& at);
    prediction free_some(couple& at);
    prediction use_as_own(couple& at);
    void access_some();
    prediction write_some(couple& at, std::size_t& used);
    prediction read_some(couple& at, std::size_t& used);
    prediction change_some(couple& at, std::size_t& used);
    prediction send_some(couple& at, std::size_t& used);
    window_model::request some_request(const couple& of, access right);
    void change_region();
    void close_region(unsigned number);
    void run(couple& at, fake_pair& by, const std::vector<prediction>& all);
    void expect_failure(couple& at, fake_pair& by, const prediction& failed);
    void expect_no_failure(fake_pair& by, const prediction& last);
    void expect_receives(couple& at);
    void compare();

    port& lends_at() { return ends_.at(1); }

    two_ends ends_;
    const device owner_; ///< of all memory that entries name
    std::minstd_rand random_;
    std::array<protection_domain, domains> domains_{protection_domain{}, protection_domain::make()};
    memory lent_;
    std::vector<std::uint8_t> lent_model_;
    std::array<std::optional<memory_region>, regions> regions_;
    rdma_device device_;
    std::array<std::optional<memory_window>, windows> windows_;
    std::array<std::uint32_t, windows> indices_{};
    std::vector<std::uint32_t> old_keys_;
    std::array<couple, couples> couples_;
    window_model model_{regions};
    struct received {
        std::uint8_t syndrome;
        std::uint32_t invalidated; ///< 0: none
        std::uint32_t bytes;
    };
    std::vector<received> receives_; ///< that the chain completes, in order
    unsigned steps_ = 0, made_pairs_ = 0;
    std::map<std::pair<bool, refusal>, unsigned> seen_;
    bool fence_ = false;
    std::deque<std::string> told_;
};

} // namespace weftio::test
