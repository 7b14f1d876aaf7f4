// JSON with the line of each value, so that a message can name the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weftio::storage {

/// A JSON value and where it stands.
struct json_value {
    enum class kind : std::uint8_t { null, boolean, integer, huge, fraction, text, list, object };

    kind what = kind::null;
    unsigned line = 0; ///< counts from 1; of a member: the line of its key
    bool boolean = false;
    std::int64_t integer = 0;
    double fraction = 0;
    std::string text{};
    std::vector<json_value> items{};                           ///< of a list
    std::vector<std::pair<std::string, json_value>> members{}; ///< of an object, in the order of the file
};

/// "a list", "true or false", "a number": for messages.
std::string_view name_of(json_value::kind what) noexcept;

/// Parses JSON. Comments (`//` and `/* */`) and a comma behind the last item are allowed.
///
/// @param name  of the file, for messages
/// @throws weftio::error errc::invalid_argument  not JSON, nested deeper than 32, or a key twice in one object
json_value parse_json(std::string_view text, std::string_view name);

} // namespace weftio::storage
