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

/* SQLite locks a mutex for each allocation to keep statistics of memory, which xmpptap does not read. No effect after the first use of SQLite. */
static inline int xmpptap_omit_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

#endif
