internal import COpenSSL
public import NIOCore

/// TLS on one leg: ciphertext in, plaintext out, and the other way round. Knows no socket, no clock and no channel.
///
/// Bytes come by ``receive(_:)`` and are worked off by ``advance(into:)``; whatever is called, ciphertext to be sent may
/// be there afterwards (``takeOutput()``), also after a failure: the alert. Not for use from two threads at once.
public final class TLSEngine {
    /// How far it has come.
    public enum State: Sendable, Hashable {
        /// The handshake goes on; waiting for the peer.
        case handshaking
        /// The handshake waits for ``use(_:)``.
        case needsIdentity
        /// Plaintext passes.
        case open
        /// The peer said that it sends no more (close_notify); writing goes on.
        case inputFinished
        /// It is over.
        case failed(TLSFault)
    }

    let context: TLSContext
    /// Whom the peer's certificate must stand for; nil if we are the server.
    let reference: ServerReference?
    let offer: ClientLegOffer?
    let observed = TLSObservations()
    let ssl: OpaquePointer

    private let transport = TransportBIO()
    private(set) var identity: TLSIdentity?
    /// The client's hello was answered by the certificate of the ``identity``.
    public private(set) var hasShownIdentity = false
    private var isOutputFinished = false
    /// A TLS 1.3 client is to get a ticket, by which it can resume.
    private var owesTicket = false
    /// How far it has come.
    public private(set) var state = State.handshaking
    /// Whether the handshake ended well, whatever came after.
    public private(set) var isEstablished = false

    /// TLS towards a server. ``advance(into:)`` begins it.
    public convenience init(_ context: TLSContext, to target: ServerLegTarget) throws(OpenSSLError) {
        try self.init(context, target: target, offer: nil)
    }

    /// TLS towards a client.
    public convenience init(_ context: TLSContext, for offer: ClientLegOffer) throws(OpenSSLError) {
        try self.init(context, target: nil, offer: offer)
    }

    private init(_ context: TLSContext, target: ServerLegTarget?, offer: ClientLegOffer?) throws(OpenSSLError) {
        self.context = context
        self.offer = offer
        reference = target?.reference
        identity = offer?.identity
        let ssl = try made("SSL_new") { SSL_new(context.pointer) }
        self.ssl = ssl
        let bio = try transport.makeBIO()
        // One reference serves both ways.
        SSL_set_bio(ssl, bio, bio)
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        if let maximum = target?.maximumVersion ?? offer?.maximumVersion {
            try check("SSL_set_max_proto_version") { xmpptap_set_maximum_version(ssl, Int32(maximum.rawValue)) }
        }
        guard let target else {
            SSL_set_accept_state(ssl)
            return
        }
        SSL_set_connect_state(ssl)
        if let name = target.serverName {
            try check("SSL_set_tlsext_host_name") { xmpptap_set_server_name(ssl, name) }
        }
        if let list = Self.protocolList(target.protocols) {
            // Alone among these calls it gives 0 on success.
            try check("SSL_set_alpn_protos") { SSL_set_alpn_protos(ssl, list, UInt32(list.count)) == 0 ? 1 : 0 }
        }
    }

    deinit { SSL_free(ssl) }

    // MARK: Bytes

    /// Takes ciphertext from the peer, for ``advance(into:)``.
    public func receive(_ ciphertext: ByteBuffer) {
        switch state {
        case .handshaking, .needsIdentity, .open: transport.append(ciphertext)
        case .inputFinished, .failed: break
        }
    }

    /// Goes as far as the bytes that came allow: handshake, then plaintext, which is appended.
    @discardableResult
    public func advance(into plaintext: inout ByteBuffer) -> State {
        if state == .handshaking { handshake() }
        if state == .open { read(into: &plaintext) }
        return state
    }

    /// Encrypts; the ciphertext is there at once. Nothing happens unless the state is `open` or `inputFinished`, and
    /// ``finish()`` was not called.
    ///
    /// - Returns: Whether it was written.
    @discardableResult
    public func write(_ plaintext: Span<UInt8>) -> Bool {
        guard state == .open || state == .inputFinished, !isOutputFinished else { return false }
        let count = plaintext.count
        guard count > 0 else { return true }
        addTicket()
        transport.reserve(count + (count >> 14 + 1) * Self.recordOverhead)
        return plaintext.withUnsafeBytes { bytes in
            ERR_clear_error()
            var written = 0
            let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &written)
            // The transport takes everything and no mode allows parts, so it is all or a failure.
            guard result == 1 else {
                fail("SSL_write")
                return false
            }
            return true
        }
    }

    /// Says that no more will be written (close_notify); once, and only after a handshake.
    public func finish() {
        guard state == .open || state == .inputFinished, !isOutputFinished else { return }
        isOutputFinished = true
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Says that the peer's connection is over: a handshake that goes on fails by it.
    public func transportEnded() {
        switch state {
        case .handshaking, .needsIdentity: state = .failed(TLSFault(.endedInHandshake))
        case .open, .inputFinished, .failed: break
        }
    }

    /// Ciphertext to be sent; nil if there is none.
    public func takeOutput() -> ByteBuffer? { transport.takeOutput() }

    /// Whether ``takeOutput()`` has something.
    public var hasOutput: Bool { transport.hasOutput }

    /// Goes on after ``State/needsIdentity`` with this identity, at the next ``advance(into:)``.
    public func use(_ identity: TLSIdentity) {
        self.identity = identity
        if state == .needsIdentity { state = .handshaking }
    }

    // MARK: Steps

    /// Bytes that a record adds to its content at most: header, IV, padding and MAC.
    private static let recordOverhead = 96

    private func handshake() {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result != 1 else {
            isEstablished = true
            owesTicket = offer != nil && SSL_version(ssl) == TLS1_3_VERSION
            return state = .open
        }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_WANT_X509_LOOKUP: state = .needsIdentity
        default: fail("SSL_do_handshake")
        }
    }

    /// Has the next write bring a ticket too. After the handshake, as OpenSSL would do it by itself, it would need a packet
    /// of its own, and the client has no use for it before it is logged in.
    private func addTicket() {
        guard owesTicket else { return }
        owesTicket = false
        ERR_clear_error()
        // A client that can do without has to.
        if SSL_new_session_ticket(ssl) != 1 { ERR_clear_error() }
    }

    private func read(into plaintext: inout ByteBuffer) {
        // No plaintext is longer than its ciphertext; a record may have begun before.
        var room = max(transport.input.readableBytes, 64)
        while state == .open {
            var count = 0
            var result: Int32 = 0
            plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { bytes in
                ERR_clear_error()
                result = SSL_read_ex(ssl, bytes.baseAddress, bytes.count, &count)
                return count
            }
            guard result == 1 else { return readFailed(result) }
            let pending = Int(SSL_pending(ssl))
            // Another call would only take a buffer for a record and give it back.
            if pending == 0, transport.input.readableBytes == 0 { return }
            room = max(pending, 64)
        }
    }

    private func readFailed(_ result: Int32) {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_ZERO_RETURN:
            state = .inputFinished
            transport.dropInput()
        default: fail("SSL_read")
        }
    }

    private func fail(_ call: String) {
        let fault = TLSFault(
            call: call,
            alertReceived: observed.fatalAlertReceived,
            alertSent: observed.fatalAlertSent,
            certificate: observed.faults
        )
        state = .failed(fault)
        transport.dropInput()
    }

    // MARK: What OpenSSL asks for

    /// Sets the certificate for this connection; false while there is none.
    func showIdentity() -> Bool? {
        guard let identity else { return nil }
        hasShownIdentity = SSL_use_cert_and_key(ssl, identity.leaf, identity.key, identity.chainStack, 1) == 1
        return hasShownIdentity
    }

    /// ALPN's form of a list of names; nil if there is nothing to send. Names that do not fit are left out.
    static func protocolList(_ names: [String]) -> [UInt8]? {
        let list = names.filter { 1...255 ~= $0.utf8.count }.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        return list.isEmpty || list.count > 0xFFFF ? nil : list
    }
}
