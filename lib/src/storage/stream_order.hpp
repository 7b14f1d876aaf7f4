// Work in the order of a CUDA stream, or one after another where there is none.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace weftio::storage {

/// A thread that executes tasks one after another; started with the first. Any thread may add. The destructor lets it
/// execute what it has; it may be called by a task.
class task_thread {
 public:
    using task = std::function<void()>;

    task_thread() : shared_(std::make_shared<shared>()) {}
    task_thread(const task_thread&) = delete;
    task_thread& operator=(const task_thread&) = delete;
    ~task_thread();

    /// @throws std::system_error no thread can be made
    void add(task task);
    /// Adds the task and waits until it has ended.
    void run(const task& task);

 private:
    struct shared {
        std::mutex mutex;
        std::condition_variable filled;
        std::deque<task> tasks;
        bool ends = false;
    };
    static void serve(const std::shared_ptr<shared>& shared);

    std::shared_ptr<shared> shared_;
    std::thread thread_;
};

/// Executes `task` on `by` when the stream has come to it, and holds the stream meanwhile. The null stream of a process
/// without a CUDA context is `by` itself. Does not block.
/// @throws what file::read_on() throws
void enqueue(void* stream, const std::shared_ptr<task_thread>& by, task_thread::task task);

} // namespace weftio::storage
