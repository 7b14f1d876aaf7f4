// WEFTIO_TEST_SANITIZED: the program runs under a sanitizer that has an allocator of its own.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFTIO_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEFTIO_TEST_SANITIZED 1
#endif
#endif
