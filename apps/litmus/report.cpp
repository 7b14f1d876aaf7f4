#include "report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weftio::litmus {

namespace {

constexpr const char* row_format = "{:<21} {:<13} {:<17} {:<8} {:>12} {:>10} {:>11} {:>9}\n";

std::string rate(double value)
{
    return value == 0 ? "0" : fmt::format("{:.1e}", value);
}

} // namespace

std::string table_head(const command& wanted)
{
    return fmt::format(
               "{} bytes of data a pair, {} pairs in flight; data and flags in the host's memory, read by the CPU\n\n",
               wanted.trial.bytes, wanted.trial.pairs) +
           fmt::format(row_format, "Writer", "Flag", "Flush", "Ordering", "Trials", "Stale", "Rate below", "Trials/s");
}

std::string table_row(const outcome& of)
{
    const cell& what = of.of;
    if (!of.refused.empty())
        return fmt::format("{:<21} {:<13} {:<17} {:<8} not run: {}\n", to_string(what.by), to_string(what.flag),
                           to_string(what.how), what.relaxed ? "relaxed" : "strict", of.refused);
    return fmt::format(row_format, to_string(what.by), to_string(what.flag), to_string(what.how),
                       what.relaxed ? "relaxed" : "strict", of.trials, of.stale, rate(of.upper_bound()),
                       fmt::format("{:.0f}", of.seconds > 0 ? static_cast<double>(of.trials) / of.seconds : 0));
}

std::string table_end(const std::vector<outcome>& all)
{
    std::uint64_t trials = 0, stale = 0;
    for (const outcome& each : all) {
        trials += each.trials;
        stale += each.stale;
    }
    return fmt::format(
        "\n{} stale reads of {} trials. \"Rate below\": with 98 % confidence.\n"
        "Not run: memory and consumers on a GPU, a copy engine, a second NIC, the driver's flush (not there yet);\n"
        "a load by the CPU as a flush (the CPU loads the data anyway).\n",
        stale, trials);
}

std::string to_json(const command& wanted, const std::vector<outcome>& all)
{
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const outcome& each : all) {
        nlohmann::ordered_json row{{"writer", to_string(each.of.by)},
                                   {"flag", to_string(each.of.flag)},
                                   {"flush", to_string(each.of.how)},
                                   {"relaxed_ordering", each.of.relaxed},
                                   {"memory", "host"},
                                   {"consumer", "cpu"}};
        if (each.refused.empty())
            row.update({{"trials", each.trials},
                        {"stale", each.stale},
                        {"rate_below", each.upper_bound()},
                        {"seconds", each.seconds}});
        else
            row["not_run"] = each.refused;
        rows.push_back(row);
    }
    return nlohmann::ordered_json{
               {"bytes", wanted.trial.bytes}, {"pairs", wanted.trial.pairs}, {"confidence", 0.98}, {"rows", rows}}
               .dump(2) +
           "\n";
}

} // namespace weftio::litmus
