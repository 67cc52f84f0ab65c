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

#endif
