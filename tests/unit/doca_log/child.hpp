// Code that runs in a process of its own: settings of the log and of the parser are the process's, and --help ends it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace weftio::test {

struct ended_child {
    int status = -1; ///< exit status; 128 and the signal when one ended it
    std::string out; ///< standard output
    std::string err; ///< standard error
};

inline std::string all_of(FILE* file)
{
    std::string text;
    std::array<char, 4096> part;
    std::rewind(file);
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), file))
        text.append(part.data(), size);
    std::fclose(file);
    return text;
}

/// Runs `body` in a child, which exits with what it returns.
inline ended_child in_child(const std::function<int()>& body)
{
    FILE* out = std::tmpfile();
    FILE* err = std::tmpfile();
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        // Appending: both streams write by descriptor and by stdio.
        fcntl(fileno(out), F_SETFL, O_APPEND);
        fcntl(fileno(err), F_SETFL, O_APPEND);
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        unsetenv("WEFTIO_LOG");
        const int status = body();
        std::fflush(nullptr);
        _exit(status);
    }
    ended_child ended;
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.out = all_of(out);
    ended.err = all_of(err);
    return ended;
}

} // namespace weftio::test
