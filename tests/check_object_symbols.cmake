# cmake -DNM=<nm> -DOBJECTS=<a.o;b.o> -P check_object_symbols.cmake
#
# Fails when an object file of an ISA folder defines a weak symbol: an inline function, a template
# or a variable of a shared header. The linker keeps one copy of such a symbol for the whole
# program; were it the one compiled for AVX-512, the program would die on other machines.
if(NOT OBJECTS)
  message(FATAL_ERROR "no object files given")
endif()
set(failed FALSE)
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only -C ${object}
                  OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${object}: ${NM} failed")
  endif()
  string(REGEX MATCHALL "[^\n]* [WwVvu] [^\n]*" weak "${symbols}")
  foreach(symbol IN LISTS weak)
    string(REGEX REPLACE "^[0-9a-f]* . " "" symbol "${symbol}")
    message("${object}: weak symbol ${symbol}: restate it in an unnamed namespace of the folder")
    set(failed TRUE)
  endforeach()
endforeach()
if(failed)
  message(FATAL_ERROR "weak symbols in ISA object files")
endif()
