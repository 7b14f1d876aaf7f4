#include "report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace weftio::files {

std::string to_text(const std::vector<section>& from)
{
    std::string text;
    for (const section& part : from) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", part.title);
        for (const group& each : part.groups) {
            if (!each.title.empty())
                text += fmt::format("  {}\n", each.title);
            for (const finding& it : each.findings) {
                text += fmt::format("{}{:42} ", each.title.empty() ? "  " : "    ", it.name);
                if (!it.state.empty())
                    text += fmt::format("{:8} ", it.state);
                text += it.found + (it.remedy.empty() ? "" : fmt::format("; to do: {}", it.remedy)) + '\n';
            }
            text += each.text;
        }
    }
    return core::printable(text, "\n"); // names of files and mounts may hold anything
}

std::string to_json(const std::vector<section>& from)
{
    nlohmann::ordered_json made = nlohmann::ordered_json::object();
    for (const section& part : from) {
        nlohmann::ordered_json groups = nlohmann::ordered_json::array();
        for (const group& each : part.groups) {
            nlohmann::ordered_json one{{"title", each.title}, {"findings", nlohmann::ordered_json::array()}};
            for (const finding& it : each.findings)
                one["findings"].push_back(
                    {{"name", it.name}, {"state", it.state}, {"found", it.found}, {"to_do", it.remedy}});
            if (!each.text.empty())
                one["text"] = each.text;
            groups.push_back(std::move(one));
        }
        made[part.title] = std::move(groups);
    }
    // Names of files may have bytes that are no UTF-8.
    return made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

} // namespace weftio::files
