#ifndef XMPPTAP_OPENSSL_SHIM_H
#define XMPPTAP_OPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/objects.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// The macro is a string literal that Swift cannot see; the name tells the HMAC which hash to use.
static inline OSSL_PARAM xmpptap_digest_parameter(char *name) {
    return OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0);
}

// How PEM readers tell that there is no (further) block.
static inline int xmpptap_error_is_no_start_line(unsigned long error) {
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

// What both ends of TLS have in common: no compression, no renegotiation, small buffers, writes that are never partial.
static inline void xmpptap_set_common_options(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// Without tickets and a session cache, no session can be resumed.
static inline void xmpptap_refuse_resumption(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
}

// Servers older than RFC 5746 are refused unless this is said.
static inline void xmpptap_allow_legacy_servers(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
}

static inline int xmpptap_set_minimum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int xmpptap_set_maximum_version(SSL *ssl, int version) {
    return (int)SSL_set_max_proto_version(ssl, version);
}

static inline int xmpptap_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline int xmpptap_has_extended_master_secret(SSL *ssl) {
    return SSL_get_extms_support(ssl) == 1;
}

static inline int xmpptap_error_library(unsigned long error) {
    return ERR_GET_LIB(error);
}

static inline int xmpptap_error_reason(unsigned long error) {
    return ERR_GET_REASON(error);
}

// RFC 2253, with what is beyond ASCII left as UTF-8.
static inline unsigned long xmpptap_one_line_name_flags(void) {
    return XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
}

// Whether the reason is one that all libraries share: out of memory, an error inside OpenSSL.
static inline int xmpptap_error_is_common(unsigned long error) {
    return (ERR_GET_RFLAGS(error) & ERR_RFLAG_COMMON) != 0;
}

#endif
