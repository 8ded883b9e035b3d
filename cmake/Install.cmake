# SPDX-License-Identifier: Apache-2.0
# The layout of an installed tree, in one place; the target "uninstall" takes it away again. A build of some parts installs those.
set(ATP_SIM_DESTINATION ${CMAKE_INSTALL_LIBDIR}/atp/sim)  # beside the shim, not where the linker looks by itself
if(TARGET atp)
  install(TARGETS atp RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET atpd)
  install(TARGETS atpd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET atpshim)
  install(TARGETS atpshim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(library atp_sim_driver atp_sim_cudart atp_sim_nvml)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION ${ATP_SIM_DESTINATION})
  endif()
endforeach()
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt -P ${CMAKE_SOURCE_DIR}/cmake/Uninstall.cmake
  COMMENT "removing what cmake --install wrote" VERBATIM)

# What scripts/demo.sh runs, without tests and benchmarks.
add_custom_target(demo_programs)
foreach(target atp atpshim atp_sim_driver atp_sim_cudart train_transformer)
  if(TARGET ${target})
    add_dependencies(demo_programs ${target})
  endif()
endforeach()
