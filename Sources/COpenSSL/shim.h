#ifndef XMPPTAP_OPENSSL_SHIM_H
#define XMPPTAP_OPENSSL_SHIM_H

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

// The macro is a string literal that Swift cannot see; the name tells the HMAC which hash to use.
static inline OSSL_PARAM xmpptap_digest_parameter(char *name) {
    return OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0);
}

#endif
