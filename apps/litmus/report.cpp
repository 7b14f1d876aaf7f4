#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weftio::litmus {

namespace {

constexpr const char* row_words = "{:<8} {:<13} {:<20} {:<12} {:<17} {:<8} ";

std::string words_of(const cell& what)
{
    return fmt::format(row_words, what.memory_words(), what.reader_words(), to_string(what.by), to_string(what.flag),
                       to_string(what.how), what.relaxed ? "relaxed" : "strict");
}

std::string row_of(const std::string& words, std::string_view trials, std::string_view stale, std::string_view rate,
                   std::string_view speed)
{
    return fmt::format("{}{:>12} {:>10} {:>10} {:>9}\n", words, trials, stale, rate, speed);
}

std::string rate(double value)
{
    return value == 0 ? "0" : fmt::format("{:.1e}", value);
}

const char* ordering_of(const gpu& of)
{
    return of.writes_ordering() >= 200 ? "all devices" : of.writes_ordering() >= 100 ? "owner" : "none";
}

std::vector<std::string> flushes_of(const gpu& of)
{
    std::vector<std::string> made;
    if (of.flush_options() & 1)
        made.push_back("driver's call");
    if (of.flush_options() & 2)
        made.push_back("streams");
    return made;
}

nlohmann::ordered_json json_of(const gpu& of)
{
    return {{"name", of.name()},
            {"gpu_direct_rdma_writes_ordering", of.writes_ordering()},
            {"ordered_for", ordering_of(of)},
            {"gpu_direct_rdma_flush_writes_options", of.flush_options()},
            {"flushes", flushes_of(of)}};
}

std::string line_of(const char* what, const nic_words& of)
{
    return fmt::format("{}: {}{}, port {}, GID index {}\n", what, of.name,
                       of.firmware.empty() ? "" : " (firmware " + of.firmware + ")", of.port, of.gid_index);
}

nlohmann::ordered_json json_of(const nic_words& of)
{
    return {{"name", of.name}, {"firmware", of.firmware}, {"port", of.port}, {"gid_index", of.gid_index}};
}

/// Each reason once, with the number of its rows.
std::string reasons(const std::vector<outcome>& all)
{
    std::vector<std::pair<std::string, unsigned>> found;
    for (const outcome& each : all)
        if (each.never) {
            const auto same = std::ranges::find_if(found, [&](const auto& one) { return one.first == each.refused; });
            if (same != found.end())
                ++same->second;
            else
                found.emplace_back(each.refused, 1);
        }
    std::string text = found.empty() ? "" : "Rows that are not there:\n";
    for (const auto& [why, rows] : found)
        text += fmt::format("{:>4}  {}\n", rows, why);
    return text;
}

} // namespace

std::string table_head(const command& wanted, const machine& on)
{
    std::string text = line_of("Device", on.nic);
    if (!on.second_nic.name.empty())
        text += line_of("Second device", on.second_nic);
    text += fmt::format("{} bytes of data a pair, {} pairs in flight\n", wanted.trial.bytes, wanted.trial.pairs);
    for (const gpu* const each : {on.owner, on.peer})
        if (each)
            text += fmt::format("{}: {}; GPU_DIRECT_RDMA_WRITES_ORDERING {} ({}), FLUSH_WRITES_OPTIONS {} ({})\n",
                                each == on.owner ? "GPU" : "Second GPU", each->name(), each->writes_ordering(),
                                ordering_of(*each), each->flush_options(), fmt::join(flushes_of(*each), ", "));
    return text + "\n" +
           row_of(fmt::format(row_words, "Data in", "Read by", "Writer", "Flag", "Flush", "Ordering"), "Trials",
                  "Stale", "Rate below", "Trials/s");
}

std::string table_row(const outcome& of)
{
    const std::string words = words_of(of.of);
    if (!of.refused.empty())
        return fmt::format("{}not run: {}\n", words, of.refused);
    return row_of(words, std::to_string(of.trials), std::to_string(of.stale), rate(of.upper_bound()),
                  fmt::format("{:.0f}", of.seconds > 0 ? static_cast<double>(of.trials) / of.seconds : 0));
}

std::string table_end(const std::vector<outcome>& all)
{
    std::uint64_t trials = 0, stale = 0;
    bool by_address = false, by_dma_buf = false;
    for (const outcome& each : all) {
        trials += each.trials;
        stale += each.stale;
        const bool in_gpu = each.trials != 0 && each.of.where == place::gpu;
        by_address |= in_gpu && !each.by_dma_buf;
        by_dma_buf |= in_gpu && each.by_dma_buf;
    }
    return fmt::format("\n{} stale reads of {} trials. \"Rate below\": with 98 % confidence.\n{}{}{}", stale, trials,
                       by_address ? "Memory of the GPU was registered by ibv_reg_mr.\n" : "",
                       by_dma_buf ? "Memory of the GPU was registered by ibv_reg_dmabuf_mr.\n" : "", reasons(all));
}

std::string to_json(const std::vector<cell>& rows)
{
    nlohmann::ordered_json words = nlohmann::ordered_json::array();
    for (const cell& each : rows)
        words.push_back(each.words());
    return words.dump(2) + "\n";
}

std::string to_json(const command& wanted, const machine& on, const std::vector<outcome>& all)
{
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const outcome& each : all) {
        nlohmann::ordered_json row{{"writer", to_string(each.of.by)},  {"flag", to_string(each.of.flag)},
                                   {"flush", to_string(each.of.how)},  {"relaxed_ordering", each.of.relaxed},
                                   {"memory", each.of.memory_words()}, {"reader", each.of.reader_words()}};
        if (each.refused.empty())
            row.update({{"trials", each.trials},
                        {"stale", each.stale},
                        {"rate_below", each.upper_bound()},
                        {"seconds", each.seconds}});
        else
            row[each.never ? "not_there" : "not_run"] = each.refused;
        if (each.refused.empty() && each.of.where == place::gpu)
            row["registered_by"] = each.by_dma_buf ? "ibv_reg_dmabuf_mr" : "ibv_reg_mr";
        rows.push_back(row);
    }
    nlohmann::ordered_json made{{"device", json_of(on.nic)}};
    if (!on.second_nic.name.empty())
        made["second_device"] = json_of(on.second_nic);
    made.update({{"bytes", wanted.trial.bytes}, {"pairs", wanted.trial.pairs}, {"confidence", 0.98}});
    if (on.owner)
        made["gpu"] = json_of(*on.owner);
    if (on.peer)
        made["second_gpu"] = json_of(*on.peer);
    made["rows"] = rows;
    return made.dump(2) + "\n";
}

} // namespace weftio::litmus
