/// Text files that are part of the program, as they are in the repository.
#pragma once

#include <stddef.h>

/// The bytes of a file, which live as long as the program.
typedef struct {
    const unsigned char *_Nonnull bytes;
    size_t size;
} CAsset;

/// Returns a file by its name without the folder, such as `tls.md`; an empty one for an unknown name.
CAsset casset_named(const char *_Nonnull name);
