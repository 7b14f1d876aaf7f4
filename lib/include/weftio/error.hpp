// The exception of set-up calls.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace weftio {

/// Why a call failed. Every `weftio::error` carries one of these as its `code()`.
enum class errc {
    invalid_argument = 1, ///< a value that calls of this kind never accept
    not_found,            ///< no such file, interface, device or driver
    permission_denied,    ///< the process lacks a permission
    in_use,               ///< another port, process or object holds it
    not_supported,        ///< the device, port or driver cannot do it
    not_reachable,        ///< the NIC, or the CPU, cannot reach memory of that kind
    out_of_memory,
    closed,       ///< a needed object has been closed
    device_error, ///< the device reported a failure
    timed_out,    ///< no response in time
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc value) noexcept;

/// Thrown by set-up calls, never by the data path. `what()` is one sentence: what failed, with which value, why, and
/// what to do; the output of a compiler may follow.
class error : public std::system_error {
 public:
    /// @param text   the sentence; its control characters are written as \n, \t, \x1b, ...
    /// @param lines  output of a tool, appended in lines of its own; its control characters but \n and \t are escaped
    ///               in the same way
    error(errc code, std::string_view text, std::string_view lines = {});
    /// The text alone, without the text of the error category.
    const char* what() const noexcept override { return text_.c_str(); }

 private:
    std::string text_;
};

} // namespace weftio

template <>
struct std::is_error_code_enum<weftio::errc> : std::true_type {};
