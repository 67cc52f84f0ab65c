#define OPENSSL_SUPPRESS_DEPRECATED
#include "RecordedTLS.h"

#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <string.h>

/* Keys that both ends know take the place of certificates: suites and records are the same. */
static const struct {
    int version;
    const char *suite;
    int updates_keys;
} kinds[] = {
    {TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256", 0},
    {TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256", 1},
    {TLS1_2_VERSION, "PSK-AES128-GCM-SHA256", 0},
    {TLS1_2_VERSION, "PSK-CHACHA20-POLY1305", 0},
    {TLS1_2_VERSION, "PSK-AES128-CBC-SHA256", 0},
    {TLS1_2_VERSION, "ECDHE-PSK-AES256-CBC-SHA384", 0},
    {TLS1_2_VERSION, "PSK-AES128-CCM8", 0},
};

struct connection {
    SSL *ends[2];
    void *context;
    void (*tell)(void *, char, const uint8_t *, size_t);
};

static uint64_t random_state;

static int random_bytes(unsigned char *bytes, int count)
{
    for (int i = 0; i < count; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (unsigned char)(random_state >> 56);
    }
    return 1;
}

static int random_status(void) { return 1; }

static const RAND_METHOD repeatable = {0, random_bytes, 0, 0, random_bytes, random_status};

static unsigned client_key(SSL *ssl, const char *hint, char *name, unsigned name_size, unsigned char *key, unsigned size)
{
    (void)ssl, (void)hint;
    if (name_size < 5 || size < 32) return 0;
    memcpy(name, "fuzz", 5);
    memset(key, 7, 32);
    return 32;
}

static unsigned server_key(SSL *ssl, const char *name, unsigned char *key, unsigned size)
{
    (void)ssl, (void)name;
    if (size < 32) return 0;
    memset(key, 7, 32);
    return 32;
}

static void log_key(const SSL *ssl, const char *line)
{
    struct connection *connection = SSL_get_app_data(ssl);
    connection->tell(connection->context, 'k', (const uint8_t *)line, strlen(line));
}

/* Hands over what the ends have written. */
static void carry(struct connection *connection)
{
    static uint8_t bytes[1 << 16];
    for (int end = 0; end < 2; end++) {
        int count = BIO_read(SSL_get_wbio(connection->ends[end]), bytes, sizeof bytes);
        if (count <= 0) continue;
        connection->tell(connection->context, "cs"[end], bytes, (size_t)count);
        BIO_write(SSL_get_rbio(connection->ends[!end]), bytes, count);
    }
}

static void drain(struct connection *connection)
{
    uint8_t bytes[4096];
    for (int end = 0; end < 2; end++)
        while (SSL_read(connection->ends[end], bytes, sizeof bytes) > 0) {}
    carry(connection);
}

static void say(struct connection *connection, int end, int length)
{
    uint8_t bytes[2048];
    random_bytes(bytes, length);
    connection->tell(connection->context, "CS"[end], bytes, (size_t)length);
    SSL_write(connection->ends[end], bytes, length);
    carry(connection);
    drain(connection);
}

static SSL *make_end(int kind, int is_server)
{
    SSL_CTX *context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    SSL_CTX_set_min_proto_version(context, kinds[kind].version);
    SSL_CTX_set_max_proto_version(context, kinds[kind].version);
    SSL_CTX_set_security_level(context, 0);
    if (kinds[kind].version == TLS1_3_VERSION) SSL_CTX_set_ciphersuites(context, kinds[kind].suite);
    else SSL_CTX_set_cipher_list(context, kinds[kind].suite);
    if (is_server) SSL_CTX_set_psk_server_callback(context, server_key);
    else SSL_CTX_set_psk_client_callback(context, client_key);
    if (!is_server) SSL_CTX_set_keylog_callback(context, log_key);
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    return ssl;
}

int recorded_tls_kinds(void) { return sizeof kinds / sizeof *kinds; }

int recorded_tls(int kind, void *context, void (*tell)(void *, char, const uint8_t *, size_t))
{
    struct connection connection = {{0}, context, tell};
    random_state = (uint64_t)kind + 1;
    RAND_set_rand_method(&repeatable);
    for (int end = 0; end < 2; end++) {
        connection.ends[end] = make_end(kind, end);
        SSL_set_app_data(connection.ends[end], &connection);
    }
    for (int round = 0; round < 6; round++)
        for (int end = 0; end < 2; end++) {
            SSL_do_handshake(connection.ends[end]);
            carry(&connection);
        }
    int works = SSL_is_init_finished(connection.ends[0]) && SSL_is_init_finished(connection.ends[1]);
    if (works) {
        drain(&connection);
        for (int round = 0; round < 4; round++) {
            say(&connection, 0, 20 + 97 * round);
            say(&connection, 1, 33 + 211 * round);
            if (kinds[kind].updates_keys && round == 1) {
                SSL_key_update(connection.ends[0], SSL_KEY_UPDATE_REQUESTED);
                SSL_do_handshake(connection.ends[0]);
                carry(&connection);
                drain(&connection);
            }
        }
        for (int end = 0; end < 2; end++) {
            SSL_shutdown(connection.ends[end]);
            carry(&connection);
        }
    }
    for (int end = 0; end < 2; end++) SSL_free(connection.ends[end]);
    RAND_set_rand_method(NULL);
    return works;
}
