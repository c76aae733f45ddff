# SPDX-License-Identifier: MIT
# Adds weft's targets: for weft-config.cmake, whose libraries are installed, and
# for CMakeLists.txt, which builds them.  Both set before
#
#   _weft_headers   the directory of weft/weft.h
#   _weft_cflags    the flags of programs that use weft
#   _weft_uring     "uring" if the static library needs liburing, or nothing
#   _weft_cares     "cares" if it needs c-ares, or nothing
#   _weft_scope     GLOBAL, or nothing

if(_weft_uring)
  find_library(WEFT_URING_LIBRARY ${_weft_uring}
    DOC "liburing, for weft's static library")
  mark_as_advanced(WEFT_URING_LIBRARY)
endif()
if(_weft_cares)
  find_library(WEFT_CARES_LIBRARY ${_weft_cares}
    DOC "c-ares, for weft's static library")
  mark_as_advanced(WEFT_CARES_LIBRARY)
endif()

function(_weft_add name kind file)
  add_library(weft::${name} ${kind} IMPORTED ${_weft_scope})
  set_target_properties(weft::${name} PROPERTIES
    IMPORTED_LOCATION "${file}"
    INTERFACE_INCLUDE_DIRECTORIES "${_weft_headers}"
    INTERFACE_COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:C,CXX>:${_weft_cflags}>")
endfunction()

function(_weft_add_shared name file)
  if(NOT TARGET weft::${name})
    _weft_add(${name} SHARED "${file}")
    set_target_properties(weft::${name} PROPERTIES
      IMPORTED_SONAME libweft.so.0)
  endif()
endfunction()

# The linker finds the .a of each for a program with -static, else the .so.
function(_weft_add_static name file)
  if(NOT TARGET weft::${name})
    _weft_add(${name} STATIC "${file}")
    set(libraries ${CMAKE_DL_LIBS} -pthread)
    set(directories)
    foreach(needed URING CARES)
      string(TOLOWER ${needed} lower)
      if(_weft_${lower})
        list(INSERT libraries 0 -l${_weft_${lower}})
        get_filename_component(directory "${WEFT_${needed}_LIBRARY}" DIRECTORY)
        list(APPEND directories "${directory}")
      endif()
    endforeach()
    if(directories)
      set_property(TARGET weft::${name}
        PROPERTY INTERFACE_LINK_DIRECTORIES "${directories}")
    endif()
    set_target_properties(weft::${name} PROPERTIES
      IMPORTED_LINK_INTERFACE_LANGUAGES C
      INTERFACE_LINK_LIBRARIES "${libraries}")
  endif()
endfunction()
