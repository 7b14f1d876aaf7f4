#include "parameters.hpp"

#include <algorithm>
#include <string_view>

namespace weftio::cufile {

namespace {

struct size_parameter {
    std::size_t value;
    limits within;
};

constexpr std::size_t most_32_bits = ~0U;

/// In the order of CUFileSizeTConfigParameter_t.
constexpr std::array<size_parameter, size_parameters> sizes{{
    {0, {0, 3}},                                     // profile.stats
    {file_engine_options::default_depth, {1, 4096}}, // execution.max_io_queue_depth
    {0, {0, 256}},                                   // execution.max_io_threads
    {1024, {4, most_32_bits}},                       // execution.min_io_threshold_size_kb
    {0, {0, 1024}},                                  // execution.max_request_parallelism
    {16384, {64, 16384}},                            // properties.max_direct_io_size_kb
    {131072, {0, 1U << 27}},                         // properties.max_device_cache_size_kb
    {1024, {64, 16384}},                             // properties.per_buffer_cache_size_kb
    {33554432, {0, 1U << 27}},                       // properties.max_device_pinned_mem_size_kb
    {128, {1, 65536}},                               // properties.io_batchsize
    {4, {4, most_32_bits}},                          // properties.poll_mode_max_size_kb
    {5, {1, most_32_bits}},                          // properties.batch_io_timeout_ms
}};

/// In the order of CUFileBoolConfigParameter_t.
constexpr std::array<bool, bool_parameters> bools{
    false, // properties.use_poll_mode
    true,  // properties.allow_compat_mode
    false, // properties.force_compat_mode
    false, // fs.misc.api_check_aggressive
    true,  // execution.parallel_io
    false, // profile.nvtx
    true,  // properties.allow_system_memory
    false, // properties.use_pcip2pdma
    true,  // properties.prefer_iouring
    false, // properties.force_odirect_mode
    false, // properties.skip_topology_detection
    false, // properties.stream_memops_bypass
};

template <std::size_t N, class Parameter>
std::size_t index_of(Parameter which)
{
    const auto index = static_cast<std::size_t>(static_cast<unsigned>(which));
    require(index < N, CU_FILE_INVALID_VALUE);
    return index;
}

bool is_log_level(std::string_view name)
{
    constexpr std::array<std::string_view, 6> names{"ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

parameters::parameters() : bools_(bools), strings_{"ERROR", "", ""}
{
    for (std::size_t i = 0; i < size_parameters; ++i)
        sizes_[i] = sizes[i].value;
}

void parameters::read(const storage::configuration& from)
{
    const auto take = [&](CUFileSizeTConfigParameter_t which, std::uint64_t value) {
        const limits within = limits_of(which);
        set(which, std::clamp<std::size_t>(value, within.least, within.most));
    };
    take(CUFILE_PARAM_PROFILE_STATS, from.statistics_level);
    take(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, from.io_depth);
    take(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, from.io_threads);
    take(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, from.max_direct_io_bytes / 1024);
    take(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, from.max_device_cache_bytes / 1024);
    take(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, from.max_device_pinned_bytes / 1024);
    take(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, from.poll_mode_max_bytes / 1024);
    set(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, from.use_poll_mode);
    set(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, from.allow_compat_mode);
    set(CUFILE_PARAM_FORCE_COMPAT_MODE, from.force_compat_mode);
    set(CUFILE_PARAM_LOGGING_LEVEL, std::string(storage::to_string(from.log.value_or(storage::logging_level::error))));
    posix_pool.clear();
    for (std::size_t i = 0; i < from.slab_bytes.size() && i < from.slab_counts.size(); ++i)
        posix_pool.emplace_back(from.slab_bytes[i] / 1024, from.slab_counts[i]);
}

limits parameters::limits_of(CUFileSizeTConfigParameter_t which)
{
    return sizes[index_of<size_parameters>(which)].within;
}

std::size_t parameters::get(CUFileSizeTConfigParameter_t which) const
{
    return sizes_[index_of<size_parameters>(which)];
}

bool parameters::get(CUFileBoolConfigParameter_t which) const
{
    return bools_[index_of<bool_parameters>(which)];
}

const std::string& parameters::get(CUFileStringConfigParameter_t which) const
{
    return strings_[index_of<string_parameters>(which)];
}

void parameters::set(CUFileSizeTConfigParameter_t which, std::size_t value)
{
    const limits within = limits_of(which);
    require(value >= within.least && value <= within.most, CU_FILE_INVALID_VALUE);
    sizes_[which] = value;
}

void parameters::set(CUFileBoolConfigParameter_t which, bool value)
{
    bools_[index_of<bool_parameters>(which)] = value;
}

void parameters::set(CUFileStringConfigParameter_t which, std::string value)
{
    const std::size_t index = index_of<string_parameters>(which);
    require(which != CUFILE_PARAM_LOGGING_LEVEL || is_log_level(value), CU_FILE_INVALID_VALUE);
    strings_[index] = std::move(value);
}

file_engine_options parameters::engine_options() const
{
    file_engine_options options;
    options.depth = static_cast<unsigned>(get(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH));
    if (const std::size_t threads = get(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS); threads != 0)
        options.threads = static_cast<unsigned>(threads);
    options.strict = !get(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE);
    options.reopen_direct = get(CUFILE_PARAM_FORCE_ODIRECT_MODE);
    if (get(CUFILE_PARAM_FORCE_COMPAT_MODE))
        options.only = file_way::posix;
    return options;
}

CUfileDrvProps_t parameters::properties() const
{
    const auto small = [&](CUFileSizeTConfigParameter_t which) { return static_cast<unsigned>(get(which)); };
    CUfileDrvProps_t props{};
    props.nvfs.poll_thresh_size = get(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB);
    props.nvfs.max_direct_io_size = get(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB);
    if (get(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE))
        props.nvfs.dcontrolflags |= 1U << CU_FILE_USE_POLL_MODE;
    if (get(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE))
        props.nvfs.dcontrolflags |= 1U << CU_FILE_ALLOW_COMPAT_MODE;
    props.fflags =
        1U << CU_FILE_BATCH_IO_SUPPORTED | 1U << CU_FILE_STREAMS_SUPPORTED | 1U << CU_FILE_PARALLEL_IO_SUPPORTED;
    props.max_device_cache_size = small(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB);
    props.per_buffer_cache_size = small(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB);
    props.max_device_pinned_mem_size = small(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB);
    props.max_batch_io_size = small(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE);
    props.max_batch_io_timeout_msecs = small(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS);
    return props;
}

} // namespace weftio::cufile
