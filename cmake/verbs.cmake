pkg_check_modules(LIBIBVERBS REQUIRED libibverbs)

# fabric_nic_link_verbs(TARGET SOURCE): the library finds the driver of a device among its providers. A dynamic program loads them when it
# runs; a static one has all of them in it. Which there are, and the names of their archives, differ from release to release.
function(fabric_nic_link_verbs target source)
  target_include_directories(${target} SYSTEM PRIVATE ${LIBIBVERBS_INCLUDE_DIRS})
  if(NOT FABRIC_NIC_STATIC)
    target_link_directories(${target} PUBLIC ${LIBIBVERBS_LIBRARY_DIRS})
    target_link_libraries(${target} PUBLIC ${LIBIBVERBS_LIBRARIES})
    return()
  endif()
  set(names ${LIBIBVERBS_STATIC_LIBRARIES})
  list(REMOVE_DUPLICATES names)
  set(group "")
  set(providers 0)
  foreach(name ${names})
    if(name MATCHES "^nl-|^pthread$")  # static or not, as the program is that they are linked into
      list(APPEND group ${name})
      continue()
    endif()
    find_library(archive_of_${name} lib${name}.a HINTS ${LIBIBVERBS_LIBDIR} NO_CACHE)
    if(NOT archive_of_${name})
      message(FATAL_ERROR "lib${name}.a is missing (looked for in ${LIBIBVERBS_LIBDIR}, and where libraries are): the static plugin "
        "needs libibverbs and all its providers as archives, as Debian's libibverbs-dev has them")
    endif()
    list(APPEND group ${archive_of_${name}})
    math(EXPR providers "${providers} + 1")
  endforeach()
  if(providers LESS 2)
    message(FATAL_ERROR "'pkg-config --static --libs libibverbs' names no providers (${names}): the static plugin needs them as archives, "
      "as Debian's libibverbs-dev has them")
  endif()
  list(JOIN group "," group)
  target_link_libraries(${target} PUBLIC "$<LINK_GROUP:RESCAN,${group}>")  # they refer to each other
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS RDMA_STATIC_PROVIDERS=all)
endfunction()
