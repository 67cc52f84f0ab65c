internal import COpenSSL

/// OpenSSL as a whole.
package enum OpenSSLLibrary {
    /// Lets the system free what OpenSSL has allocated when the process ends; to be called before anything else of it.
    ///
    /// Otherwise OpenSSL frees it in `exit`, while other threads may still use it.
    package static func leaveCleanupToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
