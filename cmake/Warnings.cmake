# SPDX-License-Identifier: Apache-2.0
# Every target of ours links atp_warnings; warnings are errors.
add_library(atp_warnings INTERFACE)
target_compile_options(atp_warnings INTERFACE -Wall -Wextra -Wshadow -Werror)
