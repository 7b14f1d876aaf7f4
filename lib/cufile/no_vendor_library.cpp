// Weftio's libcufile.so.0 never calls NVIDIA's: a program that has loaded ours has chosen it, and no call comes back to
// us.
#include "storage/vendor_library.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

std::string vendor_library_asked_for(const configuration&)
{
    return {};
}

const vendor_library& vendor_library::open(const std::string&)
{
    throw error(errc::not_supported, "weftio: libcufile.so.0: Weftio's own library does not call NVIDIA's");
}

} // namespace weftio::storage
