// Pins a measurement to a core.
#pragma once

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <stdexcept>

namespace weftio::bench {

/// The calling thread, and the threads and kernels that it starts, run on one core until the end of the scope.
class on_core {
 public:
    explicit on_core(int core)
    {
        cpu_set_t wanted;
        CPU_ZERO(&wanted);
        CPU_SET(core, &wanted);
        pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
        if (pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) != 0)
            throw std::runtime_error(
                fmt::format("this process may not run on core {}; name other cores with --cores", core));
    }
    on_core(const on_core&) = delete;
    on_core& operator=(const on_core&) = delete;
    ~on_core() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
    cpu_set_t before_;
};

} // namespace weftio::bench
