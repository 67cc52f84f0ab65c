#ifndef XMPPTAP_PLAIN_SQLITE_H
#define XMPPTAP_PLAIN_SQLITE_H

#include <stdint.h>

/* A column of a row that has no number or no text. */
#define PLAIN_NULL INT64_MIN

struct plain_text {
    const char *bytes; /* NULL: no text */
    int count;
    int is_blob;
};

/* A row of the table `stanza`, with the numbers of its names. */
struct plain_row {
    int64_t id, session, time, received, account, resource, peer, peer_resource, direction, kind, source, type, payload,
        stanza_by, size, round_trip;
    struct plain_text stanza, body, subject, stanza_id, copy_key;
};

struct plain_store;

/* Creates a store with the tables of another one, `model`, and one index of words. `settings` are further statements. Returns
   NULL after an error, which it prints. */
struct plain_store *plain_sqlite_create(const char *path, const char *model, const char *settings);

/* Inserts rows in one transaction, with the words of their bodies. Both return 0, or -1 after an error, which they print. */
int plain_sqlite_insert(struct plain_store *store, const struct plain_row *rows, long count);
int plain_sqlite_name(struct plain_store *store, int64_t number, const char *text);

/* Writes the write-ahead log to the file, and closes it. */
void plain_sqlite_close(struct plain_store *store);

#endif
