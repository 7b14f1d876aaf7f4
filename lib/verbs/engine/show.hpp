// What `weftio-run --show PID` prints: the devices of a process, and what the program has made at them.
#pragma once

#include <functional>
#include <string>

#include "channel.hpp"
#include "context.hpp"
#include "watcher.hpp"

namespace weftio::verbs {

/// All of a context, its queue pairs as rdma_dump tells them. Blocks as long as a turn for each of them.
std::string show(context& of);

/// A socket in a folder. Who connects gets a text.
class show_socket {
 public:
    /// Makes no socket where the folder takes none. @param text  called in the thread of `events`
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
