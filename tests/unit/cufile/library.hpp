// libcufile.so.0 as programs open it that look up its functions by name.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cufile.h"

namespace weftio::test {

/// The functions by name. Opened once; a name that is missing ends the suite.
struct cufile_library {
    void* const opened = dlopen(WEFTIO_CUFILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);

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

/// A number as a C program passes it, also one that no enumerator has.
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

/// The driver is open as long as the object is there.
class open_driver {
 public:
    open_driver() { cufile().DriverOpen(); }
    open_driver(const open_driver&) = delete;
    open_driver& operator=(const open_driver&) = delete;
    ~open_driver() { cufile().DriverClose_v2(); }
};

/// A descriptor that is registered as long as the object is there.
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
