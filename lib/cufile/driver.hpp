// The driver of the process: opened by whoever uses it first, closed by its last user.
#pragma once

#include <exception>
#include <memory>
#include <shared_mutex>

#include "parameters.hpp"
#include "session.hpp"

namespace weftio::cufile {

/// Any thread. Functions throw `failure`, or weftio::error: open() and current() for mistakes in the configuration
/// file.
class driver {
 public:
    /// That of the process; a child of fork() has another.
    static driver& here();

    /// Its parameters are those of the configuration file, if there is one without mistakes.
    driver();

    void open();
    /// Throws CU_FILE_DRIVER_NOT_INITIALIZED.
    void close();
    long users() const;

    /// What is open; opens it as one user otherwise.
    std::shared_ptr<session> current();
    /// What is open; null otherwise.
    std::shared_ptr<session> if_open() const;

    /// Calls `use` with the parameters, alone.
    template <class Use>
    auto with_parameters(Use&& use)
    {
        const std::lock_guard lock(mutex_);
        return use(parameters_);
    }
    /// The same. Throws CU_FILE_DRIVER_ALREADY_OPEN.
    template <class Use>
    void while_closed(Use&& use)
    {
        const std::lock_guard lock(mutex_);
        require(users_ == 0, CU_FILE_DRIVER_ALREADY_OPEN);
        use(parameters_);
    }

 private:
    void add_user();

    mutable std::shared_mutex mutex_; ///< guards what follows
    parameters parameters_;
    std::exception_ptr mistake_; ///< in the configuration file
    long users_ = 0;
    std::shared_ptr<session> session_;
};

} // namespace weftio::cufile
