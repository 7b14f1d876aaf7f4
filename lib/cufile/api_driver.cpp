#include <cstring>

#include "bar1.hpp"
#include "driver.hpp"

using namespace weftio::cufile;

namespace {

constexpr int api_version = 1140; // 1000 * major + 10 * minor

/// Sets a property that is a size in KiB, whether the driver is open or not.
CUfileError_t set_property(const char* function, CUFileSizeTConfigParameter_t which, std::size_t value)
{
    return guarded(function, [&] {
        const limits within = parameters::limits_of(which);
        require(value % 4 == 0 && value >= within.least && value <= within.most, CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
        driver::here().with_parameters([&](parameters& all) { all.set(which, value); });
    });
}

template <class Parameter, class Value>
CUfileError_t get_parameter(const char* function, Parameter which, Value* value)
{
    return guarded(function, [&] {
        require(value != nullptr, CU_FILE_INVALID_VALUE);
        *value = driver::here().with_parameters([&](const parameters& all) { return all.get(which); });
    });
}

template <class Parameter, class Value>
CUfileError_t set_parameter(const char* function, Parameter which, Value value)
{
    return guarded(function,
                   [&] { driver::here().while_closed([&](parameters& all) { all.set(which, std::move(value)); }); });
}

} // namespace

extern "C" {

const char weftio_cufile_version[] = WEFTIO_VERSION;

CUfileError_t cuFileDriverOpen()
{
    return guarded(__func__, [] { driver::here().open(); });
}

CUfileError_t cuFileDriverClose()
{
    return guarded(__func__, [] { driver::here().close(); });
}

CUfileError_t cuFileDriverClose_v2()
{
    return guarded(__func__, [] { driver::here().close(); });
}

long cuFileUseCount()
{
    long users = 0;
    guarded(__func__, [&] { users = driver::here().users(); });
    return users;
}

CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t* props)
{
    return guarded(__func__, [&] {
        require(props != nullptr, CU_FILE_INVALID_VALUE);
        driver::here().current();
        *props = driver::here().with_parameters([](const parameters& all) { return all.properties(); });
    });
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size)
{
    const CUfileError_t set = set_property(__func__, CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, poll_threshold_size);
    if (set.err != CU_FILE_SUCCESS)
        return set;
    return guarded(__func__, [&] {
        driver::here().with_parameters([&](parameters& all) { all.set(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, poll); });
    });
}

CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size)
{
    return set_property(__func__, CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, max_direct_io_size);
}

CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size)
{
    return set_property(__func__, CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, max_cache_size);
}

CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size)
{
    return set_property(__func__, CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, max_pinned_size);
}

CUfileError_t cuFileGetVersion(int* version)
{
    return guarded(__func__, [&] {
        require(version != nullptr, CU_FILE_INVALID_VALUE);
        *version = api_version;
    });
}

CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t* barSize)
{
    return guarded(__func__, [&] {
        require(barSize && gpuIndex >= 0, CU_FILE_INVALID_VALUE);
        const auto bytes = bar1_bytes("/sys/bus/pci/devices", static_cast<std::size_t>(gpuIndex));
        require(bytes.has_value(), CU_FILE_DEVICE_NOT_FOUND);
        *barSize = *bytes / 1024;
    });
}

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t* value)
{
    return get_parameter(__func__, param, value);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool* value)
{
    return get_parameter(__func__, param, value);
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char* desc_str, int len)
{
    std::string value;
    const CUfileError_t got = get_parameter(__func__, param, &value);
    if (got.err != CU_FILE_SUCCESS)
        return got;
    return guarded(__func__, [&] {
        require(desc_str && len > 0 && value.size() < static_cast<std::size_t>(len), CU_FILE_INVALID_VALUE);
        std::memcpy(desc_str, value.c_str(), value.size() + 1);
    });
}

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
    return set_parameter(__func__, param, value);
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
    return set_parameter(__func__, param, value);
}

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char* desc_str)
{
    if (!desc_str)
        return status(CU_FILE_INVALID_VALUE);
    return guarded(__func__, [&] {
        driver::here().while_closed([&](parameters& all) { all.set(param, std::string(desc_str)); });
    });
}

CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t* min_value, size_t* max_value)
{
    return guarded(__func__, [&] {
        require(min_value && max_value, CU_FILE_INVALID_VALUE);
        const limits within = parameters::limits_of(param);
        *min_value = within.least;
        *max_value = within.most;
    });
}

CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t* size_values, const size_t* count_values, int len)
{
    return guarded(__func__, [&] {
        require(size_values && count_values && len > 0, CU_FILE_INVALID_VALUE);
        parameters::slabs slabs;
        for (int i = 0; i < len; ++i)
            slabs.emplace_back(size_values[i], count_values[i]);
        driver::here().while_closed([&](parameters& all) { all.posix_pool.swap(slabs); });
    });
}

CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t* size_values, size_t* count_values, int len)
{
    return guarded(__func__, [&] {
        require(size_values && count_values, CU_FILE_INVALID_VALUE);
        const auto slabs = driver::here().with_parameters([](const parameters& all) { return all.posix_pool; });
        require(len > 0 && static_cast<std::size_t>(len) == slabs.size(), CU_FILE_INVALID_VALUE);
        for (const auto& [size, count] : slabs) {
            *size_values++ = size;
            *count_values++ = count;
        }
    });
}

} // extern "C"
