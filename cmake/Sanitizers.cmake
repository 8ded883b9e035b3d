# SPDX-License-Identifier: Apache-2.0
# ATP_SANITIZE: empty, "address,undefined" or "thread" (presets asan and tsan).
set(ATP_SANITIZE "" CACHE STRING "sanitizers for everything that is ours")
if(ATP_SANITIZE)
  add_compile_options(-fsanitize=${ATP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATP_SANITIZE})
endif()
