# The libraries as a cross build finds them on the build machine (SLUICE_HEADER_ONLY): headers and
# sources, but nothing compiled for the target. xxHash is taken as a header; fmt and GoogleTest are
# compiled here; in place of io_uring threads read.

# As headers alone, fmt costs three seconds for each of our sources. Its one source is this:
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fmt.cc CONTENT [[
#include <fmt/format-inl.h>
using namespace fmt::detail;
template thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template char fmt::detail::decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;
]])
add_library(sluice_fmt STATIC ${CMAKE_BINARY_DIR}/fmt.cc)
add_library(fmt::fmt ALIAS sluice_fmt)

target_compile_definitions(sluice_xxhash INTERFACE XXH_INLINE_ALL)

if(SLUICE_TESTS)
  set(INSTALL_GTEST OFF)
  set(googletest /usr/src/googletest CACHE PATH "GoogleTest's sources")
  add_subdirectory(${googletest} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  foreach(library gtest gtest_main gmock)
    target_compile_options(${library} PRIVATE -w)  # its warnings are not ours to mend
  endforeach()
endif()
