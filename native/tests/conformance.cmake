# Runs one part of the conformance program on the phantom and compares it with what an H200 answered.
# Lines that differ on purpose are left out, for these reasons:
set(DIFFERENCES
    "attribute (2[1-9]|4[2-9]|5[2-9]|6[0-9]|7[0-4]|77) " # textures and surfaces: not modelled
    "property at (39[6-9]|4[0-9][0-9]|5[0-4][0-9]) "     # the same, in the properties
    "attribute (33|34) " "property at (568|572) "        # where on the PCI bus the card sits
    "attribute (139|140) "                               # PCI identity of the board
    "attribute (103|110|116|117|118|119|124|125|128) "   # memory shared with other processes or devices: not modelled
    "property at (72[4-9]|73[0-9]|744) "                 # the same, in the properties
    "attribute (141|142|144|145) "                       # pools and virtual memory on the host: not modelled
    "attribute (107|112|114|121) " "property at (712|716|740) ") # compression, sparse arrays, semaphores

file(STRINGS ${EXPECTED} lines)
set(inside FALSE)
foreach(line IN LISTS lines)
  if(line MATCHES "^# ")
    string(COMPARE EQUAL "${line}" "# ${PART}" inside)
  elseif(inside)
    list(APPEND wanted "${line}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} ${LIBRARY} ${LIBRARY} ${PART} OUTPUT_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "conformance ${PART} ended with ${status}")
endif()
string(REGEX REPLACE "\n$" "" output "${output}")
string(REPLACE "\n" ";" found "${output}")
foreach(difference IN LISTS DIFFERENCES)
  list(FILTER wanted EXCLUDE REGEX "^${difference}")
  list(FILTER found EXCLUDE REGEX "^${difference}")
endforeach()
if(NOT "${found}" STREQUAL "${wanted}")
  set(missing ${wanted})
  list(REMOVE_ITEM missing ${found})
  list(REMOVE_ITEM found ${wanted})
  string(REPLACE ";" "\n  " missing "${missing}")
  string(REPLACE ";" "\n  " found "${found}")
  message(FATAL_ERROR "${PART}: the H200 says\n  ${missing}\nand the phantom\n  ${found}")
endif()
