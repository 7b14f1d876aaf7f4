// What the way `direct` needs, what is missing, and which way is chosen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/configuration.hpp"
#include "storage/recognition.hpp"
#include "weftio/file_result.hpp"

namespace weftio::storage {

/// One thing that must be there.
struct requirement {
    enum class state : std::uint8_t { present, missing, unknown };

    std::string name{};
    state is = state::unknown;
    std::string found{};   ///< what is there
    std::string remedy{};  ///< what to do; empty if it is present
    bool of_mount = false; ///< differs from mount to mount; else the machine's
};

std::string_view to_string(requirement::state is) noexcept;

/// A set of requirements by which a drive reaches memory of a GPU.
struct direct_option {
    std::string name{}; ///< "PCI P2PDMA", "nvidia-fs", "dma-buf"
    std::vector<requirement> needs{};

    /// The first requirement that is not present; null: all are.
    const requirement* missing() const noexcept;
};

/// The ways to `direct`: P2PDMA of the kernel (CUDA 12.8 and later), nvidia-fs.ko, dma-buf by io_uring.
std::vector<direct_option> direct_options(const system_facts& system, const place_facts& place);

/// What the rules look at besides a machine and a mount.
struct way_conditions {
    bool device_memory = false;  ///< the memory is a GPU's
    bool managed_memory = false; ///< pages migrate: never direct
    bool uring = true;           ///< io_uring is allowed
    std::string uring_why{};     ///< why it is not
    bool vendor_library = false; ///< NVIDIA's library is open
    std::string vendor_why{};    ///< why it is not
};

/// A row: a way, whether it may be taken, and why.
struct rule {
    file_way way = file_way::none;
    bool applies = false;
    std::string why{}; ///< a sentence without its end
};

/// The ways in order: the first that applies is taken. None does if the memory is a GPU's and the configuration denies
/// the compatible ways.
class rules {
 public:
    rules(const system_facts& system, const place_facts& place, const configuration& by, const way_conditions& when);

    const std::vector<rule>& all() const noexcept { return rows_; }
    const rule* chosen() const noexcept; ///< null: none

 private:
    void direct(const system_facts& system, const place_facts& place, const configuration& by,
                const way_conditions& when);
    void compatible(file_way way, bool possible, const std::string& why, const configuration& by,
                    const way_conditions& when);

    std::vector<rule> rows_;
};

/// A table: one line for each way.
std::string to_text(const rules& from);

} // namespace weftio::storage
