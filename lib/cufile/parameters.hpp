// The parameters of the driver.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "api.hpp"
#include "storage/configuration.hpp"
#include "weftio/options.hpp"

namespace weftio::cufile {

inline constexpr std::size_t size_parameters = CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS + 1;
inline constexpr std::size_t bool_parameters = CUFILE_PARAM_STREAM_MEMOPS_BYPASS + 1;
inline constexpr std::size_t string_parameters = CUFILE_PARAM_LOG_DIR + 1;

struct limits {
    std::size_t least, most;
};

/// A value of each parameter. One thread at a time. Functions throw `failure`.
class parameters {
 public:
    parameters();

    /// Takes over what a configuration file says.
    void read(const storage::configuration& from);

    /// Throws CU_FILE_INVALID_VALUE: no such parameter.
    static limits limits_of(CUFileSizeTConfigParameter_t which);

    std::size_t get(CUFileSizeTConfigParameter_t which) const;
    bool get(CUFileBoolConfigParameter_t which) const;
    const std::string& get(CUFileStringConfigParameter_t which) const;
    /// Throw CU_FILE_INVALID_VALUE: no such parameter, or not a value of it.
    void set(CUFileSizeTConfigParameter_t which, std::size_t value);
    void set(CUFileBoolConfigParameter_t which, bool value);
    void set(CUFileStringConfigParameter_t which, std::string value);

    /// Pairs of a size in KiB and a count.
    using slabs = std::vector<std::pair<std::size_t, std::size_t>>;
    slabs posix_pool{{4, 128}, {1024, 64}, {16384, 64}};

    file_engine_options engine_options() const;
    CUfileDrvProps_t properties() const;

 private:
    std::array<std::size_t, size_parameters> sizes_;
    std::array<bool, bool_parameters> bools_;
    std::array<std::string, string_parameters> strings_;
};

} // namespace weftio::cufile
