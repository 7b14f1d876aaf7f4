// A system call that is refused, as a container's seccomp filter does.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <thread>

#include <gtest/gtest.h>

namespace weftio::test {

/// Runs `body` in a thread for which the system call `number` fails with `failure`, and for those that it starts. A
/// child of fork() would do too, but ThreadSanitizer ends one that starts threads when its parent has several, as
/// OpenCL has.
template <class Body>
void where_refused(unsigned number, int failure, Body&& body)
{
    std::thread([&] {
        sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(failure)),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        const sock_fprog filter{4, program};
        ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
        ASSERT_NO_THROW(body());
    }).join();
}

} // namespace weftio::test
