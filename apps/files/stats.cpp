#include "stats.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weftio::files {

namespace {

using page = storage::statistics_copy;
using json = nlohmann::ordered_json;

constexpr const char* kinds[] = {"read", "write", "sync"};

const char* way_name(std::size_t way)
{
    return to_string(static_cast<file_way>(way));
}

std::uint64_t mean(const page::per_way& way, std::size_t what)
{
    return way.operations[what] == 0 ? 0 : way.latency_ns[what] / way.operations[what];
}

std::string rows_of_ways(const page& from)
{
    std::string text = fmt::format("  {:8}{:7}{:>14}{:>10}{:>18}{:>12}{:>12}\n", "way", "", "ok", "errors", "bytes",
                                   "mean us", "max us");
    for (std::size_t i = 0; i < page::ways_count; ++i)
        for (std::size_t what = 0; what < 3; ++what) {
            const page::per_way& way = from.ways[i];
            if (way.operations[what] == 0)
                continue;
            text +=
                fmt::format("  {:8}{:7}{:>14}{:>10}{:>18}", way_name(i), kinds[what],
                            way.operations[what] - way.errors[what], way.errors[what], what < 2 ? way.bytes[what] : 0);
            text += from.level < 1 ? fmt::format("{:>12}{:>12}\n", "-", "-")
                                   : fmt::format("{:>12.1f}{:>12.1f}\n", static_cast<double>(mean(way, what)) / 1e3,
                                                 static_cast<double>(way.latency_max_ns[what]) / 1e3);
        }
    for (std::size_t fall = 1; fall < page::falls_count; ++fall)
        if (from.falls[fall] != 0)
            text += fmt::format("  fallback ({}): {}\n", to_string(static_cast<file_fall>(fall)), from.falls[fall]);
    return text;
}

std::string rows_of_registrations(const page& from)
{
    return fmt::format(
        "  registered: {} files, {} buffers of {} bytes; with io_uring: {} files, {} buffers, {} refused\n",
        from.registered.files, from.registered.buffers, from.registered.buffer_bytes, from.rings.files,
        from.rings.buffers, from.rings.refused);
}

std::string rows_of_sizes(const page& from)
{
    std::string text =
        from.level < 2 ? "" : fmt::format("  {:>16}  {:8}{:7}{:>14}\n", "bytes from", "way", "", "count");
    for (std::size_t size = 0; size < page::sizes_count; ++size)
        for (std::size_t i = 0; i < page::ways_count; ++i)
            for (std::size_t what = 0; what < 2; ++what)
                if (from.sizes[i][what][size] != 0)
                    text += fmt::format("  {:>16}  {:8}{:7}{:>14}\n", storage::least_of_size(size), way_name(i),
                                        kinds[what], from.sizes[i][what][size]);
    return text;
}

std::string rows_of_gpus(const page& from)
{
    std::string text =
        from.level < 3 ? "" : fmt::format("  {:8}{:8}{:>14}{:>10}{:>18}\n", "GPU", "way", "ok", "errors", "bytes");
    for (std::size_t gpu = 0; gpu < page::gpus_count; ++gpu)
        for (std::size_t i = 0; i < page::ways_count; ++i)
            if (const auto& it = from.gpus[gpu][i]; it.operations != 0)
                text += fmt::format("  {:<8}{:8}{:>14}{:>10}{:>18}\n", gpu, way_name(i), it.operations - it.errors,
                                    it.errors, it.bytes);
    return text;
}

json ways_json(const page& from)
{
    json made = json::object();
    for (std::size_t i = 0; i < page::ways_count; ++i)
        for (std::size_t what = 0; what < 3; ++what) {
            const page::per_way& way = from.ways[i];
            json& one = made[way_name(i)][kinds[what]];
            one = {{"ok", way.operations[what] - way.errors[what]}, {"errors", way.errors[what]}};
            if (what < 2)
                one["bytes"] = way.bytes[what];
            if (from.level >= 1)
                one.update({{"mean_ns", mean(way, what)}, {"max_ns", way.latency_max_ns[what]}});
        }
    return made;
}

json engine_json(const page& from)
{
    json made{{"level", from.level}, {"ways", ways_json(from)}, {"falls", json::object()}};
    made["registered"] = {{"files", from.registered.files},
                          {"buffers", from.registered.buffers},
                          {"buffer_bytes", from.registered.buffer_bytes}};
    made["io_uring"] = {{"registered_files", from.rings.files},
                        {"registered_buffers", from.rings.buffers},
                        {"refused_registrations", from.rings.refused}};
    for (std::size_t fall = 1; fall < page::falls_count; ++fall)
        made["falls"][to_string(static_cast<file_fall>(fall))] = from.falls[fall];
    json sizes = json::array(), gpus = json::array();
    for (std::size_t i = 0; i < page::ways_count; ++i) {
        for (std::size_t what = 0; what < 2; ++what)
            for (std::size_t size = 0; size < page::sizes_count; ++size)
                if (from.sizes[i][what][size] != 0)
                    sizes.push_back({{"way", way_name(i)},
                                     {"what", kinds[what]},
                                     {"bytes_from", storage::least_of_size(size)},
                                     {"count", from.sizes[i][what][size]}});
        for (std::size_t gpu = 0; gpu < page::gpus_count; ++gpu)
            if (const auto& it = from.gpus[gpu][i]; it.operations != 0)
                gpus.push_back({{"gpu", gpu},
                                {"way", way_name(i)},
                                {"ok", it.operations - it.errors},
                                {"errors", it.errors},
                                {"bytes", it.bytes}});
    }
    if (from.level >= 2)
        made["sizes"] = std::move(sizes);
    if (from.level >= 3)
        made["gpus"] = std::move(gpus);
    return made;
}

} // namespace

std::string stats_to_text(const std::vector<page>& engines)
{
    std::string text;
    for (std::size_t i = 0; i < engines.size(); ++i) {
        text += fmt::format("engine {}, level {}\n", i, engines[i].level);
        text += rows_of_registrations(engines[i]) + rows_of_ways(engines[i]) + rows_of_sizes(engines[i]) +
                rows_of_gpus(engines[i]);
    }
    return text;
}

std::string stats_to_json(const std::vector<page>& engines)
{
    json made{{"engines", json::array()}};
    for (const page& each : engines)
        made["engines"].push_back(engine_json(each));
    return made.dump(2) + '\n';
}

} // namespace weftio::files
