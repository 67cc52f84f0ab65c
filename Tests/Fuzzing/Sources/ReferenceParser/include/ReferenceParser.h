#ifndef XMPPTAP_REFERENCE_PARSER_H
#define XMPPTAP_REFERENCE_PARSER_H

#include <stddef.h>
#include <stdint.h>

/* What plain libxml2 says of a whole document, fed to its push parser in one piece. */
struct reference_verdict {
    /* 0 where it accepts the document, else its error number; errors in namespaces count, names that are no URI do not. */
    int code;
    /* Elements, and those that ended at depth 1. */
    long elements, items;
    /* Offset behind the last byte of each element that ended at depth 1; as many as there was room for. */
    int64_t ends[64];
};

struct reference_verdict reference_parse(const uint8_t *bytes, size_t count);

#endif
