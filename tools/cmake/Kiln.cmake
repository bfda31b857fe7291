# The few build rules that the folders share: a library, a dialect's generated code, a pass declaration file.

# kiln_library(NAME [EXPORTED] SOURCES... HEADERS... LIBS...): one static library of the project. An exported one, kiln_X,
# is Kiln::X to other projects, here and installed; HEADERS are those that they include, by their places in this tree.
function(kiln_library name)
  cmake_parse_arguments(ARG "EXPORTED" "" "SOURCES;HEADERS;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln>)
  if(NOT PROJECT_IS_TOP_LEVEL) # the project above does not see our include_directories
    target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  endif()
  if(ARG_EXPORTED)
    string(REPLACE kiln_ "" short ${name})
    add_library(Kiln::${short} ALIAS ${name})
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
    install(TARGETS ${name} EXPORT KilnTargets)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    install(FILES ${ARG_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln/${folder})
  endif()
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

# kiln_reference(PAGE FILE GENERATOR): the page build/reference/PAGE.md of what FILE.td documents, by a generator of
# mlir-tblgen, such as -gen-op-doc.
function(kiln_reference page file generator)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.md ${generator})
  set(output ${PROJECT_BINARY_DIR}/reference/${page}.md)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${file}.md ${output}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${file}.md VERBATIM)
  add_custom_target(reference-${page} ALL DEPENDS ${output})
endfunction()

# kiln_program(NAME [INSTALLED] SOURCES... LIBS...): an executable in build/bin.
function(kiln_program name)
  cmake_parse_arguments(ARG "INSTALLED" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  if(ARG_INSTALLED)
    install(TARGETS ${name})
  endif()
endfunction()

# kiln_install_package(): what find_package(Kiln) reads of an installed copy.
include(CMakePackageConfigHelpers)
function(kiln_install_package)
  set(place ${CMAKE_INSTALL_LIBDIR}/cmake/Kiln)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/KilnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/KilnConfig.cmake INSTALL_DESTINATION ${place})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/KilnConfig.cmake ${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake
    DESTINATION ${place})
  install(EXPORT KilnTargets NAMESPACE Kiln:: DESTINATION ${place})
endfunction()
