#include "flow.hpp"

#include <charconv>

#include "dpdk.hpp"

using namespace weftio::doca;

struct doca_flow_cfg {
    static constexpr const char* noun = "configuration of flow";
};
struct doca_flow_port_cfg {
    static constexpr const char* noun = "configuration of a port";
    std::shared_ptr<doca_dev> dev{};
};

namespace {

std::mutex state_mutex;
bool is_initialized = false;

/// Ends a port. The program does not have it any more.
void stop_port(const doca_flow_port* port)
{
    living<doca_flow_port>::remove(port)->stop();
}

std::optional<forward> forward_or_none(const doca_flow_fwd* fwd)
{
    return fwd && fwd->type != DOCA_FLOW_FWD_NONE ? std::optional(forward::of(*fwd)) : std::nullopt;
}

void add_entry(const std::shared_ptr<doca_flow_pipe>& pipe, weftio::flow_match match, std::optional<forward> to,
               std::uint32_t priority, doca_flow_pipe_entry** out)
{
    auto port = pipe->port.lock();
    require(port != nullptr, DOCA_ERROR_BAD_STATE, "the port of the pipe was stopped");
    require(to || pipe->fwd, DOCA_ERROR_INVALID_VALUE, "neither the entry nor its pipe says where packets go");
    if (to)
        to->require_queues_of(*port->dev);
    auto entry = std::make_shared<doca_flow_pipe_entry>();
    entry->pipe = pipe;
    entry->match = std::move(match);
    entry->fwd = std::move(to);
    entry->priority = priority;
    port->add(pipe, entry);
    living<doca_flow_pipe_entry>::add(entry);
    if (out)
        *out = entry.get();
}

} // namespace

forward forward::of(const doca_flow_fwd& fwd)
{
    forward to{.type = fwd.type};
    if (fwd.type == DOCA_FLOW_FWD_PIPE) {
        to.next = known(fwd.next_pipe);
    } else if (fwd.type == DOCA_FLOW_FWD_RSS) {
        require(fwd.rss.queues_array && fwd.rss.nr_queues >= 1 && fwd.rss.nr_queues <= 128, DOCA_ERROR_INVALID_VALUE,
                "{} queues at {}, not 1 to 128 in an array", fwd.rss.nr_queues, fmt::ptr(fwd.rss.queues_array));
        to.queues.assign(fwd.rss.queues_array, fwd.rss.queues_array + fwd.rss.nr_queues);
    } else {
        require(fwd.type == DOCA_FLOW_FWD_DROP, DOCA_ERROR_NOT_SUPPORTED,
                "packets go to queues (RSS), to another pipe or nowhere (DROP), not to {}", static_cast<int>(fwd.type));
    }
    return to;
}

doca_error_t doca_flow_cfg_create(doca_flow_cfg** cfg)
{
    return call(__func__, [&] { make(cfg); });
}
doca_error_t doca_flow_cfg_destroy(doca_flow_cfg* cfg)
{
    return call(__func__, [&] { living<doca_flow_cfg>::remove(cfg); });
}
doca_error_t doca_flow_cfg_set_pipe_queues(doca_flow_cfg* cfg, std::uint16_t)
{
    return call(__func__, [&] { known(cfg); });
}
doca_error_t doca_flow_cfg_set_mode_args(doca_flow_cfg* cfg, const char* mode_args)
{
    return call(__func__, [&] {
        known(cfg);
        require(mode_args, DOCA_ERROR_INVALID_VALUE, "the mode is a null pointer");
    });
}
doca_error_t doca_flow_cfg_set_nr_counters(doca_flow_cfg* cfg, std::uint32_t)
{
    return call(__func__, [&] { known(cfg); });
}

doca_error_t doca_flow_init(doca_flow_cfg* cfg)
{
    return call(__func__, [&] {
        known(cfg);
        std::lock_guard lock(state_mutex);
        require(!is_initialized, DOCA_ERROR_BAD_STATE, "flow is initialized already");
        is_initialized = true;
    });
}

void doca_flow_destroy()
{
    call(__func__, [&] {
        std::lock_guard lock(state_mutex);
        std::vector<const doca_flow_port*> ports;
        living<doca_flow_port>::any([&](const auto& port) {
            ports.push_back(port.get());
            return false;
        });
        for (const auto* port : ports)
            stop_port(port);
        is_initialized = false;
    });
}

doca_error_t doca_flow_port_cfg_create(doca_flow_port_cfg** cfg)
{
    return call(__func__, [&] { make(cfg); });
}
doca_error_t doca_flow_port_cfg_destroy(doca_flow_port_cfg* cfg)
{
    return call(__func__, [&] { living<doca_flow_port_cfg>::remove(cfg); });
}
doca_error_t doca_flow_port_cfg_set_dev(doca_flow_port_cfg* cfg, void* dev)
{
    return call(__func__, [&] { known(cfg)->dev = known(static_cast<doca_dev*>(dev)); });
}
doca_error_t doca_flow_port_cfg_set_devargs(doca_flow_port_cfg* cfg, const char* devargs)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        require(devargs, DOCA_ERROR_INVALID_VALUE, "the arguments are a null pointer");
        const std::string_view text = devargs;
        std::uint16_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        require(error == std::errc{} && end == text.data() + text.size(), DOCA_ERROR_INVALID_VALUE,
                "\"{}\" is no number of a DPDK port", devargs);
        one->dev = probed_device(number);
    });
}

doca_error_t doca_flow_port_start(doca_flow_port_cfg* cfg, doca_flow_port** port)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        std::lock_guard lock(state_mutex);
        require(is_initialized, DOCA_ERROR_BAD_STATE, "flow is not initialized; call doca_flow_init first");
        require(one->dev != nullptr, DOCA_ERROR_BAD_STATE,
                "the port has no device; call doca_flow_port_cfg_set_dev first");
        const bool is_taken = living<doca_flow_port>::any(
            [&](const std::shared_ptr<doca_flow_port>& other) { return other->dev->info == one->dev->info; });
        require(!is_taken, DOCA_ERROR_IN_USE, "{} has a port of pipes already", one->dev->info->pci);
        make(port, one->dev);
    });
}
doca_error_t doca_flow_port_stop(doca_flow_port* port)
{
    return call(__func__, [&] { stop_port(port); });
}

doca_error_t doca_flow_pipe_cfg_create(doca_flow_pipe_cfg** cfg, doca_flow_port* port)
{
    return call(__func__, [&] { make(cfg, known(port)); });
}
doca_error_t doca_flow_pipe_cfg_destroy(doca_flow_pipe_cfg* cfg)
{
    return call(__func__, [&] { living<doca_flow_pipe_cfg>::remove(cfg); });
}
doca_error_t doca_flow_pipe_cfg_set_name(doca_flow_pipe_cfg* cfg, const char* name)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        require(name, DOCA_ERROR_INVALID_VALUE, "the name is a null pointer");
        one->name = name;
    });
}
doca_error_t doca_flow_pipe_cfg_set_type(doca_flow_pipe_cfg* cfg, doca_flow_pipe_type type)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        require(type == DOCA_FLOW_PIPE_BASIC || type == DOCA_FLOW_PIPE_CONTROL, DOCA_ERROR_INVALID_VALUE,
                "{} is no type of pipe; use DOCA_FLOW_PIPE_BASIC or DOCA_FLOW_PIPE_CONTROL", static_cast<int>(type));
        one->type = type;
    });
}
doca_error_t doca_flow_pipe_cfg_set_is_root(doca_flow_pipe_cfg* cfg, bool is_root)
{
    return call(__func__, [&] { known(cfg)->is_root = is_root; });
}
doca_error_t doca_flow_pipe_cfg_set_match(doca_flow_pipe_cfg* cfg, const doca_flow_match* match,
                                          const doca_flow_match* match_mask)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        const doca_flow_match whole = match ? *match : doca_flow_match{};
        conditions(whole, match_mask, nullptr); // refuses what rules cannot compare
        one->match = whole;
        one->mask = match_mask ? std::optional(*match_mask) : std::nullopt;
    });
}
doca_error_t doca_flow_pipe_cfg_set_monitor(doca_flow_pipe_cfg* cfg, const doca_flow_monitor* monitor)
{
    return call(__func__, [&] {
        known(cfg);
        require(monitor, DOCA_ERROR_INVALID_VALUE, "the monitor is a null pointer");
        require(monitor->counter_type != DOCA_FLOW_RESOURCE_TYPE_SHARED, DOCA_ERROR_NOT_SUPPORTED,
                "shared counters; each entry has a counter of its own");
    });
}

doca_error_t doca_flow_pipe_create(const doca_flow_pipe_cfg* cfg, const doca_flow_fwd* fwd,
                                   const doca_flow_fwd* fwd_miss, doca_flow_pipe** pipe)
{
    return call(__func__, [&] {
        auto one = known(cfg);
        result(pipe, "pipe");
        auto to = forward_or_none(fwd);
        auto miss = forward_or_none(fwd_miss);
        for (const auto* where : {&to, &miss})
            if (*where)
                (*where)->require_queues_of(*one->port->dev);
        auto made = std::make_shared<doca_flow_pipe>(*one, std::move(to), std::move(miss).value_or(forward{}));
        one->port->add(made);
        living<doca_flow_pipe>::add(made);
        *pipe = made.get();
    });
}

doca_error_t doca_flow_pipe_add_entry(std::uint16_t, doca_flow_pipe* pipe, const doca_flow_match* match,
                                      const doca_flow_actions* actions, const doca_flow_monitor*,
                                      const doca_flow_fwd* fwd, std::uint32_t, void*, doca_flow_pipe_entry** entry)
{
    return call(__func__, [&] {
        auto one = known(pipe);
        require(one->cfg.type == DOCA_FLOW_PIPE_BASIC, DOCA_ERROR_INVALID_VALUE,
                "pipe \"{}\" is a control pipe; call doca_flow_pipe_control_add_entry", one->cfg.name);
        require(!actions, DOCA_ERROR_NOT_SUPPORTED, "actions that change packets");
        const doca_flow_match* mask = one->cfg.mask ? &*one->cfg.mask : nullptr;
        add_entry(one, conditions(one->cfg.match, mask, match), forward_or_none(fwd), 0, entry);
    });
}

doca_error_t doca_flow_pipe_control_add_entry(std::uint16_t, std::uint32_t priority, doca_flow_pipe* pipe,
                                              const doca_flow_match* match, const doca_flow_match* match_mask,
                                              const doca_flow_match_condition* condition,
                                              const doca_flow_actions* actions, const doca_flow_actions*,
                                              const doca_flow_action_descs*, const doca_flow_monitor*,
                                              const doca_flow_fwd* fwd, void*, doca_flow_pipe_entry** entry)
{
    return call(__func__, [&] {
        auto one = known(pipe);
        require(one->cfg.type == DOCA_FLOW_PIPE_CONTROL, DOCA_ERROR_INVALID_VALUE,
                "pipe \"{}\" is a basic pipe; call doca_flow_pipe_add_entry", one->cfg.name);
        require(!condition && !actions, DOCA_ERROR_NOT_SUPPORTED, "conditions, and actions that change packets");
        const doca_flow_match all{};
        add_entry(one, conditions(match ? *match : all, match_mask, nullptr), forward_or_none(fwd), priority, entry);
    });
}

doca_error_t doca_flow_entries_process(doca_flow_port* port, std::uint16_t, std::uint64_t, std::uint32_t)
{
    return call(__func__, [&] { known(port); });
}

doca_error_t doca_flow_pipe_remove_entry(std::uint16_t, std::uint32_t, doca_flow_pipe_entry* entry)
{
    return call(__func__, [&] {
        auto one = living<doca_flow_pipe_entry>::remove(entry);
        auto pipe = one->pipe.lock();
        auto port = pipe ? pipe->port.lock() : nullptr;
        if (port)
            port->remove(pipe, one);
    });
}

void doca_flow_pipe_destroy(doca_flow_pipe* pipe)
{
    call(__func__, [&] {
        if (!living<doca_flow_pipe>::any([&](const auto& one) { return one.get() == pipe; }))
            return;
        auto one = living<doca_flow_pipe>::remove(pipe);
        if (auto port = one->port.lock())
            port->remove(one);
    });
}
