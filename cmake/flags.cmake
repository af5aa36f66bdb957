set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# A call lasts milliseconds and uses each piece of code once: what counts is how many pages of it there are. (And at -O3 GCC 12 warns
# falsely.)
set(CMAKE_CXX_FLAGS_RELEASE "-Os -DNDEBUG")

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffunction-sections -fdata-sections)
if(FABRIC_NIC_WERROR)
  add_compile_options(-Werror)
endif()
add_compile_definitions($<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

if(FABRIC_NIC_SANITIZE)
  if(FABRIC_NIC_STATIC)
    message(FATAL_ERROR "FABRIC_NIC_SANITIZE needs a dynamic executable: build it in a directory of its own, without FABRIC_NIC_STATIC")
  endif()
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(FABRIC_NIC_STATIC)  # not a position-independent executable: relocating itself would cost each call a millisecond
  add_compile_options(-fno-pie)
  add_link_options(-no-pie)
endif()

# libnl and libibverbs refer to the C library's name look-ups and never call them for us; in a static program they could not work anyway,
# the resolver would be in the program, and the linker would warn of each.
# The first exception of a static program would sort a table of all functions, a millisecond or more with libibverbs in it: GCC's start code
# registers it for that. Without the registration the one is used that the linker has sorted.
function(fabric_nic_link_release target)
  target_link_options(${target} PRIVATE LINKER:--gc-sections)
  if(FABRIC_NIC_STATIC)
    target_link_options(${target} PRIVATE -static -s
      LINKER:--defsym=getaddrinfo=abort,--defsym=freeaddrinfo=abort,--defsym=getprotobyname=abort,--defsym=getprotobynumber=abort
      LINKER:--eh-frame-hdr,--defsym=__register_frame_info=0,--defsym=__deregister_frame_info=0)
  endif()
endfunction()
