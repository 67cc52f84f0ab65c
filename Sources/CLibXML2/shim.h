#ifndef XMPPTAP_LIBXML2_SHIM_H
#define XMPPTAP_LIBXML2_SHIM_H

/* Debian's libxml2 is built with ICU, whose headers clash with Foundation's ICU as soon as one module sees both.
   Without them only the last two fields of xmlCharEncodingHandler are missing: never handle that struct by value. */
#include <libxml/xmlversion.h>
#undef LIBXML_ICU_ENABLED
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/SAX2.h>
#include <libxml/xmlerror.h>

/* The version of the library that is loaded, as "20914"; a variable or a macro, depending on how it was built. */
static inline const char *xmpptap_libxml2_version(void) { return xmlParserVersion; }

#endif
