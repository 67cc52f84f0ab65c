#ifndef XMPPTAP_PCAP_SHIM_H
#define XMPPTAP_PCAP_SHIM_H

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/types.h>

/* fopencookie, which the C library declares only for programs that define _GNU_SOURCE; what is imported into Swift is not
   compiled so. The layout is that of cookie_io_functions_t, which fopencookie(3) documents. */
struct xmpptap_cookie_functions {
    ssize_t (*read)(void *cookie, char *buffer, size_t size);
    ssize_t (*write)(void *cookie, const char *buffer, size_t size);
    int (*seek)(void *cookie, long *offset, int whence);
    int (*close)(void *cookie);
};
extern FILE *xmpptap_fopencookie(void *cookie, const char *mode, struct xmpptap_cookie_functions functions)
    __asm__("fopencookie");

/* What FSETLOCKING_BYCALLER stands for, a macro of an enumeration's own name. */
static inline void xmpptap_leave_locking_to_caller(FILE *file) { __fsetlocking(file, FSETLOCKING_BYCALLER); }

/* sched_getaffinity(2), likewise; the mask is one bit a processor. */
extern int xmpptap_getaffinity(pid_t process, size_t size, unsigned char *mask) __asm__("sched_getaffinity");

/* The macros that name link types are expressions with casts in some versions of the header. */
static inline int xmpptap_pcap_error_length(void) { return PCAP_ERRBUF_SIZE; }

#endif
