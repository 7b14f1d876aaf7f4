// Pipes, and the one list of rules that is made of those of a port.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
    void replace_rules();
    void compile(const doca_flow_pipe& pipe, const weftio::flow_match& context, unsigned depth);
    void compile(const weftio::doca::forward& to, const weftio::flow_match& context, unsigned depth);

    std::mutex mutex_;
    std::vector<std::shared_ptr<doca_flow_pipe>> pipes_;
    std::vector<weftio::flow_rule> rules_; ///< while a list is being made
    std::vector<weftio::flow> flows_;      ///< in force, the rule that decides first in front
    std::uint32_t priority_ = 1;           ///< of flows_
};
