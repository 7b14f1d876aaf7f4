// Functions of user_code.cu for C++ code.
#pragma once

struct weftio_dev_eth_rxq;
struct user_code;

/// Starts a kernel on a stream of its own. Returns nullptr if CUDA reports an error.
user_code* user_code_begin(weftio_dev_eth_rxq* rxq);
/// Waits for the kernel. Returns the bytes of the packets that it received.
unsigned long long user_code_end(user_code* running);
