// A call of the user that waits for a peer.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "nic/backend.hpp"
#include "weftio/error.hpp"

namespace weftio::connections {

class patient_call {
 public:
    using clock = std::chrono::steady_clock;

    /// @param name  for error texts: "rdma_connect to 10.0.0.1, port 18515"  @param nic  must outlive this
    /// @param timeout  0: no limit
    /// @throws weftio::error errc::invalid_argument the timeout is negative
    patient_call(std::string name, nic::backend& nic, std::chrono::milliseconds timeout, std::function<bool()> stop)
        : name_(std::move(name)), nic_(nic), stop_(std::move(stop)), timeout_(timeout),
          deadline_(timeout.count() == 0 ? clock::time_point::max() : clock::now() + timeout)
    {
        if (timeout.count() < 0)
            fail(errc::invalid_argument, "the timeout is {} ms; set 0 for no limit, or more", timeout.count());
    }

    /// Calls has_come(time), which may block until then, until it returns true. In inline mode, runs the engines
    /// meanwhile.
    /// @return false: the timeout is over
    /// @throws weftio::error errc::closed `stop` has returned true
    template <class HasCome>
    bool wait(HasCome&& has_come)
    {
        using namespace std::chrono_literals;
        for (auto next_stop = clock::now() + 100ms;;) {
            const bool turns = nic_.is_inline();
            if (turns)
                nic_.turn();
            if (has_come(turns ? clock::now() : std::min(deadline_, next_stop)))
                return true;
            if (clock::now() >= deadline_)
                return false;
            if (clock::now() >= next_stop) {
                if (stop_ && stop_())
                    fail(errc::closed, "the application canceled the wait");
                next_stop = clock::now() + 100ms;
            }
        }
    }

    long long timeout_ms() const noexcept { return timeout_.count(); }
    /// @throws weftio::error always: "weftio: NAME: WHY"
    template <class... Arguments>
    [[noreturn]] void fail(errc code, fmt::format_string<Arguments...> why, Arguments&&... arguments) const
    {
        throw error(code, text(fmt::format(why, std::forward<Arguments>(arguments)...)));
    }
    std::string text(const std::string& why) const { return fmt::format("weftio: {}: {}", name_, why); }

 private:
    const std::string name_;
    nic::backend& nic_;
    const std::function<bool()> stop_;
    const std::chrono::milliseconds timeout_;
    const clock::time_point deadline_;
};

} // namespace weftio::connections
