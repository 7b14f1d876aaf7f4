// Opens libcufile.so.0 and looks up its functions by name, as some programs do.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cufile.h"

namespace weftio::test {

/// The functions by name. The library is opened once; a missing name ends the test suite. The environment variable
/// WEFTIO_CUFILE names another library.
struct cufile_library {
    void* const opened = dlopen(path(), RTLD_NOW | RTLD_LOCAL);

    static const char* path()
    {
        const char* other = std::getenv("WEFTIO_CUFILE");
        return other ? other : WEFTIO_CUFILE_LIBRARY;
    }

    template <class Function>
    void find(Function& function, const char* name) const
    {
        if (!opened)
            throw std::runtime_error(dlerror());
        function = reinterpret_cast<Function>(dlsym(opened, name));
        if (!function)
            throw std::runtime_error(std::string(name) + " is missing");
    }

#define WEFTIO_CUFILE_FUNCTION(name) decltype(&::cuFile##name) name = nullptr;
#include "functions.def"

    cufile_library()
    {
#define WEFTIO_CUFILE_FUNCTION(name) find(name, "cuFile" #name);
#include "functions.def"
    }
};

/// Converts a number to an enum as a C program does, also if no enumerator has that value.
template <class Enumeration>
Enumeration numbered(unsigned number)
{
    Enumeration made;
    static_assert(sizeof made == sizeof number);
    std::memcpy(&made, &number, sizeof made);
    return made;
}

inline const cufile_library& cufile()
{
    static const cufile_library library;
    return library;
}

/// Keeps the driver open during its lifetime.
class open_driver {
 public:
    open_driver() { cufile().DriverOpen(); }
    open_driver(const open_driver&) = delete;
    open_driver& operator=(const open_driver&) = delete;
    ~open_driver() { cufile().DriverClose_v2(); }
};

/// Keeps a descriptor registered during its lifetime.
class registered_file {
 public:
    explicit registered_file(int descriptor)
    {
        CUfileDescr_t description{};
        description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
        description.handle.fd = descriptor;
        status = cufile().HandleRegister(&handle, &description).err;
    }
    registered_file(const registered_file&) = delete;
    registered_file& operator=(const registered_file&) = delete;
    ~registered_file() { cufile().HandleDeregister(handle); }

    CUfileHandle_t handle = nullptr;
    CUfileOpError status = CU_FILE_INTERNAL_ERROR;
};

} // namespace weftio::test
