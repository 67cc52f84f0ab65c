/// Text files that are part of the program, as they are in the repository.
#pragma once

/// Returns the text of a file, in UTF-8 with a zero byte at its end, by the name of the file without its folder, such as
/// `tls.md`, and for those of the page with it, such as `web/main.js`; an empty text for an unknown name. The text lives as long as the program.
const char *_Nonnull casset_text(const char *_Nonnull name);
