// What a test does in a driver's place, under ThreadSanitizer.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEFTIO_TEST_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFTIO_TEST_UNDER_TSAN 1
#endif
#endif

#ifdef WEFTIO_TEST_UNDER_TSAN
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace weftio::test {

/// While it lives, what this thread does to mbufs is as invisible to ThreadSanitizer as what a driver does: they come
/// from the engine and go to it through rings whose other end is DPDK's, and ThreadSanitizer does not see that end.
struct as_a_driver {
#ifdef WEFTIO_TEST_UNDER_TSAN
    as_a_driver()
    {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~as_a_driver()
    {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
#else
    as_a_driver() {} // not trivial: a variable of this type is used
#endif
};

} // namespace weftio::test
