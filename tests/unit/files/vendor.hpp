// The library that stands in for NVIDIA's, for tests of the way `cufile`.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "scratch_file.hpp"
#include "vendor_control.hpp"
#include "weftio/log.hpp"

namespace weftio::test {

inline vendor_control& control_of(const std::string& library)
{
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = opened ? dlsym(opened, "vendor_stand_in") : nullptr;
    if (!function)
        throw std::runtime_error(library + " is no stand-in");
    return *reinterpret_cast<vendor_stand_in_function*>(function)();
}

/// Sets an environment variable during its lifetime.
class environment_variable {
 public:
    environment_variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;
    ~environment_variable() { unsetenv(name_); }

 private:
    const char* name_;
};

/// A file with a text, such as a configuration.
class text_file {
 public:
    explicit text_file(const std::string& text)
    {
        if (write(file_.descriptor(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            throw std::runtime_error("cannot write " + file_.path());
    }
    const std::string& path() const noexcept { return file_.path(); }

 private:
    scratch_file file_;
};

/// A copy of the stand-in, which the process loads as a separate library.
class stand_in_copy {
 public:
    stand_in_copy() : path_(place_.path() + ".so") { std::filesystem::copy_file(WEFTIO_VENDOR_STAND_IN, path_); }
    stand_in_copy(const stand_in_copy&) = delete;
    stand_in_copy& operator=(const stand_in_copy&) = delete;
    ~stand_in_copy() { unlink(path_.c_str()); }
    const std::string& path() const noexcept { return path_; }

 private:
    scratch_file place_;
    std::string path_;
};

/// Collects the lines of the log during its lifetime.
class log_lines {
 public:
    log_lines()
    {
        set_log_sink([this](log_level level, std::string_view line) {
            const std::lock_guard lock(mutex_);
            lines_.emplace_back(level, line);
        });
    }
    log_lines(const log_lines&) = delete;
    log_lines& operator=(const log_lines&) = delete;
    ~log_lines() { set_log_sink({}); }

    /// Number of lines of at least that level that contain the word.
    std::size_t with(std::string_view word, log_level least = log_level::debug)
    {
        const std::lock_guard lock(mutex_);
        std::size_t count = 0;
        for (const auto& [level, line] : lines_)
            count += level >= least && line.find(word) != line.npos;
        return count;
    }

 private:
    std::mutex mutex_;
    std::vector<std::pair<log_level, std::string>> lines_;
};

} // namespace weftio::test
