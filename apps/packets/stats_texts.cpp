#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "site.hpp"
#include "weftio/error.hpp"

namespace weftio::packets {

namespace {

using words = std::vector<std::string>;

std::string json_text(std::string_view text)
{
    return nlohmann::json(text).dump();
}

words split(const std::string& name)
{
    words parts(1);
    for (const char c : name) {
        if (c == '.')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    if (std::ranges::any_of(parts, &std::string::empty))
        throw error(errc::invalid_argument,
                    fmt::format("weftio-packets: counter \"{}\": a part of its name is empty", name));
    return parts;
}

std::string line_of_depth(std::size_t depth)
{
    return '\n' + std::string(2 * depth, ' ');
}

/// Objects nested in each other, written name by name.
class json_objects {
 public:
    /// What stands between the value before and the value of `name`.
    std::string in_front_of(const std::string& name)
    {
        words groups = split(name);
        const std::string last = std::exchange(groups.back(), {});
        groups.pop_back();
        if (!seen_.insert(name).second)
            throw refused(name);
        const std::size_t shared = static_cast<std::size_t>(
            std::mismatch(groups.begin(), groups.end(), open_.begin(), open_.end()).first - groups.begin());
        std::string text = close(shared);
        text += first_ ? "" : ",";
        for (std::size_t at = shared; at < groups.size(); ++at) {
            open_.push_back(groups[at]);
            if (!seen_.insert(fmt::format("{}", fmt::join(open_, "."))).second)
                throw refused(name);
            text += line_of_depth(at + 1) + json_text(groups[at]) + ": {";
        }
        first_ = false;
        return text + line_of_depth(open_.size() + 1) + json_text(last) + ": ";
    }

    std::string end() { return close(0) + "\n}\n"; }

 private:
    static error refused(std::string_view name)
    {
        return {errc::invalid_argument, fmt::format("weftio-packets: counter \"{}\": its name or group is already "
                                                    "used; rename it, or move it next to its group",
                                                    name)};
    }

    std::string close(std::size_t depth)
    {
        std::string text;
        for (; open_.size() > depth; open_.pop_back())
            text += line_of_depth(open_.size()) + '}';
        return text;
    }

    words open_;
    std::set<std::string> seen_; ///< names of values and of groups
    bool first_ = true;
};

} // namespace

std::vector<std::string> stats_texts(const site_options& options)
{
    words texts;
    json_objects objects;
    std::string pending = "{";
    for (const auto& [name, value] : options.facts)
        pending += objects.in_front_of(name) + json_text(value);
    for (const counter_name& each : options.counters)
        texts.push_back(std::exchange(pending, {}) + objects.in_front_of(each.name));
    texts.push_back(pending + objects.end());
    return texts;
}

} // namespace weftio::packets
