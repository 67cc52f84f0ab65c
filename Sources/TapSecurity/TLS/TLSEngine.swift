internal import COpenSSL
package import NIOCore
internal import TapCore
package import TapDiagnosis

/// TLS on one leg: converts between ciphertext and plaintext. Independent of sockets, clocks and channels.
///
/// ``receive(_:)`` accepts bytes and ``advance(into:)`` processes them. After any call there may be ciphertext to send
/// (``takeOutput()``), such as the alert after a failure. Not thread-safe.
package final class TLSEngine {
    /// The progress of the connection.
    package enum State: Sendable, Hashable {
        /// The handshake is in progress; waiting for the peer.
        case handshaking
        /// The handshake is complete; plaintext can pass.
        case open
        /// The peer will send no more data (close_notify); writing is still possible.
        case inputFinished
        /// TLS has failed.
        case failed(TLSFault)
    }

    let context: TLSContext
    /// The identity that the peer's certificate must match; nil for any, and if we are the server and request none.
    let reference: ServerReference?
    let offer: ClientLegOffer?
    let observed = TLSObservations()
    let ssl: OpaquePointer

    private let transport = TransportBIO()
    private(set) var identity: TLSIdentity?
    /// Whether the ``identity``'s certificate was sent in response to the ClientHello.
    package private(set) var hasShownIdentity = false
    /// Whether the handshake waits for ``present(_:)``: the server's certificate has been verified, and the server
    /// requests one. See ``ServerLegTLS/choosesIdentity``.
    package private(set) var awaitsIdentity = false
    private var hasChosenIdentity = false
    private var isOutputFinished = false
    /// Whether a TLS 1.3 client still has to get a session ticket.
    private var owesTicket = false
    /// The offsets at which TLS records begin in the plaintext of the last ``advance(into:)``, except the first record.
    package private(set) var recordStarts: [Int] = []
    /// The progress of the connection.
    package private(set) var state = State.handshaking
    /// Whether the handshake was completed, regardless of later failures.
    package private(set) var isEstablished = false

    /// Creates the TLS of a connection to a server. ``advance(into:)`` begins the handshake.
    package convenience init(_ context: TLSContext, to target: ServerLegTarget) throws(OpenSSLError) {
        try self.init(context, target: target, offer: nil)
    }

    /// Creates the TLS of a connection from a client.
    package convenience init(_ context: TLSContext, for offer: ClientLegOffer) throws(OpenSSLError) {
        try self.init(context, target: nil, offer: offer)
    }

    private init(_ context: TLSContext, target: ServerLegTarget?, offer: ClientLegOffer?) throws(OpenSSLError) {
        self.context = context
        self.offer = offer
        reference = target?.reference ?? offer?.reference
        identity = offer?.identity
        try context.readRoots()
        let ssl = try made("SSL_new") { SSL_new(context.pointer) }
        self.ssl = ssl
        let bio = try transport.makeBIO()
        // A single reference suffices for both directions.
        SSL_set_bio(ssl, bio, bio)
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        if let maximum = target?.maximumVersion ?? offer?.maximumVersion {
            try check("SSL_set_max_proto_version") { xmpptap_set_maximum_version(ssl, Int32(maximum.rawValue)) }
        }
        guard let target else {
            SSL_set_accept_state(ssl)
            SSL_set_msg_callback(ssl, Self.messageCallback)
            return
        }
        SSL_set_connect_state(ssl)
        if let name = target.serverName {
            try check("SSL_set_tlsext_host_name") { xmpptap_set_server_name(ssl, name) }
        }
        if let list = Self.protocolList(target.protocols) {
            // Unlike the other calls, this one returns 0 on success.
            try check("SSL_set_alpn_protos") { SSL_set_alpn_protos(ssl, list, UInt32(list.count)) == 0 ? 1 : 0 }
        }
    }

    deinit { SSL_free(ssl) }

    // MARK: Bytes

    /// Accepts ciphertext from the peer, which ``advance(into:)`` processes.
    package func receive(_ ciphertext: ByteBuffer) {
        switch state {
        case .handshaking where awaitsIdentity && waitingBytes + ciphertext.readableBytes > Self.maximumWaitingBytes:
            state = .failed(TLSFault(.protocolError("data before the answer to a request for a certificate")))
            transport.dropInput()
        case .handshaking, .open: transport.append(ciphertext)
        case .inputFinished, .failed: break
        }
    }

    /// Processes the received bytes as far as possible: the handshake, then plaintext, which is appended.
    @discardableResult
    package func advance(into plaintext: inout ByteBuffer) -> State {
        if !recordStarts.isEmpty { recordStarts = [] }
        if state == .handshaking, !awaitsIdentity { handshake() }
        if state == .open { read(into: &plaintext) }
        return state
    }

    /// Chooses the certificate for a server that requests one; nil presents none. The next ``advance(into:)`` continues
    /// the handshake.
    package func present(_ identity: TLSIdentity?) {
        guard awaitsIdentity else { return }
        (awaitsIdentity, hasChosenIdentity) = (false, true)
        self.identity = identity
    }

    /// Encrypts plaintext; the ciphertext is available at once. Does nothing after ``finish()``, or if the state is
    /// neither `open` nor `inputFinished`.
    ///
    /// - Returns: Whether the plaintext was accepted.
    @discardableResult
    package func write(_ plaintext: Span<UInt8>) -> Bool {
        guard state == .open || state == .inputFinished, !isOutputFinished else { return false }
        let count = plaintext.count
        guard count > 0 else { return true }
        addTicket()
        transport.reserve(count + (count >> 14 + 1) * Self.recordOverhead)
        return plaintext.withUnsafeBytes { bytes in
            ERR_clear_error()
            var written = 0
            let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &written)
            // The transport accepts all bytes, and partial writes are disabled, so the call writes everything or fails.
            guard result == 1 else {
                fail("SSL_write")
                return false
            }
            return true
        }
    }

    /// Sends close_notify, which announces that no more data follows: only once, and only after a handshake.
    package func finish() {
        guard state == .open || state == .inputFinished, !isOutputFinished else { return }
        isOutputFinished = true
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Reports the end of the peer's connection; a handshake in progress fails.
    package func transportEnded() {
        switch state {
        case .handshaking: state = .failed(TLSFault(.endedInHandshake))
        case .open, .inputFinished, .failed: break
        }
    }

    /// Returns the ciphertext to send; nil if there is none.
    package func takeOutput() -> ByteBuffer? { transport.takeOutput() }

    // MARK: Steps

    /// Maximum number of bytes that a record adds to its content: header, IV, padding and MAC.
    private static let recordOverhead = 96

    /// Maximum number of bytes that are stored while ``awaitsIdentity`` is true. A server has nothing to send then, except
    /// for session tickets.
    private static let maximumWaitingBytes = 64 << 10

    private var waitingBytes: Int { transport.input.readableBytes }

    private func handshake() {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result != 1 else {
            isEstablished = true
            owesTicket = offer != nil && !context.verifiesClients && SSL_version(ssl) == TLS1_3_VERSION
            return state = .open
        }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_WANT_X509_LOOKUP: awaitsIdentity = true
        default: fail("SSL_do_handshake")
        }
    }

    /// Sends the session ticket with the next write. OpenSSL's default, directly after the handshake, costs another
    /// packet, and the client has no use for the ticket before it has logged in.
    private func addTicket() {
        guard owesTicket else { return }
        owesTicket = false
        ERR_clear_error()
        // If this fails, the client gets no ticket.
        if SSL_new_session_ticket(ssl) != 1 { ERR_clear_error() }
    }

    private func read(into plaintext: inout ByteBuffer) {
        // Plaintext is never longer than its ciphertext, but part of a record may have been received before.
        var room = max(transport.input.readableBytes, 64)
        let start = plaintext.readableBytes
        var isInsideRecord = false
        while state == .open {
            let end = plaintext.readableBytes - start
            var count = 0
            var result: Int32 = 0
            plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { bytes in
                ERR_clear_error()
                result = SSL_read_ex(ssl, bytes.baseAddress, bytes.count, &count)
                return count
            }
            guard result == 1 else { return readFailed(result) }
            if end > 0, !isInsideRecord { recordStarts.append(end) }
            let pending = Int(SSL_pending(ssl))
            isInsideRecord = pending > 0
            // Another call would only allocate the buffer for a record and free it again.
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

    // MARK: Requests of OpenSSL

    /// Sets the certificate for this connection: 1 continues, 0 fails, and -1 waits for ``present(_:)``.
    private func setCertificate() -> Int32 {
        let isClient = offer == nil
        if isClient, !hasChosenIdentity {
            // An older error would count as the reason for the pause.
            ERR_clear_error()
            return -1
        }
        // Only a client may continue without a certificate.
        guard let identity else { return isClient ? 1 : 0 }
        hasShownIdentity = SSL_use_cert_and_key(ssl, identity.leaf, identity.key, identity.chainStack, 1) == 1
        return hasShownIdentity ? 1 : 0
    }

    /// Returns a list of names in the wire format of ALPN; nil if there is nothing to send. Names that are empty or
    /// longer than 255 bytes are left out.
    static func protocolList(_ names: [String]) -> [UInt8]? {
        let list = names.filter { 1...255 ~= $0.utf8.count }.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        return list.isEmpty || list.count > 0xFFFF ? nil : list
    }
}

/// The callbacks of OpenSSL. Each finds its engine by the `SSL *`.
extension TLSEngine {
    static func of(_ ssl: OpaquePointer?) -> TLSEngine? {
        guard let ssl, let engine = SSL_get_ex_data(ssl, 0) else { return nil }
        return Unmanaged<TLSEngine>.fromOpaque(engine).takeUnretainedValue()
    }

    /// Called after the ClientHello, or when the server requests a certificate.
    static let certificateCallback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        TLSEngine.of(ssl)?.setCertificate() ?? 0
    }

    /// Called to choose among the protocols that the client offers with ALPN.
    static let protocolCallback:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
            UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32 = { ssl, chosen, length, offered, count, _ in
            guard let engine = TLSEngine.of(ssl), case .chosen(let ours) = engine.offer?.protocols, let offered else {
                return SSL_TLSEXT_ERR_NOACK
            }
            let list = UnsafeBufferPointer(start: offered, count: Int(count))
            for name in ours {
                var index = 0
                while index < list.count {
                    let end = index + 1 + Int(list[index])
                    guard end <= list.count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                    if list[(index + 1)..<end].elementsEqual(name.utf8) {
                        // The answer points into the offer, which lives as long as OpenSSL needs it.
                        chosen?.pointee = offered + index + 1
                        length?.pointee = list[index]
                        return SSL_TLSEXT_ERR_OK
                    }
                    index = end
                }
            }
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }

    /// Called at each step of OpenSSL; only alerts are used.
    static let infoCallback: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { ssl, kind, value in
        guard kind & SSL_CB_ALERT != 0, let engine = TLSEngine.of(ssl) else { return }
        engine.observed.recordAlert(
            TLSAlert(code: UInt8(truncatingIfNeeded: value)),
            isFatal: value >> 8 == SSL3_AL_FATAL,
            isReceived: kind & SSL_CB_READ != 0
        )
    }

    /// Passes a secret of the connection to the key log, as a line of an SSLKEYLOGFILE.
    static let keyLogCallback: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = { ssl, line in
        guard let engine = TLSEngine.of(ssl), let line else { return }
        engine.context.keyLog?(String(cString: line))
    }
}

/// Type and size of a TLS message that was sent or received: a handshake message, an alert, or a change of keys.
package struct TLSMessage: Sendable, Hashable {
    /// The name in the RFC: `ClientHello`, `Alert close_notify`; `handshake message 99` for a message without a name.
    package let name: String
    /// Whether the message came from the peer.
    package let isReceived: Bool
    /// Length in bytes, without the header of the record.
    package let length: Int
}

extension TLSEngine {
    /// Maximum number of messages that are kept until they are taken. Further messages are not kept; only logs at level
    /// trace lack them.
    private static let maximumMessages = 256

    /// The TLS library that sent the ClientHello; nil if unknown, and until the ClientHello has come.
    package var clientLibrary: ClientSoftware.Library? { observed.clientLibrary }

    /// Keeps messages for ``takeMessages()``. Call it before the first byte; otherwise none are kept.
    package func keepMessages() {
        observed.keepsMessages = true
        SSL_set_msg_callback(ssl, Self.messageCallback)
    }

    /// Returns the messages since the last call.
    package func takeMessages() -> [TLSMessage] {
        guard !observed.messages.isEmpty else { return [] }
        defer { observed.messages = [] }
        return observed.messages
    }

    /// Called for each message that OpenSSL has sent or received. Only the first bytes of a message are used, to find
    /// its name.
    private static let messageCallback:
        @convention(c) (
            Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
        ) -> Void = { isSent, _, kind, bytes, count, ssl, _ in
            guard let engine = TLSEngine.of(ssl), let bytes, count > 0 else { return }
            let message = UnsafeRawBufferPointer(start: bytes, count: count)
            if kind == SSL3_RT_HANDSHAKE, isSent == 0, message.first == 1 {
                engine.observed.recordHello(Array(message.dropFirst(4)))
                // Remove the callback, because it costs time for every record.
                if !engine.observed.keepsMessages { SSL_set_msg_callback(ssl, nil) }
            }
            guard engine.observed.keepsMessages, engine.observed.messages.count < maximumMessages else { return }
            let name: String
            switch kind {
            case SSL3_RT_HANDSHAKE: name = handshake(message)
            case SSL3_RT_ALERT where count >= 2: name = "Alert \(TLSAlert(code: message[1]).name)"
            case SSL3_RT_CHANGE_CIPHER_SPEC: name = "ChangeCipherSpec"
            default: return
            }
            engine.observed.messages.append(TLSMessage(name: name, isReceived: isSent == 0, length: count))
        }

    /// Returns the name of a handshake message (RFC 8446 §4, RFC 5246 §7.4).
    private static func handshake(_ message: UnsafeRawBufferPointer) -> String {
        switch message.first ?? 255 {
        case 0: "HelloRequest"
        case 1: "ClientHello"
        // A HelloRetryRequest is recognised by its fixed random.
        case 2: message.dropFirst(6).starts(with: [0xCF, 0x21, 0xAD, 0x74]) ? "HelloRetryRequest" : "ServerHello"
        case 4: "NewSessionTicket"
        case 5: "EndOfEarlyData"
        case 8: "EncryptedExtensions"
        case 11: "Certificate"
        case 12: "ServerKeyExchange"
        case 13: "CertificateRequest"
        case 14: "ServerHelloDone"
        case 15: "CertificateVerify"
        case 16: "ClientKeyExchange"
        case 20: "Finished"
        case 22: "CertificateStatus"
        case 24: "KeyUpdate"
        case let type: "handshake message \(type)"
        }
    }
}

/// The results of OpenSSL's callbacks for one connection. A separate object, so that a callback does not access the
/// engine while a call of the engine is modifying it.
final class TLSObservations {
    /// Maximum number of alerts that are kept for each direction.
    private static let limit = 8

    /// The faults of the peer's certificate, including ignored ones.
    var faults: [CertificateFault] = []
    /// The roles that the chain of a client's certificate allows.
    var uses = CertificateUses.both
    /// See ``TLSEngine/keepMessages()``.
    var keepsMessages = false
    var messages: [TLSMessage] = []
    private(set) var clientLibrary: ClientSoftware.Library?
    private(set) var alertsReceived: [TLSAlert] = []
    private(set) var alertsSent: [TLSAlert] = []
    private(set) var fatalAlertReceived: TLSAlert?
    private(set) var fatalAlertSent: TLSAlert?

    /// Stores the library that sent a ClientHello; `body` is the message without its header.
    func recordHello(_ body: [UInt8]) {
        if case .hello(let hello) = ClientHello.read(body) { clientLibrary = hello.library }
    }

    func recordAlert(_ alert: TLSAlert, isFatal: Bool, isReceived: Bool) {
        if isReceived {
            if alertsReceived.count < Self.limit { alertsReceived.append(alert) }
            if isFatal { fatalAlertReceived = alert }
        } else {
            if alertsSent.count < Self.limit { alertsSent.append(alert) }
            if isFatal { fatalAlertSent = alert }
        }
    }
}
