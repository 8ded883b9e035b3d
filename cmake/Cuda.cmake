# SPDX-License-Identifier: Apache-2.0
# The CUDA toolkit: headers for the shim and the simulated driver, nvcc for examples and tests. Nothing here needs a GPU.
# A toolkit that scripts/cuda_toolkit.sh has put below build/ is used unless the caller names another one.
# The environment variable is looked at as well, because FindCUDAToolkit would prefer the CMake variable to it.
set(ATP_LOCAL_TOOLKIT ${CMAKE_SOURCE_DIR}/build/cuda-toolkit)
if(NOT CUDAToolkit_ROOT AND NOT DEFINED ENV{CUDAToolkit_ROOT} AND EXISTS ${ATP_LOCAL_TOOLKIT}/bin/nvcc)
  set(CUDAToolkit_ROOT ${ATP_LOCAL_TOOLKIT})
endif()
find_package(CUDAToolkit 13.0 QUIET)
if(NOT CUDAToolkit_FOUND)
  message(FATAL_ERROR "No CUDA toolkit 13.0 or newer was found. Run scripts/cuda_toolkit.sh, which puts compiler and headers "
                      "into build/cuda-toolkit, or name one with -DCUDAToolkit_ROOT=DIR.")
endif()
message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION}: ${CUDAToolkit_BIN_DIR}")
set(ATP_NVCC ${CUDAToolkit_NVCC_EXECUTABLE})

# atp_add_cuda_program(NAME SOURCES file... [CUDART shared|none] [LINK item...] [DIRECTORY dir] [OPTIONS nvcc option...])
# An ordinary CUDA program that knows nothing of us: built by nvcc in one command, exactly as a user would, with the flags that let it run on
# the simulated machine (PTX text, not compressed). CMake's own CUDA language is not used, because it wants to link and run a test program
# with the static runtime at configure time. Makes the target NAME and the file DIRECTORY/NAME (default bin/).
#   CUDART shared  needs libcudart.so.13 at run time; the link uses the toolkit's, the simulated machine brings its own
#   CUDART none    no runtime of nvcc's; LINK says what provides one
function(atp_add_cuda_program name)
  cmake_parse_arguments(arg "" "CUDART;DIRECTORY" "SOURCES;LINK;OPTIONS;DEPENDS" ${ARGN})
  if(NOT arg_CUDART)
    set(arg_CUDART shared)
  endif()
  if(NOT arg_DIRECTORY)
    set(arg_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  endif()
  set(sources "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source ${source} ABSOLUTE)
    list(APPEND sources ${source})
  endforeach()
  set(output ${arg_DIRECTORY}/${name})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${arg_DIRECTORY}
    COMMAND ${ATP_NVCC} -std=c++17 -O2 -ccbin ${CMAKE_CXX_COMPILER} -cudart ${arg_CUDART} -no-compress
            -gencode arch=compute_80,code=compute_80 -MD -MF ${CMAKE_CURRENT_BINARY_DIR}/${name}.d -MT ${output}
            -I${CMAKE_SOURCE_DIR} ${arg_OPTIONS} -o ${output} ${sources} ${arg_LINK}
    DEPENDS ${sources} ${arg_DEPENDS}
    DEPFILE ${CMAKE_CURRENT_BINARY_DIR}/${name}.d
    COMMENT "nvcc ${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${output})
endfunction()
