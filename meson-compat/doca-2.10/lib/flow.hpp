// Pipes, and the one list of rules that is made of those of a port.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dev.hpp"
#include "flow_match.hpp"
#include "weftio/flow.hpp"

struct doca_flow_pipe_cfg {
    static constexpr const char* noun = "configuration of a pipe";

    explicit doca_flow_pipe_cfg(std::shared_ptr<doca_flow_port> on) : port(std::move(on)) {}

    std::shared_ptr<doca_flow_port> port;
    std::string name{};
    doca_flow_pipe_type type = DOCA_FLOW_PIPE_BASIC;
    bool is_root = false;
    doca_flow_match match{};
    std::optional<doca_flow_match> mask{};
};

namespace weftio::doca {

/// A doca_flow_fwd, without its pointers to memory of the program.
struct forward {
    doca_flow_fwd_type type = DOCA_FLOW_FWD_DROP;
    std::vector<std::uint16_t> queues{};
    std::weak_ptr<doca_flow_pipe> next{};

    /// @throws failure
    static forward of(const doca_flow_fwd& fwd);
    /// @throws failure DOCA_ERROR_INVALID_VALUE a number of a queue that `dev` does not have
    void require_queues_of(const doca_dev& dev) const;
};

/// Priorities of the rules that an entry has on one way of packets into its pipe.
struct priority_range {
    std::uint32_t first, last;
    std::optional<std::uint64_t> age; ///< of its one rule; none: the rules are those of a pipe behind it
};

/// What the pipes of a port are as one list of rules. A new rule gets a priority between its neighbors', so that the
/// others stay as they are.
struct compiled_pipes {
    static constexpr std::uint32_t step = 1024; ///< from priority to priority, for rules between them

    /// How packets come into a pipe.
    struct way {
        weftio::flow_match conditions;
        std::uint32_t begin;    ///< no rule before the way has it, and none of the way has less
        std::uint32_t miss = 0; ///< of the first rule behind its entries
    };

    std::vector<weftio::flow_rule> rules{}; ///< in the order in which they decide; empty once they are installed
    std::unordered_map<const doca_flow_pipe*, std::vector<way>> ways{};
    /// Of each way, in the order of `ways`; none: no packet of the way matches the entry.
    std::unordered_map<const doca_flow_pipe_entry*, std::vector<std::optional<priority_range>>> entries{};
    std::uint32_t next = 0; ///< priority

    /// @throws failure DOCA_ERROR_FULL there are more than a port can have
    std::uint32_t take_priority();
};

} // namespace weftio::doca

struct doca_flow_pipe_entry {
    static constexpr const char* noun = "entry of a pipe";

    std::weak_ptr<doca_flow_pipe> pipe;
    weftio::flow_match match;
    std::optional<weftio::doca::forward> fwd; ///< none: the pipe's
    std::uint32_t priority = 0;
};

struct doca_flow_pipe {
    static constexpr const char* noun = "pipe";

    doca_flow_pipe(const doca_flow_pipe_cfg& configuration, std::optional<weftio::doca::forward> to,
                   weftio::doca::forward otherwise)
        : cfg(configuration), fwd(std::move(to)), miss(std::move(otherwise)), port(cfg.port)
    {
        cfg.port.reset(); // the port owns the pipe
    }

    doca_flow_pipe_cfg cfg;
    std::optional<weftio::doca::forward> fwd;
    weftio::doca::forward miss;
    std::weak_ptr<doca_flow_port> port;
    std::vector<std::shared_ptr<doca_flow_pipe_entry>> entries{}; ///< in the order in which they decide
};

struct doca_flow_port {
    static constexpr const char* noun = "port of pipes";

    explicit doca_flow_port(std::shared_ptr<doca_dev> on) : dev(std::move(on)) {}

    const std::shared_ptr<doca_dev> dev;

    void add(const std::shared_ptr<doca_flow_pipe>& pipe);
    void remove(const std::shared_ptr<doca_flow_pipe>& pipe);
    /// The rules with the entry. On failure there is no such entry.
    void add(const std::shared_ptr<doca_flow_pipe>& pipe, const std::shared_ptr<doca_flow_pipe_entry>& entry);
    void remove(const std::shared_ptr<doca_flow_pipe>& pipe, const std::shared_ptr<doca_flow_pipe_entry>& entry);
    /// Makes the rules anew: a queue that pipes name has started or stopped. Any thread that holds no lock of the
    /// library.
    void refresh();
    /// Ends all rules; the program has no pipe and no entry of the port any more.
    void stop();

 private:
    using compiled_pipes = weftio::doca::compiled_pipes;
    using pipe_pointer = std::shared_ptr<doca_flow_pipe>;
    using entry_pointer = std::shared_ptr<doca_flow_pipe_entry>;

    void replace_rules();
    bool add_rules(const doca_flow_pipe& pipe, std::size_t at);
    bool remove_rules(const doca_flow_pipe_entry& entry);
    std::optional<std::uint32_t> free_priority(const doca_flow_pipe& pipe, std::size_t at, std::size_t way) const;
    void compile(compiled_pipes& into, const doca_flow_pipe& pipe, const weftio::flow_match& context,
                 unsigned depth) const;
    void compile(compiled_pipes& into, const weftio::doca::forward& to, const weftio::flow_match& context,
                 unsigned depth) const;
    void keep(std::vector<weftio::flow> made, const std::vector<weftio::flow_rule>& rules, std::uint64_t age);
    void end_rules();

    std::mutex mutex_;
    std::vector<pipe_pointer> pipes_;
    compiled_pipes compiled_; ///< what flows_ are made of
    bool is_compiled_ = false;
    /// In force, by priority and age: in the order in which they decide.
    std::map<std::pair<std::uint32_t, std::uint64_t>, weftio::flow> flows_;
    std::uint64_t age_ = 0;  ///< of the youngest of flows_
    std::uint32_t list_ = 0; ///< highest bit of the priorities of flows_
};
