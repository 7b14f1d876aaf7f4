# Warnings, sanitizers and the report at configure time, shared by every target.

# Our own code compiles without a warning; system headers (DPDK, Boost) are not ours.
function(weftio_own_code target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Werror)
  if(WEFTIO_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEFTIO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # Its instrumentation makes GCC 12 take fields inside <regex> and std::function for uninitialized.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PRIVATE -fsanitize=${WEFTIO_SANITIZE})
  endif()
endfunction()

function(weftio_say_what_is_built)
  message(STATUS "weftio: CPU device: yes")
  if(OpenCL_FOUND)
    message(STATUS "weftio: OpenCL device: yes (${OpenCL_LIBRARIES})")
  else()
    message(STATUS "weftio: OpenCL device: no (install ocl-icd-opencl-dev and opencl-headers)")
  endif()
  if(WEFTIO_NVCC)
    message(STATUS "weftio: CUDA kernels: yes (${WEFTIO_NVCC})")
  else()
    message(STATUS "weftio: CUDA kernels: no (nvcc not found; put it on the PATH or set CUDA_HOME)")
  endif()
endfunction()

# A program of NAME.cpp with its kernels NAME.kernel.h beside it.
function(weftio_program name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE weftio fmt::fmt CLI11::CLI11)
  weftio_own_code(${name})
endfunction()
