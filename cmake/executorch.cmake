# libferry_executorch.so: built against the headers and libraries of the `executorch` Python package.
# FERRY_EXECUTORCH names the package's folder; otherwise it is looked for in build/venv, in the active
# virtual environment and in that of python3. Without one nothing is built, and ferry says so when asked
# to run with ExecuTorch. The adapter is loaded by ferry at run time, from beside libferry.so.

set(FERRY_EXECUTORCH "" CACHE PATH "Folder of the executorch Python package, for ferry's adapter to it")

set(executorch_package ${FERRY_EXECUTORCH})
if(NOT executorch_package)
  file(GLOB executorch_candidates ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/executorch
       $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/executorch)
  find_program(FERRY_PYTHON python3)
  if(FERRY_PYTHON)
    execute_process(COMMAND ${FERRY_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
                    OUTPUT_VARIABLE purelib OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND executorch_candidates ${purelib}/executorch)
  endif()
  foreach(candidate ${executorch_candidates})
    if(NOT executorch_package AND EXISTS ${candidate}/lib/libexecutorch.so
       AND EXISTS ${candidate}/include/executorch/runtime/executor/program.h)
      set(executorch_package ${candidate})
    endif()
  endforeach()
endif()

if(NOT executorch_package)
  message(STATUS "ExecuTorch's package was not found: its adapter is not built")
  return()
endif()
if(NOT EXISTS ${executorch_package}/lib/libexecutorch.so)
  message(FATAL_ERROR "FERRY_EXECUTORCH: ${executorch_package} has no lib/libexecutorch.so: expected the "
          "folder of the executorch Python package, such as .../site-packages/executorch")
endif()
file(STRINGS ${executorch_package}/version.py executorch_version REGEX "^__version__")
string(REGEX MATCH "[0-9]+[0-9.]*" executorch_version "${executorch_version}")
message(STATUS "ExecuTorch ${executorch_version}: ${executorch_package}")

enable_language(CXX)
add_library(ferry_executorch MODULE src/run/executorch/adapter.cpp)
set_target_properties(ferry_executorch PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
                      CXX_VISIBILITY_PRESET hidden INTERPROCEDURAL_OPTIMIZATION OFF)
target_include_directories(ferry_executorch PRIVATE src)
target_include_directories(ferry_executorch SYSTEM PRIVATE ${executorch_package}/include
                           ${executorch_package}/include/executorch/runtime/core/portable_type/c10)
target_compile_definitions(ferry_executorch PRIVATE C10_USING_CUSTOM_GENERATED_MACROS
                           ET_EVENT_TRACER_ENABLED FERRY_EXECUTORCH_VERSION="${executorch_version}")
target_compile_options(ferry_executorch PRIVATE -Wall -Wextra -Werror)
# Which libraries are used is decided when ferry loads them; here they only have to have the functions.
target_link_directories(ferry_executorch PRIVATE ${executorch_package}/lib)
target_link_libraries(ferry_executorch PRIVATE executorch executorch_threadpool)
target_link_options(ferry_executorch PRIVATE -Wl,--no-undefined)
set_target_properties(ferry_executorch PROPERTIES SKIP_BUILD_RPATH ON SKIP_INSTALL_RPATH ON)
install(TARGETS ferry_executorch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
