# Installs headers in the folder FOLDER, relative to the prefix, so that they include each other by
# `<kiln/dialect/dsl/Tile.h>`, where the tree has `"dialect/dsl/Tile.h"`: with the folder above `kiln` alone on the path,
# and folders called dialect or runtime of the project's own, all find what they mean. HEADERS are paths in the tree
# SOURCE; the changed copies are made in COPIES. Included by an installation, which gives file(INSTALL) its settings.
cmake_policy(VERSION 3.25)
cmake_path(ABSOLUTE_PATH FOLDER BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
foreach(header ${HEADERS})
  file(READ ${SOURCE}/${header} text)
  string(REGEX REPLACE "(#include )\"((dialect|lowering|runtime|kernels)/[^\"]+)\"" "\\1<kiln/\\2>" text "${text}")
  file(CONFIGURE OUTPUT ${COPIES}/${header} CONTENT "@text@" @ONLY) # untouched when it is the same
  cmake_path(GET header PARENT_PATH place)
  file(INSTALL DESTINATION ${FOLDER}/${place} TYPE FILE FILES ${COPIES}/${header})
endforeach()
