internal import COpenSSL
internal import Synchronization

/// What all TLS connections of one leg share: versions, trusted roots, keys of session tickets. Made once, used from any
/// thread.
///
/// `@unchecked Sendable` because OpenSSL locks what changes in an `SSL_CTX` once connections are made from it, and the
/// rest does not change after `init`.
package final class TLSContext: @unchecked Sendable {
    enum Role {
        /// We are the TLS client: the server leg.
        case client
        /// We are the TLS server: the client leg.
        case server
    }

    /// Certificates in a server's chain that are followed at most, without its own and the root.
    private static let longestChain: Int32 = 10

    let role: Role
    let pointer: OpaquePointer
    /// See ``ServerLegTLS/isInsecure``.
    let isInsecure: Bool
    /// See ``ServerLegTLS/pins``.
    let pins: [CertificatePin]
    let keyLog: (@Sendable (String) -> Void)?
    let known = KnownCertificates()
    /// Whether the system's roots are trusted and still to be read.
    private let awaitsRoots: Mutex<Bool>
    /// Held because connections show it.
    private let identity: TLSIdentity?

    /// The server leg's context.
    ///
    /// - Throws: ``TLSContextError`` if the trusted certificates cannot be read, or OpenSSL fails.
    package convenience init(_ options: ServerLegTLS) throws(TLSContextError) {
        try self.init(
            role: .client,
            minimum: options.minimumVersion,
            isInsecure: options.isInsecure,
            pins: options.pins,
            identity: options.identity,
            keyLog: options.keyLog,
            trustsSystem: options.trust == .system
        )
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_verify_depth(pointer, Self.longestChain)
        SSL_CTX_set_cert_verify_callback(pointer, CertificateCheck.callback, nil)
        if options.minimumVersion < .tls12 { xmpptap_allow_legacy_servers(pointer) }
        if let identity = options.identity {
            try check("SSL_CTX_use_cert_and_key") {
                SSL_CTX_use_cert_and_key(pointer, identity.leaf, identity.key, identity.chainStack, 1)
            }
        }
        if case .file(let path) = options.trust { try trust(path) }
    }

    /// Reads the system's roots, unless they were read or are not trusted. The first connection does it, and takes as long:
    /// some ten milliseconds. Can be called from any thread; others wait.
    package func readRoots() throws(OpenSSLError) {
        try awaitsRoots.withLock { awaits throws(OpenSSLError) in
            guard awaits else { return }
            try TapSecurity.check("SSL_CTX_set_default_verify_paths") { SSL_CTX_set_default_verify_paths(pointer) }
            awaits = false
        }
    }

    /// The client leg's context, with its own keys for session tickets.
    ///
    /// - Throws: ``TLSContextError`` if OpenSSL fails.
    package convenience init(_ options: ClientLegTLS) throws(TLSContextError) {
        try self.init(
            role: .server,
            minimum: options.minimumVersion,
            isInsecure: false,
            identity: nil,
            keyLog: options.keyLog
        )
        SSL_CTX_set_cert_cb(pointer, TLSEngine.identityCallback, nil)
        SSL_CTX_set_alpn_select_cb(pointer, TLSEngine.protocolCallback, nil)
        // The engine adds the one ticket that an XMPP client, which has one connection, has use for, when it has something
        // else to send. Early data is refused by default.
        try check("SSL_CTX_set_num_tickets") { SSL_CTX_set_num_tickets(pointer, 0) }
    }

    private init(
        role: Role,
        minimum: TLSVersion,
        isInsecure: Bool,
        pins: [CertificatePin] = [],
        identity: TLSIdentity?,
        keyLog: (@Sendable (String) -> Void)?,
        trustsSystem: Bool = false
    ) throws(TLSContextError) {
        self.role = role
        self.isInsecure = isInsecure
        self.pins = pins
        self.keyLog = keyLog
        self.identity = identity
        awaitsRoots = Mutex(trustsSystem)
        do throws(OpenSSLError) {
            pointer = try made("SSL_CTX_new") {
                SSL_CTX_new(role == .client ? TLS_client_method() : TLS_server_method())
            }
        } catch {
            throw TLSContextError(error)
        }
        xmpptap_set_common_options(pointer)
        try check("SSL_CTX_set_min_proto_version") { xmpptap_set_minimum_version(pointer, Int32(minimum.rawValue)) }
        // Said here so that the system's configuration file does not decide.
        let level = minimum < .tls12 ? 0 : 1
        try check("SSL_CTX_set_cipher_list") { SSL_CTX_set_cipher_list(pointer, "DEFAULT:@SECLEVEL=\(level)") }
        SSL_CTX_set_info_callback(pointer, TLSEngine.infoCallback)
        if keyLog != nil { SSL_CTX_set_keylog_callback(pointer, TLSEngine.keyLogCallback) }
    }

    deinit { SSL_CTX_free(pointer) }

    private func trust(_ path: String) throws(TLSContextError) {
        let certificates: [OpaquePointer]
        do throws(TLSIdentityError) {
            certificates = try PEMFile(path).certificates()
        } catch {
            throw TLSContextError(description: error.description)
        }
        defer { for certificate in certificates { X509_free(certificate) } }
        let store = SSL_CTX_get_cert_store(pointer)
        for certificate in certificates {
            try check("X509_STORE_add_cert") { X509_STORE_add_cert(store, certificate) }
        }
        // A server's own certificate, or an intermediate one, can be named as trusted, and not roots alone.
        try check("X509_STORE_set_flags") { X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN)) }
    }

    private func check(_ call: StaticString, _ body: () -> Int32) throws(TLSContextError) {
        do throws(OpenSSLError) {
            try TapSecurity.check(call, body)
        } catch {
            throw TLSContextError(error)
        }
    }
}

/// Why there is no ``TLSContext``.
package struct TLSContextError: Error, Sendable, Hashable, CustomStringConvertible {
    /// One line for people; names the file, if one is to blame.
    package let description: String

    init(description: String) { self.description = description }

    init(_ error: OpenSSLError) { description = "cannot set up TLS: \(error)" }
}
