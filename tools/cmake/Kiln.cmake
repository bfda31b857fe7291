# The few build rules that the folders share: a library, a dialect's generated code, a pass declaration file.

# kiln_library(NAME [EXPORTED] [TOGETHER] SOURCES... HEADERS... LIBS... [PARSED SET] [APART SOURCES...]): one library of
# the project. An exported one, kiln_X, is Kiln::X to other projects, here and installed; HEADERS are those that they
# include, as <kiln/FOLDER/HEADER.h>. It is a shared library, so that a change of it links no program anew; as a part of
# another project it is static. SET is of kiln_headers. TOGETHER: up to eight sources of a folder are one for the compiler,
# except for those APART, where headers take most of its time.
function(kiln_library name)
  cmake_parse_arguments(ARG "EXPORTED;TOGETHER" "PARSED" "SOURCES;HEADERS;LIBS;DEPENDS;APART" ${ARGN})
  set(kind STATIC)
  if(ARG_EXPORTED AND PROJECT_IS_TOP_LEVEL)
    set(kind SHARED)
  endif()
  if(ARG_TOGETHER AND KILN_UNITY)
    kiln_group_sources(ARG_SOURCES ${name} "${ARG_APART}" ${ARG_SOURCES})
  endif()
  add_library(${name} ${kind} ${ARG_SOURCES})
  if(kind STREQUAL SHARED)
    target_link_options(${name} PRIVATE LINKER:-Bsymbolic-functions) # calls within the library are direct
    set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "") # which would tell it from those that share its headers
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT PROJECT_IS_TOP_LEVEL) # the project above does not see our include_directories
    target_include_directories(${name} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
  endif()
  if(ARG_EXPORTED)
    string(REPLACE kiln_ "" short ${name})
    add_library(Kiln::${short} ALIAS ${name})
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
    install(TARGETS ${name} EXPORT KilnTargets)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    list(TRANSFORM ARG_HEADERS PREPEND ${folder}/)
    set_property(GLOBAL APPEND PROPERTY KILN_HEADERS ${ARG_HEADERS})
    string(REGEX REPLACE "/.*" "" top ${folder}) # <kiln/…> is found in the tree, too
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/kiln)
    file(RELATIVE_PATH target ${PROJECT_BINARY_DIR}/include/kiln ${PROJECT_SOURCE_DIR}/${top})
    file(CREATE_LINK ${target} ${PROJECT_BINARY_DIR}/include/kiln/${top} SYMBOLIC)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_PARSED)
    kiln_parse_once(${name} ${ARG_PARSED})
  endif()
endfunction()

# kiln_group_sources(RESULT TARGET APART SOURCES...): the sources, where up to eight of a folder are included by one that is
# written here. It names them from the root (CMake's own would name this checkout), so that ccache knows it in another.
function(kiln_group_sources result target apart)
  file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(sources "")
  set(groups "")
  foreach(source ${ARGN})
    if(IS_ABSOLUTE ${source} OR source IN_LIST apart) # generated ones stay alone
      list(APPEND sources ${source})
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    math(EXPR number "(${count_${folder}} - 1) / 8")
    set(group ${target}_${folder}_${number})
    list(APPEND groups ${group})
    string(APPEND text_${group} "#include \"${place}/${source}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    file(CONFIGURE OUTPUT ${group}.cpp CONTENT "${text_${group}}" @ONLY)
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/${group}.cpp)
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# kiln_dialect(TARGET FILE DIALECT): declarations and definitions of a dialect and its operations from FILE.td, and of
# their interfaces from Interfaces.td.
function(kiln_dialect target file dialect)
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.h.inc -gen-op-decls -dialect=${dialect})
  mlir_tablegen(${file}.cpp.inc -gen-op-defs -dialect=${dialect})
  mlir_tablegen(${file}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${file}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${file}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${file}Enums.cpp.inc -gen-enum-defs)
  set(LLVM_TARGET_DEFINITIONS Interfaces.td)
  mlir_tablegen(Interfaces.h.inc -gen-op-interface-decls)
  mlir_tablegen(Interfaces.cpp.inc -gen-op-interface-defs)
  add_public_tablegen_target(${target})
endfunction()

# kiln_passes(TARGET FILE FOLDER...): for each folder, declarations of its passes in FILE.td, as FOLDER/FILE.h.inc (those
# of tile/, which every target runs, as FILE.h.inc), and all of them as the page build/reference/passes.md.
function(kiln_passes target file)
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  foreach(folder ${ARGN})
    string(TOUPPER ${folder} part)
    string(SUBSTRING ${folder} 0 1 initial)
    string(TOUPPER ${initial} initial)
    string(SUBSTRING ${folder} 1 -1 rest)
    set(output ${folder}/${file})
    if(folder STREQUAL tile)
      set(output ${file})
    endif()
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
    mlir_tablegen(${output}.h.inc -gen-pass-decls -name ${initial}${rest} -DKILN_${part}_PASSES)
    mlir_tablegen(${folder}/${file}.md -gen-pass-doc -DKILN_${part}_PASSES)
    list(APPEND pages ${folder}/${file}.md)
  endforeach()
  add_public_tablegen_target(${target})
  kiln_reference_page(passes ${pages})
endfunction()

# kiln_reference(PAGE GENERATOR FILE...): the page build/reference/PAGE.md of what each FILE.td documents, by a generator of
# mlir-tblgen, such as -gen-op-doc.
function(kiln_reference page generator)
  foreach(file ${ARGN})
    set(LLVM_TARGET_DEFINITIONS ${file}.td)
    mlir_tablegen(${file}.md ${generator})
    list(APPEND parts ${file}.md)
  endforeach()
  kiln_reference_page(${page} ${parts})
endfunction()

# kiln_reference_page(PAGE PART...): build/reference/PAGE.md out of generated files of this folder, one after the other.
function(kiln_reference_page page)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_BINARY_DIR}/ OUTPUT_VARIABLE parts)
  set(output ${PROJECT_BINARY_DIR}/reference/${page}.md)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/reference
    COMMAND ${CMAKE_COMMAND} -E cat ${parts} > ${output}
    DEPENDS ${parts} VERBATIM)
  add_custom_target(reference-${page} ALL DEPENDS ${output})
endfunction()

# kiln_headers(SET HEADERS... LIBS... OPTIONS...): other projects' headers that many files include, which take half of their
# time to compile (ours take little, and Clang would name this checkout in what it keeps). They are parsed once, for the targets of kiln_parse_once(TARGET SET), which are compiled with these OPTIONS.
function(kiln_headers set)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBS;OPTIONS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/${set}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${set} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${set} PRIVATE ${ARG_LIBS})
  target_compile_options(${set} PUBLIC ${ARG_OPTIONS})
  target_precompile_headers(${set} PRIVATE ${ARG_HEADERS})
endfunction()

function(kiln_parse_once target set)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:${set},INTERFACE_COMPILE_OPTIONS>)
  target_precompile_headers(${target} REUSE_FROM ${set})
endfunction()

# kiln_program(NAME [INSTALLED] [ON_REQUEST] SOURCES... LIBS... [PARSED SET]): an executable in build/bin; SET is of
# kiln_headers. ON_REQUEST: the target `all` leaves it out, `everything` has those alone.
add_custom_target(everything)
function(kiln_program name)
  cmake_parse_arguments(ARG "INSTALLED;ON_REQUEST" "PARSED" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_ON_REQUEST)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(everything ${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  if(ARG_PARSED)
    kiln_parse_once(${name} ${ARG_PARSED})
  endif()
  if(ARG_INSTALLED)
    install(TARGETS ${name})
  endif()
endfunction()

# kiln_link_whole(TARGET): links Kiln's libraries, LLVM and fmt into the target itself, so that it needs no library but the
# system's. LLVM's archives are named by their paths: its own targets would bring its shared library along, and with it a
# second LLVM.
function(kiln_link_whole target)
  foreach(library runtime streams kernels simulator lowering dsl simt layout tile)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:kiln_${library}>)
  endforeach()
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tools/cmake/fmt_library.cc)
  file(GLOB mlir ${LLVM_LIBRARY_DIR}/libMLIR*.a)
  list(FILTER mlir EXCLUDE REGEX "CAPI|Test|Runner|ExecutionEngine|JitRunner")
  execute_process(
    COMMAND ${KILN_LLVM_BIN}/llvm-config --link-static --libfiles
      nvptx x86 passes bitreader bitwriter linker core support targetparser ipo objcopy orcjit
    OUTPUT_VARIABLE llvm OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(llvm)
  find_library(KILN_STATIC_ZSTD libzstd.a REQUIRED)
  find_library(KILN_STATIC_Z libz.a REQUIRED)
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${mlir} ${llvm} -Wl,--end-group
    ${KILN_STATIC_ZSTD} ${KILN_STATIC_Z} Threads::Threads ${CMAKE_DL_LIBS} m)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--icf=all -Wl,-s)
endfunction()

# kiln_install_package(): the headers of an installed copy, what find_package(Kiln) reads of it, and its pages.
include(CMakePackageConfigHelpers)
function(kiln_install_package)
  set(place ${CMAKE_INSTALL_LIBDIR}/cmake/Kiln)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/KilnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/KilnConfig.cmake INSTALL_DESTINATION ${place})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/KilnConfig.cmake ${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake
    DESTINATION ${place})
  install(EXPORT KilnTargets NAMESPACE Kiln:: DESTINATION ${place})

  get_property(headers GLOBAL PROPERTY KILN_HEADERS)
  set(settings "set(SOURCE \"${PROJECT_SOURCE_DIR}\")\nset(HEADERS \"${headers}\")\n")
  install(CODE "${settings}
    set(COPIES \"${PROJECT_BINARY_DIR}/installed/include\")
    set(FOLDER \"${CMAKE_INSTALL_INCLUDEDIR}/kiln\")
    include(\"${PROJECT_SOURCE_DIR}/tools/cmake/InstallHeaders.cmake\")")
  if(NOT PROJECT_IS_TOP_LEVEL) # which has no pages made
    return()
  endif()
  set(patterns dialect lowering runtime kernels models test tools)
  list(TRANSFORM patterns REPLACE "^(.+)$" "${PROJECT_SOURCE_DIR}/\\1/*.md")
  file(GLOB_RECURSE pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  install(CODE "${settings}
    set(PAGES \"README.md;${pages}\")
    set(PICTURES models/inits.svg models/losses.svg tools/kiln-bench/h100.svg)
    set(LICENSE LICENSE)
    set(REFERENCE \"${PROJECT_BINARY_DIR}/reference\")
    set(INCLUDE \"${CMAKE_INSTALL_INCLUDEDIR}/kiln\")
    set(COPIES \"${PROJECT_BINARY_DIR}/installed/doc\")
    set(FOLDER \"${CMAKE_INSTALL_DOCDIR}\")
    include(\"${PROJECT_SOURCE_DIR}/tools/cmake/InstallPages.cmake\")")
endfunction()
