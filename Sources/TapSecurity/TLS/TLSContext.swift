internal import COpenSSL
internal import Synchronization

/// The settings that all TLS connections of one leg share: versions, trust anchors, keys of session tickets. Created
/// once, and used from any thread.
///
/// `@unchecked Sendable` because OpenSSL locks the mutable parts of an `SSL_CTX` once connections are created from it,
/// and the other properties do not change after `init`.
package final class TLSContext: @unchecked Sendable {
    enum Role {
        /// xmpptap is the TLS client, on the server leg.
        case client
        /// xmpptap is the TLS server, on the client leg.
        case server
    }

    /// Maximum number of intermediate certificates in a peer's chain.
    private static let maximumChainLength: Int32 = 10

    let role: Role
    let pointer: OpaquePointer
    private let isInsecure: Bool
    private let choosesIdentity: Bool
    /// See ``ServerLegTLS/pins``.
    let pins: [CertificatePin]
    let keyLog: (@Sendable (String) -> Void)?
    let known = KnownCertificates()
    /// See ``ClientLegTLS/clientTrust``.
    let verifiesClients: Bool
    /// Whether the system's trust anchors are used, and have not been read yet.
    private let awaitsRoots: Mutex<Bool>
    /// Keeps the identity alive, because connections present it.
    private let identity: TLSIdentity?

    /// Creates the context of the server leg.
    ///
    /// - Throws: ``TLSContextError`` if the trusted certificates cannot be read, or OpenSSL fails.
    package convenience init(_ options: ServerLegTLS) throws(TLSContextError) {
        try self.init(
            role: .client,
            minimum: options.minimumVersion,
            isInsecure: options.isInsecure,
            choosesIdentity: options.choosesIdentity,
            pins: options.pins,
            identity: options.identity,
            keyLog: options.keyLog,
            trustsSystem: options.trust == .system
        )
        verifyPeer()
        if options.choosesIdentity { SSL_CTX_set_cert_cb(pointer, TLSEngine.certificateCallback, nil) }
        if options.minimumVersion < .tls12 { xmpptap_allow_legacy_servers(pointer) }
        if let identity = options.identity {
            try check("SSL_CTX_use_cert_and_key") {
                SSL_CTX_use_cert_and_key(pointer, identity.leaf, identity.key, identity.chainStack, 1)
            }
        }
        if case .file(let path) = options.trust { try trust(path) }
    }

    /// Reads the system's trust anchors, if they are used and were not read before. This takes some ten milliseconds;
    /// otherwise the first connection does it. Can be called from any thread; concurrent callers wait.
    package func readRoots() throws(OpenSSLError) {
        try awaitsRoots.withLock { awaits throws(OpenSSLError) in
            guard awaits else { return }
            try TapSecurity.check("SSL_CTX_set_default_verify_paths") { SSL_CTX_set_default_verify_paths(pointer) }
            awaits = false
        }
    }

    /// Creates the context of the client leg, with separate keys for session tickets.
    ///
    /// - Throws: ``TLSContextError`` if OpenSSL fails.
    package convenience init(_ options: ClientLegTLS) throws(TLSContextError) {
        try self.init(
            role: .server,
            minimum: options.minimumVersion,
            isInsecure: false,
            identity: nil,
            keyLog: options.keyLog,
            verifiesClients: options.clientTrust != nil,
            trustsSystem: options.clientTrust == .system
        )
        if let trust = options.clientTrust {
            verifyPeer()
            xmpptap_refuse_resumption(pointer)
            if case .file(let path) = trust { try self.trust(path) }
        }
        SSL_CTX_set_cert_cb(pointer, TLSEngine.certificateCallback, nil)
        SSL_CTX_set_alpn_select_cb(pointer, TLSEngine.protocolCallback, nil)
        // The engine sends a single ticket together with other data, because an XMPP client has only one connection.
        // OpenSSL refuses early data by default.
        try check("SSL_CTX_set_num_tickets") { SSL_CTX_set_num_tickets(pointer, 0) }
    }

    private init(
        role: Role,
        minimum: TLSVersion,
        isInsecure: Bool,
        choosesIdentity: Bool = false,
        pins: [CertificatePin] = [],
        identity: TLSIdentity?,
        keyLog: (@Sendable (String) -> Void)?,
        verifiesClients: Bool = false,
        trustsSystem: Bool = false
    ) throws(TLSContextError) {
        self.role = role
        self.isInsecure = isInsecure
        self.choosesIdentity = choosesIdentity
        self.pins = pins
        self.keyLog = keyLog
        self.verifiesClients = verifiesClients
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
        // Set explicitly, so that the system's configuration file does not decide.
        let level = minimum < .tls12 ? 0 : 1
        try check("SSL_CTX_set_cipher_list") { SSL_CTX_set_cipher_list(pointer, "DEFAULT:@SECLEVEL=\(level)") }
        SSL_CTX_set_info_callback(pointer, TLSEngine.infoCallback)
        if keyLog != nil { SSL_CTX_set_keylog_callback(pointer, TLSEngine.keyLogCallback) }
    }

    deinit { SSL_CTX_free(pointer) }

    /// Returns whether a server's certificate is accepted in spite of a fault. Between servers, the pin of a certificate is
    /// the user's choice, which the initiating server does not know.
    func accepts(_ fault: CertificateFault) -> Bool { isInsecure && !(choosesIdentity && fault.isOfPin) }

    /// Requests the peer's certificate, and verifies it.
    private func verifyPeer() {
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_verify_depth(pointer, Self.maximumChainLength)
        SSL_CTX_set_cert_verify_callback(pointer, CertificateCheck.callback, nil)
    }

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
        // Trust anchors may be server certificates or intermediate certificates, not only roots.
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

/// The reason why a ``TLSContext`` cannot be created.
package struct TLSContextError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A human-readable line, with the file if one is the cause.
    package let description: String

    init(description: String) { self.description = description }

    init(_ error: OpenSSLError) { description = "cannot set up TLS: \(error)" }
}
