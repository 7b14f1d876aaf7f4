// What `--check` found: sections of lines, as text and as JSON.
#pragma once

#include <string>
#include <vector>

namespace weftio::files {

/// One finding.
struct finding {
    std::string name{};
    std::string state{}; ///< "present", "missing", "unknown"; empty: a plain value
    std::string found{};
    std::string remedy{}; ///< what to do; empty: nothing
};

/// A part of a section: the findings of one mount, or those without a title.
struct group {
    std::string title{};
    std::vector<finding> findings{};
    std::string text{}; ///< lines as they are, for a tree
};

struct section {
    std::string title{}; ///< "ENVIRONMENT"
    std::vector<group> groups{};
};

/// Sections in their order, each finding one line.
std::string to_text(const std::vector<section>& from);
/// The same as JSON: an object of sections, each a list of groups.
std::string to_json(const std::vector<section>& from);

} // namespace weftio::files
