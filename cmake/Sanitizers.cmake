# SPDX-License-Identifier: Apache-2.0
# ATP_SANITIZE: empty, "address,undefined" or "thread" (presets asan and tsan).
# ATP_SANITIZER_PRELOAD is what a program that was not built with the sanitizer must have first in LD_PRELOAD before it can
# load a library of ours that was; empty in an ordinary build.
set(ATP_SANITIZE "" CACHE STRING "sanitizers for everything that is ours")
set(ATP_SANITIZER_PRELOAD "")
if(ATP_SANITIZE)
  # GCC 12 misreads the standard library (<regex>) as uninitialised once a sanitizer has rewritten it.
  add_compile_options(-fsanitize=${ATP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${ATP_SANITIZE})
  if(ATP_SANITIZE MATCHES "thread")
    set(runtime libtsan.so)
  else()
    set(runtime libasan.so)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
                  OUTPUT_VARIABLE ATP_SANITIZER_PRELOAD OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
