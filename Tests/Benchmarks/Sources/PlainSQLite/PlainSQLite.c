#include "PlainSQLite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain_store {
    sqlite3 *database;
    sqlite3_stmt *name, *row, *words;
    char *text;
    size_t size;
};

static int check(struct plain_store *store, int status)
{
    if (status == SQLITE_OK || status == SQLITE_DONE) return 0;
    fprintf(stderr, "benchmark: %s\n", sqlite3_errmsg(store->database));
    return -1;
}

static int execute(struct plain_store *store, const char *sql)
{
    return check(store, sqlite3_exec(store->database, sql, NULL, NULL, NULL));
}

static int prepare(struct plain_store *store, const char *sql, sqlite3_stmt **statement)
{
    return check(store, sqlite3_prepare_v2(store->database, sql, -1, statement, NULL));
}

/* Creates the tables of a store, except for its indexes of words. */
static int create_tables(struct plain_store *store, const char *model)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int status = sqlite3_open_v2(model, &database, SQLITE_OPEN_READWRITE, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_prepare_v2(database,
                                    "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'word%'"
                                    " ORDER BY rowid",
                                    -1, &statement, NULL);
    while (status == SQLITE_OK && (status = sqlite3_step(statement)) == SQLITE_ROW)
        status = execute(store, (const char *)sqlite3_column_text(statement, 0)) ? SQLITE_ERROR : SQLITE_OK;
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return status == SQLITE_DONE ? 0 : -1;
}

struct plain_store *plain_sqlite_create(const char *path, const char *model, const char *settings)
{
    struct plain_store *store = calloc(1, sizeof *store);
    if (!store) return NULL;
    if (!check(store, sqlite3_open(path, &store->database))
        && !execute(store, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        && !create_tables(store, model)
        && !execute(store, "CREATE VIRTUAL TABLE word_1 USING"
                           " fts5(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')")
        && !execute(store, settings)
        && !prepare(store, "INSERT INTO name(id, text) VALUES (?, ?)", &store->name)
        && !prepare(store,
                    "INSERT OR IGNORE INTO stanza(id, session, time, received, account, resource, peer, peer_resource,"
                    " direction, kind, source, type, payload, stanza_by, size, round_trip, stanza, body, subject,"
                    " stanza_id, copy_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    &store->row)
        && !prepare(store, "INSERT INTO word_1(rowid, words) VALUES (?, ?)", &store->words))
        return store;
    plain_sqlite_close(store);
    return NULL;
}

static void bind_number(sqlite3_stmt *statement, int index, int64_t number)
{
    if (number == PLAIN_NULL)
        sqlite3_bind_null(statement, index);
    else
        sqlite3_bind_int64(statement, index, number);
}

static void bind_text(sqlite3_stmt *statement, int index, struct plain_text text)
{
    if (!text.bytes)
        sqlite3_bind_null(statement, index);
    else if (text.is_blob)
        sqlite3_bind_blob(statement, index, text.bytes, text.count, SQLITE_STATIC);
    else
        sqlite3_bind_text(statement, index, text.bytes, text.count, SQLITE_STATIC);
}

static int step(struct plain_store *store, sqlite3_stmt *statement)
{
    int status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return check(store, status);
}

int plain_sqlite_name(struct plain_store *store, int64_t number, const char *text)
{
    sqlite3_bind_int64(store->name, 1, number);
    sqlite3_bind_text(store->name, 2, text, -1, SQLITE_STATIC);
    return step(store, store->name);
}

/* The words of a body, of the account and of the peer, as the store writes them. The bodies are in ASCII. */
static int insert_words(struct plain_store *store, const struct plain_row *row)
{
    size_t needed = (size_t)row->body.count + 64, count = 0;
    if (store->size < needed) {
        char *text = realloc(store->text, needed);
        if (!text) return -1;
        store->text = text;
        store->size = needed;
    }
    for (int at = 0; at < row->body.count; at++) {
        char byte = row->body.bytes[at];
        store->text[count++] = byte >= 'A' && byte <= 'Z' ? byte | 32 : byte;
    }
    count += (size_t)sprintf(store->text + count, " \xee\x80\x80%lld", (long long)row->account);
    if (row->peer != PLAIN_NULL)
        count += (size_t)sprintf(store->text + count, " \xee\x80\x81%lld", (long long)row->peer);
    sqlite3_bind_int64(store->words, 1, row->id);
    sqlite3_bind_text(store->words, 2, store->text, (int)count, SQLITE_STATIC);
    return step(store, store->words);
}

int plain_sqlite_insert(struct plain_store *store, const struct plain_row *rows, long count)
{
    if (execute(store, "BEGIN IMMEDIATE")) return -1;
    for (const struct plain_row *row = rows; row < rows + count; row++) {
        const int64_t numbers[] = {
            row->id, row->session, row->time, row->received, row->account, row->resource, row->peer, row->peer_resource,
            row->direction, row->kind, row->source, row->type, row->payload, row->stanza_by, row->size, row->round_trip,
        };
        int index = 0;
        while (index < (int)(sizeof numbers / sizeof *numbers)) {
            bind_number(store->row, index + 1, numbers[index]);
            index++;
        }
        bind_text(store->row, ++index, row->stanza);
        bind_text(store->row, ++index, row->body);
        bind_text(store->row, ++index, row->subject);
        bind_text(store->row, ++index, row->stanza_id);
        bind_text(store->row, ++index, row->copy_key);
        if (step(store, store->row)) return -1;
        if (row->body.bytes && insert_words(store, row)) return -1;
    }
    return execute(store, "COMMIT");
}

void plain_sqlite_close(struct plain_store *store)
{
    sqlite3_finalize(store->name);
    sqlite3_finalize(store->row);
    sqlite3_finalize(store->words);
    sqlite3_exec(store->database, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite3_close(store->database);
    free(store->text);
    free(store);
}
