# How every folder of the project is built: one library and one test program each.

find_program(CCACHE ccache)
if(CCACHE)
  # With a precompiled header ccache must be told that its defines and time stamps may be trusted.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
option(SLIPWAY_PCH "Precompile the headers most files include; off shows a missing #include" ON)
option(SLIPWAY_UNITY "Compile the files of a library in batches; off shows a name two files define" ON)
if(SLIPWAY_FUZZ)
  set(SLIPWAY_PCH OFF)
  set(SLIPWAY_UNITY OFF)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(slipway_options INTERFACE)
target_compile_options(slipway_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror
  -ffunction-sections -fdata-sections -fno-plt
  # In a batch the local names of one file meet the globals of another; single files are still checked for them.
  $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,-Wno-subobject-linkage,-Wshadow>)
target_include_directories(slipway_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(slipway_options INTERFACE
  SLIPWAY_VERSION="${PROJECT_VERSION}" SPDLOG_FMT_EXTERNAL)
target_link_libraries(slipway_options INTERFACE Threads::Threads)
# Relocations of a position-independent program are pages that every agent and keeper would hold: packed, 20 kB instead of 650.
target_link_options(slipway_options INTERFACE -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
if(SLIPWAY_SANITIZE)
  # What the sanitizers add makes g++ 12 take empty optionals for ones that are read.
  target_compile_options(slipway_options INTERFACE
    -fsanitize=${SLIPWAY_SANITIZE} -fno-omit-frame-pointer -g1 -Wno-maybe-uninitialized)
  target_link_options(slipway_options INTERFACE -fsanitize=${SLIPWAY_SANITIZE})
endif()

# One precompiled header for every folder, a second for tests: parsing the standard library, fmt and GoogleTest was
# most of a build. Targets reuse them, so all must be compiled with the options above.
if(SLIPWAY_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/pch/empty.cpp.in "")
  configure_file(${CMAKE_BINARY_DIR}/pch/empty.cpp.in ${CMAKE_BINARY_DIR}/pch/empty.cpp COPYONLY)
  # g++ 12 forgets that a precompiled header was a system header: three of its flow analyses then report the library's own code.
  target_compile_options(slipway_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>)
  add_library(slipway_pch OBJECT ${CMAKE_BINARY_DIR}/pch/empty.cpp)
  target_link_libraries(slipway_pch PRIVATE slipway_options)
  target_precompile_headers(slipway_pch PRIVATE <base/precompiled.h>)
  add_library(slipway_test_pch OBJECT ${CMAKE_BINARY_DIR}/pch/empty.cpp)
  target_link_libraries(slipway_test_pch PRIVATE slipway_options GTest::gtest)
  target_precompile_headers(slipway_test_pch PRIVATE <base/precompiled.h> <gtest/gtest.h>)
endif()
function(slipway_precompiled target from)
  if(SLIPWAY_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# slipway_library(base SOURCES a.cpp b.cpp [DEPENDS domain net] [LIBRARIES /path/lib.a] [BATCH 8])
# Makes the static library slipway_<name>, and slipway_<name>_test from every *_test.cpp beside it.
# Its files are compiled BATCH at a time: the templates they share (fmt, JSON, Boost) are instantiated once for all of them.
function(slipway_library name)
  cmake_parse_arguments(arg "" "BATCH" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(slipway_${name} STATIC ${arg_SOURCES})
  if(SLIPWAY_UNITY)
    if(NOT arg_BATCH)
      set(arg_BATCH 8)
    endif()
    set_target_properties(slipway_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
  endif()
  target_link_libraries(slipway_${name} PUBLIC slipway_options)
  slipway_precompiled(slipway_${name} slipway_pch)
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(slipway_${name} PUBLIC slipway_${dependency})
  endforeach()
  target_link_libraries(slipway_${name} PUBLIC ${arg_LIBRARIES})

  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(tests AND NOT SLIPWAY_FUZZ)
    slipway_test(${name} SOURCES ${tests} DEPENDS ${name})
  endif()
endfunction()

# slipway_test(name SOURCES x_test.cpp DEPENDS domain [SERIAL]): one program, each of its cases a ctest entry.
# SERIAL: its programs are told a free port before they listen on it, so no other test may run and take it meanwhile.
function(slipway_test name)
  cmake_parse_arguments(arg "SERIAL" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(slipway_${name}_test ${arg_SOURCES})
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(slipway_${name}_test PRIVATE slipway_${dependency})
  endforeach()
  target_link_libraries(slipway_${name}_test PRIVATE GTest::gtest GTest::gtest_main)
  slipway_precompiled(slipway_${name}_test slipway_test_pch)
  gtest_discover_tests(slipway_${name}_test TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 RUN_SERIAL ${arg_SERIAL} LABELS "${arg_LABELS}")
endfunction()
