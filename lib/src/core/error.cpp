#include "weftio/error.hpp"

#include "core/printable.hpp"
#include "core/undying.hpp"

namespace weftio {

namespace {

class category final : public std::error_category {
 public:
    const char* name() const noexcept override { return "weftio"; }
    std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
            case errc::invalid_argument: return "invalid argument";
            case errc::not_found: return "not found";
            case errc::permission_denied: return "permission denied";
            case errc::in_use: return "in use";
            case errc::not_supported: return "not supported";
            case errc::not_reachable: return "memory not reachable";
            case errc::out_of_memory: return "out of memory";
            case errc::closed: return "closed";
            case errc::device_error: return "device error";
            case errc::timed_out: return "timed out";
        }
        return "unknown error";
    }
};

} // namespace

const std::error_category& error_category() noexcept
{
    return core::undying<category>();
}

std::error_code make_error_code(errc value) noexcept
{
    return {static_cast<int>(value), error_category()};
}

error::error(errc code, std::string_view text, std::string_view lines)
    : std::system_error(make_error_code(code), core::printable(text)), text_(core::printable(text))
{
    if (!lines.empty())
        text_ += '\n' + core::printable(lines, "\n\t");
}

} // namespace weftio
