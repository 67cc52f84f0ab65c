#ifndef XMPPTAP_RESOLV_SHIM_H
#define XMPPTAP_RESOLV_SHIM_H

#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
/* Not of the resolver, but of the same library, and left out of Swift's module of it too: malloc_trim. */
#include <malloc.h>

/* Asks for the records of a type, class IN; blocks for 3 s at most if nobody answers. The server is an address of 4 or
   16 bytes and its port, or none (length 0) for those of /etc/resolv.conf. Gives the length of the reply, which is
   written to answer; or -1, with what netdb.h calls an h_errno in fault. */
static inline int xmpptap_resolve(
    const char *name, int type, const unsigned char *server, int server_length, int port, unsigned char *answer,
    int size, int *fault)
{
    struct __res_state state;
    memset(&state, 0, sizeof state);
    *fault = NO_RECOVERY;
    if (res_ninit(&state) != 0) return -1;
    state.retrans = 1;
    state.retry = 2;
    if (server_length == 4) {
        struct sockaddr_in *address = &state.nsaddr_list[0];
        memset(address, 0, sizeof *address);
        address->sin_family = AF_INET;
        address->sin_port = htons((unsigned short)port);
        memcpy(&address->sin_addr, server, 4);
        state.nscount = 1;
    } else if (server_length == 16) {
        /* The list has no room for IPv6: a slot without a family stands for the extension's address, which res_nclose
           frees. */
        struct sockaddr_in6 *address = (struct sockaddr_in6 *)calloc(1, sizeof *address);
        if (address == NULL) {
            res_nclose(&state);
            return -1;
        }
        address->sin6_family = AF_INET6;
        address->sin6_port = htons((unsigned short)port);
        memcpy(&address->sin6_addr, server, 16);
        free(state._u._ext.nsaddrs[0]);
        state._u._ext.nsaddrs[0] = address;
        state._u._ext.nssocks[0] = -1;
        state._u._ext.nscount = 1;
        memset(&state.nsaddr_list[0], 0, sizeof state.nsaddr_list[0]);
        state.nscount = 1;
    }
    int length = res_nquery(&state, name, ns_c_in, type, answer, size);
    *fault = state.res_h_errno;
    res_nclose(&state);
    return length > size ? size : length;
}

#endif
