# The few build rules that the folders share: a library, a dialect's generated code, a pass declaration file.

# kiln_library(NAME SOURCES... LIBS...): one static library of the project.
function(kiln_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# kiln_dialect(TARGET FILE DIALECT): declarations and definitions of a dialect and its operations from FILE.td.
function(kiln_dialect target file dialect)
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.h.inc -gen-op-decls -dialect=${dialect})
  mlir_tablegen(${file}.cpp.inc -gen-op-defs -dialect=${dialect})
  mlir_tablegen(${file}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${file}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${file}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${file}Enums.cpp.inc -gen-enum-defs)
  add_public_tablegen_target(${target})
endfunction()

# kiln_passes(TARGET FILE NAME): declarations of the passes in FILE.td.
function(kiln_passes target file name)
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.h.inc -gen-pass-decls -name ${name})
  add_public_tablegen_target(${target})
endfunction()

# kiln_program(NAME SOURCES... LIBS...): an executable in build/bin.
function(kiln_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
endfunction()

# kiln_gtest(NAME SOURCES... LIBS...): a GoogleTest program, each of its tests known to CTest.
include(GoogleTest)
find_package(GTest REQUIRED)
function(kiln_gtest name)
  kiln_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
