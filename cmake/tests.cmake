find_package(Catch2 REQUIRED)  # 2 or 3
include(Catch)

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.cpp)
add_library(fabric_nic_test_support STATIC ${support_sources})
target_link_libraries(fabric_nic_test_support PUBLIC fabric_nic_cni Catch2::Catch2WithMain)
target_include_directories(fabric_nic_test_support PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(fabric_nic_test_support PUBLIC -O0)  # half the time to build, and these programs spend theirs waiting
target_compile_definitions(fabric_nic_test_support PUBLIC
  TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data"
  EXAMPLES_DIR="${PROJECT_SOURCE_DIR}/examples"
  FABRIC_NIC_BINARY="${PROJECT_BINARY_DIR}/fabric-nic")  # the default: the environment variable FABRIC_NIC names another one

# Most of what a test file costs to build is reading these.
target_precompile_headers(fabric_nic_test_support PRIVATE
  ${PROJECT_SOURCE_DIR}/tests/support/catch.hpp <nlohmann/json.hpp> <fmt/format.h>)

foreach(name unit netns)
  file(GLOB ${name}_sources CONFIGURE_DEPENDS tests/${name}/*.cpp)
  add_executable(${name}_tests ${${name}_sources})
  target_link_libraries(${name}_tests PRIVATE fabric_nic_test_support)
  target_precompile_headers(${name}_tests REUSE_FROM fabric_nic_test_support)
  add_dependencies(${name}_tests fabric-nic)
  catch_discover_tests(${name}_tests TEST_PREFIX "${name}/" PROPERTIES LABELS ${name} TIMEOUT 900)
endforeach()

# The lab's tests are built here and run in virtual machines, one for each kernel, with the static plugin; for CTest each is a look at what
# its machine left behind.
if(FABRIC_NIC_STATIC)
  file(GLOB lab_sources CONFIGURE_DEPENDS tests/lab/*.cpp)
  add_executable(lab_tests ${lab_sources})
  target_link_libraries(lab_tests PRIVATE fabric_nic_test_support)
  target_precompile_headers(lab_tests REUSE_FROM fabric_nic_test_support)
  add_dependencies(lab_tests fabric-nic)
  set(lab_list ${PROJECT_BINARY_DIR}/lab_tests.cmake)
  add_custom_command(OUTPUT ${lab_list}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/lab/lab list $<TARGET_FILE:lab_tests> ${PROJECT_BINARY_DIR}/lab > ${lab_list}
    DEPENDS lab_tests ${PROJECT_SOURCE_DIR}/tests/lab/kernels ${PROJECT_SOURCE_DIR}/tests/lab/lab VERBATIM)
  add_custom_target(lab_list ALL DEPENDS ${lab_list})
  file(WRITE ${PROJECT_BINARY_DIR}/lab_tests_if_built.cmake "if(EXISTS \"${lab_list}\")\n  include(\"${lab_list}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/lab_tests_if_built.cmake)
endif()
