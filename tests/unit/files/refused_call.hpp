// Makes a system call fail, as the seccomp filter of a container does.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <thread>

#include <gtest/gtest.h>

namespace weftio::test {

/// Runs `body` in a thread. In it, and in threads that it starts, the system call `number` fails with `failure`. This
/// is not a child of fork(), because ThreadSanitizer ends a child that starts threads if its parent has several
/// threads, as with OpenCL.
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
