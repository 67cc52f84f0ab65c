#ifndef XMPPTAP_SQLITE_SHIM_H
#define XMPPTAP_SQLITE_SHIM_H

#include <sqlite3.h>

/* SQLITE_TRANSIENT, which makes SQLite copy the bytes, is a cast that Swift does not import. Bytes at NULL would bind NULL. */
static inline int xmpptap_bind_text(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, bytes ? (const char *)bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int xmpptap_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}

#endif
