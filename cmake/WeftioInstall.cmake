# What `cmake --install` puts where: libraries, headers, a CMake package and weftio.pc. All of it may be moved afterwards.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weftio)
set_target_properties(weftio PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(weftio_device PROPERTIES EXPORT_NAME device)

install(TARGETS weftio weftio_device EXPORT weftioTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/device/include/weftio ${PROJECT_SOURCE_DIR}/lib/include/weftio
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(PROGRAMS ${PROJECT_SOURCE_DIR}/cmake/weftio-embed DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT weftioTargets NAMESPACE weftio:: DESTINATION ${package_dir})
foreach(flag BUILD_SHARED_LIBS OpenCL_FOUND)
  if(${flag})
    set(WEFTIO_CONFIG_${flag} TRUE)
  else()
    set(WEFTIO_CONFIG_${flag} FALSE)
  endif()
endforeach()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weftioConfig.cmake.in ${PROJECT_BINARY_DIR}/weftioConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_BINDIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftioConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftioConfig.cmake ${PROJECT_BINARY_DIR}/weftioConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/WeftioKernels.cmake
        DESTINATION ${package_dir})

# DPDK by its libraries, not by "Requires: libdpdk": that would force its -march and its forced include on every user.
string(REPLACE ";" " " private_libs "${DPDK_LDFLAGS}")
string(PREPEND private_libs " -lfmt -lboost_context -luring ")
if(OpenCL_FOUND)
  string(APPEND private_libs " -lOpenCL")
endif()
if(BUILD_SHARED_LIBS)
  set(WEFTIO_PC_LIBS_PRIVATE "${private_libs}")
else()
  set(WEFTIO_PC_LIBS "${private_libs} -pthread")
endif()
file(RELATIVE_PATH WEFTIO_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" WEFTIO_PC_TO_PREFIX ${WEFTIO_PC_TO_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/weftio.pc.in ${PROJECT_BINARY_DIR}/weftio.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weftio.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
