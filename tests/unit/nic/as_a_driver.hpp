// Hides the actions of a test that replaces a driver from ThreadSanitizer.
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

/// During its lifetime, ThreadSanitizer ignores this thread's accesses to mbufs, as it does not see those of a driver.
/// Mbufs pass between test and engine through rings whose other end is in DPDK, which ThreadSanitizer does not
/// instrument.
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
    as_a_driver() {} // not trivial, so that a variable of this type is not reported as unused
#endif
};

} // namespace weftio::test
