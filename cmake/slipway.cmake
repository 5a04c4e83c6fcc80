# How every folder of the project is built: one library and one test program each.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(slipway_options INTERFACE)
target_compile_options(slipway_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror
  -ffunction-sections -fdata-sections -fno-plt)
target_include_directories(slipway_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(slipway_options INTERFACE
  SLIPWAY_VERSION="${PROJECT_VERSION}" FMT_HEADER_ONLY SPDLOG_FMT_EXTERNAL)
target_link_libraries(slipway_options INTERFACE Threads::Threads)
target_link_options(slipway_options INTERFACE -Wl,--gc-sections)
if(SLIPWAY_SANITIZE)
  target_compile_options(slipway_options INTERFACE -fsanitize=${SLIPWAY_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(slipway_options INTERFACE -fsanitize=${SLIPWAY_SANITIZE})
endif()

# slipway_library(base SOURCES a.cpp b.cpp [DEPENDS domain net] [LIBRARIES /path/lib.a])
# Makes the static library slipway_<name>, and slipway_<name>_test from every *_test.cpp beside it.
function(slipway_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(slipway_${name} STATIC ${arg_SOURCES})
  target_link_libraries(slipway_${name} PUBLIC slipway_options)
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
  gtest_discover_tests(slipway_${name}_test TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 RUN_SERIAL ${arg_SERIAL} LABELS "${arg_LABELS}")
endfunction()
