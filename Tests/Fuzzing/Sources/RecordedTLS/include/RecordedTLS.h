#ifndef XMPPTAP_RECORDED_TLS_H
#define XMPPTAP_RECORDED_TLS_H

#include <stddef.h>
#include <stdint.h>

/* How many kinds of connections there are. */
int recorded_tls_kinds(void);

/* Makes a connection of a kind, the same bytes each time, and tells in order what happens: 'c' and 's' bytes from the client
   and the server, 'C' and 'S' plaintext that they sent, 'k' lines of the key log. 0 where it fails. */
int recorded_tls(int kind, void *context, void (*tell)(void *context, char what, const uint8_t *bytes, size_t count));

#endif
