# Warnings, sanitizers and the report at configure time, shared by every target.

# Our own code compiles without a warning; system headers (DPDK, Boost) are not ours.
function(weftio_own_code target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion $<$<BOOL:${WEFTIO_WERROR}>:-Werror>)
  if(CMAKE_UNITY_BUILD) # GCC takes a file that is compiled with others for a header
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(WEFTIO_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEFTIO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # Its instrumentation makes GCC 12 take fields inside <regex> and std::function for uninitialized.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PRIVATE -fsanitize=${WEFTIO_SANITIZE})
  endif()
endfunction()

# Makes NAME, from which programs take HEADERS compiled once for all of them: target_precompile_headers(PROGRAM REUSE_FROM NAME).
# A program that does so links LIBRARIES too, whose options the headers are compiled with.
function(weftio_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LIBRARIES")
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "// What is compiled here is the headers.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  weftio_own_code(${name})
  # As programs are compiled, not as libraries: GCC takes no header from the one to the other.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
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
  target_compile_definitions(${name} PRIVATE WEFTIO_VERSION="${PROJECT_VERSION}")
  weftio_own_code(${name})
  target_precompile_headers(${name} REUSE_FROM weftio_program_headers)
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.kernel.h)
  weftio_add_kernels(${name} ${kernels})
endfunction()
