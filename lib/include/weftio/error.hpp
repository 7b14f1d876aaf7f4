// What set-up throws.
#pragma once

#include <string>
#include <system_error>

namespace weftio {

/// Why a call failed. Every `weftio::error` carries one of these as its `code()`.
enum class errc {
    invalid_argument = 1, ///< a value no call of this kind can accept
    not_found,            ///< no such file, interface, device or driver
    permission_denied,    ///< the process may not do it
    in_use,               ///< somebody else holds it
    not_supported,        ///< this device, port or driver cannot
    not_reachable,        ///< the NIC, or the CPU, cannot reach memory of that kind
    out_of_memory,
    closed,       ///< the object it needs has been closed
    device_error, ///< the device reported a failure of its own
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc value) noexcept;

/// Thrown by set-up calls, never by the data path. `what()` is one sentence: what failed, with which value, why, what
/// to do.
class error : public std::system_error {
 public:
    error(errc code, std::string text);
    /// The sentence, without the category's own words behind it.
    const char* what() const noexcept override { return text_.c_str(); }

 private:
    std::string text_;
};

} // namespace weftio

template <>
struct std::is_error_code_enum<weftio::errc> : std::true_type {};
