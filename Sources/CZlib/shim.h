#ifndef XMPPTAP_ZLIB_SHIM_H
#define XMPPTAP_ZLIB_SHIM_H

#include <zlib.h>

/* The functions that begin a stream are macros, which Swift does not see. 16 more than the window's bits is gzip. */
static inline int xmpptap_deflate_gzip(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
/* A negative number of bits is raw deflate data, without header and checksum. */
static inline int xmpptap_inflate_raw(z_stream *stream) { return inflateInit2(stream, -15); }
static inline int xmpptap_deflate_raw(z_stream *stream, int bits) {
    return deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -bits, 8, Z_DEFAULT_STRATEGY);
}
static inline unsigned long xmpptap_crc32(const void *bytes, size_t count) { return crc32_z(0, bytes, count); }
static inline int xmpptap_inflate_gzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }

#endif
