// The keys of a configuration file: what each sets, and which values it takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/configuration.hpp"
#include "storage/json_lines.hpp"

namespace weftio::storage {

/// Applies a parsed file to a configuration. One object for one file.
class configuration_keys {
 public:
    configuration_keys(configuration& to, std::string_view name) : to_(to), name_(name) {}

    /// Throws weftio::error errc::invalid_argument if a value is wrong: one sentence for each.
    void apply(const json_value& root);

 private:
    friend struct key_rules;

    void section(const std::string& name, const json_value& value);
    void key(const std::string& path, const json_value& value);
    void file_system(const std::string& path, const std::string& name, const json_value& value);
    void posix_minimum(const std::string& path, file_system_settings& to, const json_value& value);
    void mount_table(const std::string& path, file_system_settings& to, const json_value& value);
    std::vector<std::string> addresses(const std::string& path, const json_value& value);
    void compare_slabs();

    /// Returns false, and keeps a sentence, if the value is of another kind.
    bool is(const std::string& path, const json_value& value, json_value::kind wanted);
    void wrong(const std::string& path, unsigned line, std::string_view why);
    void remark(const std::string& path, unsigned line, std::string_view why, bool unknown);
    void no_effect(const std::string& path, unsigned line, std::string_view why);
    void unknown(const std::string& path, unsigned line, std::string_view known);

    configuration& to_;
    std::string_view name_;
    std::vector<std::string> mistakes_;
    unsigned slabs_line_ = 0;
};

} // namespace weftio::storage
