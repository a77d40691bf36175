include("${CMAKE_CURRENT_LIST_DIR}/ferry-targets.cmake")
