# weftio_add_kernels(TARGET [NO_CUDA] FILE...): makes the kernels of header files part of TARGET, where WEFTIO_DEFINE_KERNEL finds
# them: as text for OpenCL, and compiled for CUDA when nvcc is there, unless NO_CUDA says otherwise.
#
# The folder of each FILE is on the include path of TARGET afterwards. FILE may include headers of your own by `#include "..."`,
# from beside it or from the include path of TARGET. What it is made from and by is looked after: a change makes it anew.
find_program(WEFTIO_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)

function(weftio_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_CUDA" "" "")
  set(cuda --no-cuda)
  if(WEFTIO_NVCC AND NOT arg_NO_CUDA)
    set(cuda --nvcc ${WEFTIO_NVCC})
  endif()
  set(folders $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES> $<TARGET_PROPERTY:weftio::device,INTERFACE_INCLUDE_DIRECTORIES>)
  set(folders "$<FILTER:${folders},EXCLUDE,^$>")
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET file FILENAME name)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/weftio-kernels/${target}/${name}.cpp)
    cmake_path(GET output PARENT_PATH made_in)
    file(MAKE_DIRECTORY ${made_in})
    add_custom_command(OUTPUT ${output}
      COMMAND weftio::embed ${cuda} "-I$<JOIN:${folders},;-I>" -MF ${output}.d -o ${output} ${file}
      DEPENDS ${file} $<TARGET_FILE:weftio::embed> DEPFILE ${output}.d COMMENT "Kernels of ${name}"
      COMMAND_EXPAND_LISTS VERBATIM)
    # They share names, and a header that the target has precompiled would be all that takes time in them.
    set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
    target_sources(${target} PRIVATE ${output})
    target_include_directories(${target} PRIVATE ${folder})
  endforeach()
endfunction()
