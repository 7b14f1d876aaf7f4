#include "driver.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace weftio::cufile {

namespace {

std::atomic<driver*> current_driver{nullptr};

/// Never destroyed: programs call us from their static objects too. A child of fork() leaves its parent's alone.
driver& make_driver()
{
    static std::mutex mutex;
    [[maybe_unused]] static const int registered =
        pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                       [] {
                           current_driver.store(nullptr, std::memory_order_relaxed);
                           mutex.unlock();
                       });
    const std::lock_guard lock(mutex);
    driver* made = current_driver.load(std::memory_order_relaxed);
    if (!made) {
        made = new driver;
        current_driver.store(made, std::memory_order_release);
    }
    return *made;
}

} // namespace

driver& driver::here()
{
    driver* const made = current_driver.load(std::memory_order_acquire);
    return made ? *made : make_driver();
}

driver::driver()
{
    try {
        if (const std::string path = storage::configuration_path(""); !path.empty())
            parameters_.read(storage::read_configuration(path));
    } catch (...) {
        mistake_ = std::current_exception();
    }
}

void driver::add_user()
{
    if (mistake_)
        std::rethrow_exception(mistake_);
    if (!session_)
        session_ = std::make_shared<session>(parameters_.engine_options());
    ++users_;
}

void driver::open()
{
    const std::lock_guard lock(mutex_);
    add_user();
}

void driver::close()
{
    std::shared_ptr<session> closed;
    {
        const std::lock_guard lock(mutex_);
        require(users_ > 0, CU_FILE_DRIVER_NOT_INITIALIZED);
        if (--users_ == 0)
            closed = std::move(session_);
    }
    if (closed)
        closed->end();
}

long driver::users() const
{
    const std::shared_lock lock(mutex_);
    return users_;
}

std::shared_ptr<session> driver::if_open() const
{
    const std::shared_lock lock(mutex_);
    return session_;
}

std::shared_ptr<session> driver::current()
{
    if (auto open = if_open())
        return open;
    const std::lock_guard lock(mutex_);
    if (!session_)
        add_user();
    return session_;
}

} // namespace weftio::cufile
