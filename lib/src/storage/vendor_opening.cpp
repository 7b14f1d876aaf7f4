// How NVIDIA's library is found and opened. Weftio's own libcufile.so.0 has lib/cufile/no_vendor_library.cpp instead.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <type_traits>

#include "core/log.hpp"
#include "core/signals.hpp"
#include "core/undying.hpp"
#include "storage/vendor_library.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

// DEEPBIND: its calls of cuFile's functions reach itself, whatever else the process has loaded under these names.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int how = RTLD_NOW | RTLD_LOCAL; // sanitizers refuse DEEPBIND
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int how = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int how = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
#else
constexpr int how = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

[[noreturn]] void refuse(std::string_view path, std::string_view why)
{
    throw error(errc::not_supported, fmt::format("weftio: files: NVIDIA's library {}: {}", path, why));
}

/// Libraries by their path.
struct opened_libraries {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<const vendor_library>> by_path;
};

} // namespace

std::string vendor_library_asked_for(const configuration& by)
{
    const char* named = std::getenv("WEFTIO_CUFILE_LIBRARY");
    return named && *named ? named : by.cufile_library;
}

const vendor_library& vendor_library::open(const std::string& path)
{
    auto& all = core::undying<opened_libraries>();
    const std::lock_guard lock(all.mutex);
    if (!all.by_path.empty() && all.by_path.begin()->second->process_ != ::getpid())
        refuse(path, "was opened before fork() and does not work in the child; create the first file_engine in the "
                     "child, or use another way");
    auto& known = all.by_path[path];
    if (!known)
        try {
            known.reset(new vendor_library(path));
        } catch (...) {
            all.by_path.erase(path);
            throw;
        }
    return *known;
}

vendor_library::vendor_library(const std::string& path) : path_(path), process_(::getpid())
{
    if (path.empty() || path[0] != '/')
        refuse(path.empty() ? "\"\"" : path,
               "is not an absolute path; write one, because a bare name may find Weftio's own library");
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) // a FIFO would be waited for
        refuse(path, "is not a regular file; set WEFTIO_CUFILE_LIBRARY to the library's path");
    const core::signals_blocked for_its_threads;
    void* library = ::dlopen(path.c_str(), how);
    if (!library) {
        const char* why = ::dlerror();
        refuse(
            path,
            fmt::format(
                "cannot be loaded ({}); install the CUDA toolkit, or set WEFTIO_CUFILE_LIBRARY to the library's path",
                why ? why : "unknown reason"));
    }
    if (::dlsym(library, own_library_mark))
        refuse(path, "is Weftio's own libcufile.so.0, which would call itself; set WEFTIO_CUFILE_LIBRARY to NVIDIA's");
    find_functions(library);
    const cufile_abi::status opened = call_.driver_open();
    if (opened.error != 0 && opened.error != cufile_abi::already_open)
        refuse(path, fmt::format("cuFileDriverOpen failed with {} (CUDA: {}); see its log, cufile.log", opened.error,
                                 opened.cuda_error));
    core::log(log_level::info, fmt::format("weftio: files: NVIDIA's library {} is open", path));
}

void vendor_library::find_functions(void* library)
{
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
        if (!function)
            refuse(path_, fmt::format("lacks function {}; install another version of the CUDA toolkit", name));
    };
    find(call_.driver_open, "cuFileDriverOpen");
    find(call_.handle_register, "cuFileHandleRegister");
    find(call_.handle_deregister, "cuFileHandleDeregister");
    find(call_.buffer_register, "cuFileBufRegister");
    find(call_.buffer_deregister, "cuFileBufDeregister");
    find(call_.read, "cuFileRead");
    find(call_.write, "cuFileWrite");
}

} // namespace weftio::storage
