# The rules of the tests: GoogleTest programs, and text files that lit runs.

find_package(GTest REQUIRED)

# The time of tests goes to libraries and to kernels: what they are compiled to themselves need not be fast. g++ is no
# faster at -O0.
set(slow $<$<CONFIG:Release>:$<IF:$<CXX_COMPILER_ID:Clang>,-O0,-Og>>)
kiln_headers(test-headers LIBS kiln_runtime GTest::gtest OPTIONS ${slow}
  HEADERS ${KILN_PROGRAM_HEADERS} <gtest/gtest.h>)
get_target_property(compiler_headers kiln_tile PRECOMPILE_HEADERS)
kiln_headers(compiler-test-headers LIBS kiln_dsl fmt::fmt GTest::gtest OPTIONS ${slow}
  HEADERS ${compiler_headers} <fmt/format.h> <gtest/gtest.h>)

# kiln_gtest(NAME [ALONE] [COMPILER] [FAST] SOURCES... LIBS...): a GoogleTest program; test/run.py runs its cases, called
# FOLDER/Suite.Case, FOLDER being its place below test/. ALONE: each in a process of its own. COMPILER: it includes MLIR's
# headers. FAST: it computes much itself. The target test-FOLDER builds all of a folder.
function(kiln_gtest name)
  cmake_parse_arguments(ARG "ALONE;COMPILER;FAST" "" "" ${ARGN})
  kiln_program(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE test_devices GTest::gtest GTest::gtest_main fmt::fmt) # fmt's headers were parsed with its defines
  set(headers test-headers)
  if(ARG_COMPILER)
    set(headers compiler-test-headers)
  endif()
  if(NOT ARG_FAST)
    kiln_parse_once(${name} ${headers})
  endif()
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
  set(company together)
  if(ARG_ALONE)
    set(company alone)
  endif()
  kiln_list_test(gtest ${folder} ${PROJECT_BINARY_DIR}/bin/${name} ${company})
endfunction()

# kiln_command_test(NAME COMMAND...): a command that ends with status 0.
function(kiln_command_test name)
  kiln_list_test(command ${name} ${ARGN})
endfunction()

# The list that test/run.py reads, a line a test, its words separated by tabs.
function(kiln_list_test)
  list(JOIN ARGN "\t" line)
  set_property(GLOBAL APPEND_STRING PROPERTY KILN_TESTS "${line}\n")
endfunction()

function(kiln_write_tests)
  get_property(tests GLOBAL PROPERTY KILN_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests.txt CONTENT "lit\t${KILN_LLVM_BIN}/lit\n${tests}" @ONLY)
endfunction()
