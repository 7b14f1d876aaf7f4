// The caches of several GPUs' memory beside that of the host's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "registrations/cache.hpp"
#include "registrations/free_hearing.hpp"
#include "registrations/gpu_memory.hpp"

namespace weftio::registrations {

/// - Threads: get(), revoke(), invalidate() and drained() from any; the others are called before the first get().
class gpu_caches {
 public:
    gpu_caches() = default;
    gpu_caches(const gpu_caches&) = delete;
    gpu_caches& operator=(const gpu_caches&) = delete;
    ~gpu_caches();

    /// @throws weftio::error errc::invalid_argument it is no GPU, or known already
    void add(const device& gpu, std::size_t budget_bytes, const registration_cache_options& options,
             const std::vector<registrar>& nics);
    void register_with(const registrar& nic);
    /// Returns a node that the caller holds: of a GPU, or else of the host.
    node& get(const range& bytes, access rights, cache& host);
    void invalidate(const range& bytes);
    std::size_t revoke(const range& bytes);
    bool drained(const range& bytes) noexcept;
    void add_to(registration_cache_counters& sum) const noexcept;

 private:
    struct gpu {
        const gpu_memory* memory; ///< of `registered`
        cache* registered;
        std::unique_ptr<free_hearing> hears{}; ///< nullptr: frees are not seen
    };

    static node* hit(const gpu& at, const range& bytes, access rights);
    node* register_at_gpu(const range& bytes, access rights);

    std::vector<gpu> all_;
};

} // namespace weftio::registrations
