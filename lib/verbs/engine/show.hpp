// The output of `weftio-run --show PID`: the devices of a process, and the program's objects on them.
#pragma once

#include <functional>
#include <string>

#include "channel.hpp"
#include "context.hpp"
#include "watcher.hpp"

namespace weftio::verbs {

/// Describes all objects of a context; queue pairs as in rdma_dump. Blocks for one engine turn per queue pair.
std::string show(context& of);

/// A socket in a folder. Each client that connects gets a text.
class show_socket {
 public:
    /// Makes no socket if the folder does not permit one. @param text  called in the thread of `events`
    show_socket(watcher& events, const std::string& folder, std::function<std::string()> text);
    show_socket(const show_socket&) = delete;
    show_socket& operator=(const show_socket&) = delete;
    ~show_socket();

 private:
    void answer() const;

    watcher& events_;
    const std::function<std::string()> text_;
    const std::string path_;
    descriptor listening_;
};

} // namespace weftio::verbs
