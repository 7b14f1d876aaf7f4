#include "storage/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

using kind = topology_node::kind;

/// Words of a line; a comment ends it.
std::vector<std::string> words_of(std::string_view line)
{
    std::vector<std::string> words;
    line = line.substr(0, line.find('#'));
    while (true) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos)
            return words;
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.emplace_back(line.substr(begin, end - begin));
        line.remove_prefix(end);
    }
}

/// Reads the text form, line by line.
class text_reader {
 public:
    explicit text_reader(std::string_view name) : name_(name) {}

    void line(std::string_view text)
    {
        ++line_;
        const std::vector<std::string> words = words_of(text);
        if (words.empty() || (made_.nodes().empty() && words == std::vector<std::string>{"PLATFORM"}))
            return;
        if (words[0] == "nvlink")
            return nvlink(words);
        const std::size_t begin = text.find_first_not_of(' ');
        if (made_.nodes().empty() && words[0] == to_string(kind::root))
            indent_ = begin;
        const std::size_t spaces = begin - std::min(begin, indent_), depth = spaces / 2;
        topology_node node = node_of(words);
        if (begin < indent_ || spaces % 2 != 0 || depth > open_.size() || (depth == 0) != (node.what == kind::root))
            wrong(words[0], "has the wrong indentation; all roots have the same, and each level two spaces more");
        open_.resize(depth);
        if (depth > 0) {
            node.parent = open_.back();
            if (made_.nodes()[open_.back()].what >= kind::gpu)
                wrong(node.name, "is below a device; only root, port and switch have devices below them");
        }
        open_.push_back(made_.add(std::move(node)));
    }
    topology take() { return std::move(made_); }

 private:
    [[noreturn]] void wrong(std::string_view what, std::string_view why) const
    {
        throw error(errc::invalid_argument, fmt::format("weftio: {}:{}: {}: {}", name_, line_, what, why));
    }

    topology_node node_of(const std::vector<std::string>& words) const
    {
        topology_node node;
        for (kind each : {kind::root, kind::port, kind::bridge, kind::gpu, kind::nic, kind::drive})
            if (to_string(each) == words[0])
                node.what = each;
        if (to_string(node.what) != words[0])
            wrong(words[0], "is unknown; begin a line with root, port, switch, gpu, nic, drive or nvlink");
        if (words.size() < 2)
            wrong(words[0], "has no name");
        node.name = words[1];
        if (made_.find(node.name))
            wrong(node.name, "is defined twice");
        if (node.what == kind::port || node.what == kind::bridge)
            node.address = node.name;
        for (std::size_t i = 2; i < words.size(); i += 2)
            set(node, words[i], i + 1 < words.size() ? words[i + 1] : "");
        return node;
    }

    void set(topology_node& node, const std::string& key, const std::string& value) const
    {
        const char* end = value.data() + value.size();
        if (value.empty())
            wrong(key, "has no value");
        if (key == "pci")
            node.address = value;
        else if (key == "ip")
            node.ip.push_back(value);
        else if (key != "numa" || std::from_chars(value.data(), end, node.numa).ptr != end)
            wrong(key + ' ' + value, "write pci ADDRESS, ip ADDRESS or numa NUMBER");
    }

    void nvlink(const std::vector<std::string>& words)
    {
        std::vector<std::size_t> ends;
        for (std::size_t i = 1; i < words.size(); ++i) {
            const auto found = made_.find(words[i]);
            if (!found || made_.nodes()[*found].what != kind::gpu)
                wrong(words[i], "is not a GPU of an earlier line");
            ends.push_back(*found);
        }
        if (ends.size() != 2 || ends[0] == ends[1])
            wrong("nvlink", "needs two different GPUs");
        made_.connect(ends[0], ends[1]);
    }

    std::string_view name_;
    unsigned line_ = 0;
    topology made_;
    std::vector<std::size_t> open_; ///< from the root to the last line's node
    std::size_t indent_ = 0;        ///< spaces in front of a root
};

/// Appends the lines of `node` and of what is below it.
void append(std::string& text, const topology& from, std::size_t node, std::size_t depth)
{
    const topology_node& it = from.nodes()[node];
    text += fmt::format("{:{}}{} {}", "", 2 * depth, to_string(it.what), it.name);
    if (!it.address.empty() && it.address != it.name)
        text += " pci " + it.address;
    for (const std::string& ip : it.ip)
        text += " ip " + ip;
    if (it.numa >= 0)
        text += fmt::format(" numa {}", it.numa);
    text += '\n';
    for (std::size_t i = 0; i < from.nodes().size(); ++i)
        if (from.nodes()[i].parent == node)
            append(text, from, i, depth + 1);
}

} // namespace

std::string_view to_string(topology_node::kind what) noexcept
{
    switch (what) {
        case kind::root: return "root";
        case kind::port: return "port";
        case kind::bridge: return "switch";
        case kind::gpu: return "gpu";
        case kind::nic: return "nic";
        case kind::drive: return "drive";
    }
    return "unknown";
}

std::size_t topology::add(topology_node node)
{
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
}

void topology::connect(std::size_t gpu, std::size_t other)
{
    nvlinks_.insert(std::minmax(gpu, other));
}

void topology::add_addresses(std::size_t nic, const std::vector<std::string>& ip)
{
    nodes_[nic].ip.insert(nodes_[nic].ip.end(), ip.begin(), ip.end());
}

bool topology::has_nvlink(std::size_t gpu, std::size_t other) const noexcept
{
    return nvlinks_.count(std::minmax(gpu, other)) != 0;
}

std::optional<std::size_t> topology::find(std::string_view name) const
{
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const topology_node& node = nodes_[i];
        if (node.name == name || (!name.empty() && node.address == name) ||
            std::find(node.ip.begin(), node.ip.end(), name) != node.ip.end())
            return i;
    }
    return {};
}

std::vector<std::size_t> topology::all(topology_node::kind what) const
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].what == what)
            found.push_back(i);
    return found;
}

std::vector<std::size_t> topology::path_of(std::size_t node) const
{
    std::vector<std::size_t> path{node};
    while (nodes_[path.back()].parent)
        path.push_back(*nodes_[path.back()].parent);
    std::reverse(path.begin(), path.end());
    return path;
}

std::size_t topology::tree_of(std::size_t node) const
{
    const std::vector<std::size_t> path = path_of(node);
    return path.size() > 1 ? path[1] : path[0];
}

std::size_t topology::common(std::size_t node, std::size_t other) const
{
    const std::vector<std::size_t> a = path_of(node), b = path_of(other);
    const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(ends.first - a.begin());
}

bool topology::share_tree(std::size_t node, std::size_t other) const
{
    return common(node, other) > 1;
}

int topology::numa_of(std::size_t node) const
{
    for (std::optional<std::size_t> at = node; at; at = nodes_[*at].parent)
        if (nodes_[*at].numa >= 0)
            return nodes_[*at].numa;
    return -1;
}

topology parse_topology(std::string_view text, std::string_view name)
{
    text_reader reader(name);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        reader.line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return reader.take();
}

std::string to_text(const topology& from)
{
    std::string text;
    for (std::size_t i = 0; i < from.nodes().size(); ++i)
        if (!from.nodes()[i].parent)
            append(text, from, i, 0);
    for (const auto& [gpu, other] : from.nvlinks())
        text += fmt::format("nvlink {} {}\n", from.nodes()[gpu].name, from.nodes()[other].name);
    return text;
}

} // namespace weftio::storage
