#ifndef XMPPTAP_PLAIN_XML_H
#define XMPPTAP_PLAIN_XML_H

#include <stddef.h>

/* Parses a stream with libxml2's push parser, `chunk` bytes a call, with callbacks that only count.
   Returns the number of elements that ended at depth 1, or -1 where libxml2 found an error. */
long plain_xml_parse(const char *bytes, size_t count, size_t chunk);

#endif
