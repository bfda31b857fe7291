# Writes OUTPUT, a source file with a hash of the files named in LIST; leaves it alone when nothing changed.
file(STRINGS ${LIST} files)
set(all "")
foreach(source ${files})
  file(SHA256 ${source} hash)
  string(APPEND all "${hash}\n")
endforeach()
string(SHA256 identity "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"// Generated: tells this compiler's objects in the cache from another's.
#include \"runtime/Cache.h\"
const char *const kiln::compilerIdentity = \"${identity}\";
")
