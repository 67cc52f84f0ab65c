internal import COpenSSL

/// Settings of the OpenSSL library as a whole.
package enum OpenSSLLibrary {
    /// Leaves it to the system to free OpenSSL's memory when the process ends. Call this before any other function of
    /// OpenSSL.
    ///
    /// Otherwise OpenSSL frees its memory in `exit`, while other threads may still use it.
    package static func leaveCleanupToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
