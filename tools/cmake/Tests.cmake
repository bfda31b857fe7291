# The rules of the tests: GoogleTest programs, and text files that lit runs.

# What every test sees: caches inside the build folder.
set(KILN_TEST_ENVIRONMENT
  KILN_CACHE=${PROJECT_BINARY_DIR}/test-cache XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache/xdg)

include(GoogleTest)
find_package(GTest REQUIRED)

# kiln_parse_once(NAME): the headers of GoogleTest, fmt and the standard library, which take half of a test's time to
# compile, are parsed once, for a program that does nothing.
function(kiln_parse_once name)
  if(NOT TARGET test-headers)
    set(source ${PROJECT_BINARY_DIR}/test-headers.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(test-headers EXCLUDE_FROM_ALL ${source})
    target_link_libraries(test-headers PRIVATE fmt::fmt GTest::gtest)
    target_compile_options(test-headers PRIVATE ${ARGN})
    target_precompile_headers(test-headers PRIVATE <fmt/format.h> <gtest/gtest.h> <algorithm> <array> <bit> <cmath>
      <filesystem> <fstream> <functional> <map> <memory> <numeric> <optional> <random> <span> <sstream> <string> <thread>
      <vector>)
  endif()
  target_link_libraries(${name} PRIVATE fmt::fmt) # defines what the headers were parsed with: else they are parsed again
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} REUSE_FROM test-headers)
endfunction()

# kiln_gtest(NAME SOURCES... LIBS...): a GoogleTest program; each of its tests is a CTest test called FOLDER/Suite.Test,
# FOLDER being its place below test/, by which tools/check picks it. The target test-FOLDER builds all of a folder.
function(kiln_gtest name)
  kiln_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main)
  kiln_parse_once(${name} $<$<CONFIG:Release>:-Og>) # their time goes to libraries and to kernels
  add_dependencies(${name} cuda_stub_simulating) # whose GPU is one of the devices
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR})
  set(place ${folder})
  while(place) # test-runtime builds what test-runtime-semantics does, too
    string(REPLACE / - group test-${place})
    if(NOT TARGET ${group})
      add_custom_target(${group})
    endif()
    add_dependencies(${group} ${name})
    cmake_path(GET place PARENT_PATH place)
  endwhile()
  gtest_discover_tests(${name} TEST_PREFIX ${folder}/ DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 600 ENVIRONMENT "${KILN_TEST_ENVIRONMENT}")
endfunction()

# kiln_lit(FOLDER [SUFFIXES...]): every .mlir and .test file (or other SUFFIXES) of FOLDER and below is one lit test and
# one CTest test, called after its path below test/. Folders called inputs are left out. A new file is seen by the next
# build.
function(kiln_lit folder)
  set(suffixes ${ARGN})
  if(NOT suffixes)
    set(suffixes .mlir .test)
  endif()
  cmake_path(ABSOLUTE_PATH folder NORMALIZE)
  list(TRANSFORM suffixes PREPEND ${folder}/*)
  file(GLOB_RECURSE files RELATIVE ${PROJECT_SOURCE_DIR}/test CONFIGURE_DEPENDS ${suffixes})
  list(FILTER files EXCLUDE REGEX "(^|/)inputs/")
  foreach(file ${files})
    # Not the times: all lits of a run would read and write them in one file.
    add_test(NAME ${file} COMMAND ${KILN_LLVM_BIN}/lit -v -j1 --skip-test-time-recording ${PROJECT_BINARY_DIR}/test/${file})
    set_tests_properties(${file} PROPERTIES TIMEOUT 600 SKIP_REGULAR_EXPRESSION "UNSUPPORTED: kiln"
      ENVIRONMENT "${KILN_TEST_ENVIRONMENT}")
  endforeach()
endfunction()
