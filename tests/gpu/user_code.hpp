// What user_code.cu offers to code that the C++ compiler compiles.
#pragma once

struct weftio_dev_eth_rxq;
struct user_code;

/// Starts a kernel on a stream of its own. nullptr when CUDA refuses.
user_code* user_code_begin(weftio_dev_eth_rxq* rxq);
/// Waits for the kernel; the bytes of the packets that it received.
unsigned long long user_code_end(user_code* running);
