internal import NIOCore
internal import TapDiagnosis
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// One client of a replay or script: connects, logs in, sends the given items, and reports received ones.
///
/// It requires TLS unless the server is on this machine and no certificate is named for it. It is used on its event loop
/// only, and calls back on it; it is kept alive until its connection is closed.
final class LiveClient: ClientOwner {
    /// An event of the client.
    enum Event {
        /// A resource is bound; with the features of the last stream.
        case bound(JID, StreamFeatures)
        /// The earlier session is resumed; `handled` is the number of its stanzas that the server has handled.
        case resumed(handled: UInt32)
        /// An item was received after the login.
        case received([UInt8], Element)
        /// The session, or the attempt to open it, has ended; no other event follows.
        case ended(LiveEnd)
    }

    private let server: LiveServer
    private let account: LiveAccount
    private let parser: StanzaParser
    private let loop: any EventLoop
    /// Receives the events; nil once the session has ended.
    private var onEvent: ((Event) -> Void)?
    private var connection: ClientConnection?
    private var expiry: Scheduled<Void>?
    /// Number of times that the server got more time for the current step.
    private var extensions = 0
    private static let maximumExtensions = 5
    /// Number of bytes received, and the time of the last of them.
    private var received = (count: 0, at: Int64.min)
    /// The value of ``received`` when the wait for the current step began.
    private var receivedBefore = 0
    private var isClosing = false
    private var hasRegistered = false
    /// Whether this client has created its account (XEP-0077).
    private(set) var hasCreatedAccount = false
    /// The server's features before the login; needed again after the account has been created.
    private var offer: StreamFeatures?
    /// The offer of the server before the login was complete.
    private(set) var serverOffer = ServerOffer()
    /// Bytes to send at the next flush.
    private var outgoing: [UInt8] = []
    private var isFlushDue = false

    /// - Parameters:
    ///   - account: The account to log in to.
    ///   - server: The server to connect to.
    ///   - parser: A parser, shared by all clients of the event loop.
    ///   - onEvent: Called on the event loop with each event, in order.
    init(
        _ account: LiveAccount,
        at server: LiveServer,
        parser: StanzaParser,
        on loop: any EventLoop,
        onEvent: @escaping (Event) -> Void
    ) {
        self.account = account
        self.server = server
        self.parser = parser
        self.loop = loop
        self.onEvent = onEvent
    }

    /// Starts to connect and log in.
    func connect() {
        switch server.address {
        case .tcp(let endpoint): connect(to: endpoint)
        case .webSocket(let server): connect(to: server)
        }
    }

    private func connect(to endpoint: Endpoint) {
        let dialer = Dialer(endpoint, timeout: server.timeout)
        dialer.connect(on: loop).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let channel):
                let isRequired = server.requiresTLS || !endpoint.isLoopback
                connected(channel, security: .startTLS(isRequired: isRequired)) { connection in
                    try channel.pipeline.syncOperations.addHandler(connection)
                    try channel.syncOptions?.setOption(.autoRead, value: true)
                }
            case .failure(let error):
                // Try again after a timeout: the server's listen backlog may have been full.
                if Dialer.fault(of: error) == .timeout, extends() { return connect() }
                end(.unreachable(dialer.message(for: error)))
            }
        }
    }

    private func connect(to web: WebServer) {
        // A script can name another host than the URL.
        guard web.isSecure || web.endpoint.isLoopback else {
            return end(.unreachable("\(web): ws:// is for servers on this machine only; use wss://"))
        }
        WebSocketDialer.connect(
            to: web,
            tls: server.tls,
            timeout: server.timeout,
            cryptography: server.cryptography,
            on: loop
        ) { [self] result in
            switch result {
            case .success(let socket):
                if let fault = socket.subprotocolFault {
                    socket.channel.close(promise: nil)
                    return end(.unreachable("\(web): \(fault.explanation): check the path of the URL"))
                }
                connected(socket.channel, security: .clear, outerTLS: socket.tls) { try socket.add($0) }
            case .failure(let failure):
                if failure.fault == .timeout, extends() { return connect() }
                if case .untrusted? = failure.tls?.code { return end(.untrusted(failure.text)) }
                end(.unreachable(failure.text))
            }
        }
    }

    /// Returns whether the server is busy with other clients, which may delay the answer to this one.
    var isServerAtWork: () -> Bool = { false }

    /// Returns whether the server gets more time: it is busy with other clients, or its bytes keep arriving.
    private func extends() -> Bool {
        let isReceiving = received.count > receivedBefore && !isClosing
        guard onEvent != nil, extensions < Self.maximumExtensions, isServerAtWork() || isReceiving else { return false }
        extensions += 1
        return true
    }

    /// Called when the connection is writable again, after ``isWritable`` was false.
    var onWritable: (() -> Void)?

    /// Whether more can be sent without buffering it in memory.
    var isWritable: Bool { connection?.isWritable ?? true }

    /// Size in bytes from which data is sent at once, instead of waiting for more.
    static let writeSize = 1 << 16

    /// Sends items verbatim; items sent in the same turn of the event loop are written together.
    func send(_ bytes: [UInt8]) {
        guard !outgoing.isEmpty || bytes.count < Self.writeSize else { return connection?.send(bytes) ?? () }
        outgoing += bytes
        guard outgoing.count < Self.writeSize else { return flush() }
        guard !isFlushDue else { return }
        isFlushDue = true
        loop.assumeIsolated().execute { [self] in flush() }
    }

    private func flush() {
        isFlushDue = false
        guard !outgoing.isEmpty else { return }
        connection?.send(outgoing)
        outgoing.removeAll(keepingCapacity: true)
    }

    /// Closes the stream, and waits for the server to close its own.
    func close() {
        guard let connection else { return end(.closed) }
        flush()
        isClosing = true
        connection.session.close()
        connection.perform()
        arm(.seconds(5))
    }

    /// Returns a future that completes when all data sent so far has been given to the system, or the connection is
    /// closed.
    func written() -> EventLoopFuture<Void> { connection?.written(on: loop) ?? loop.makeSucceededVoidFuture() }

    /// Closes the connection without closing the stream, so that the session can be resumed.
    ///
    /// Data sent before is given to the system first, unless the connection is not writable.
    ///
    /// - Returns: A future that completes when the connection is closed.
    @discardableResult
    func drop() -> EventLoopFuture<Void> {
        let takesMore = isWritable
        flush()
        expiry?.cancel()
        onWritable = nil
        onEvent = nil
        guard takesMore, let connection else {
            connection?.close()
            return loop.makeSucceededVoidFuture()
        }
        let written = connection.written(on: loop)
        let deadline = loop.assumeIsolated().scheduleTask(in: .seconds(5)) { connection.close() }
        written.assumeIsolated().whenComplete { _ in
            deadline.cancel()
            connection.close()
        }
        return written
    }

    // MARK: The connection

    private func connected(
        _ channel: any Channel,
        security: ClientSession.Security,
        outerTLS: TLSHandler? = nil,
        _ add: (ClientConnection) throws -> Void
    ) {
        guard onEvent != nil else { return channel.close(promise: nil) }
        do {
            let session = ClientSession(
                account: account.jid,
                resource: account.resource,
                language: account.language,
                resumption: account.resumption,
                security: security,
                cryptography: server.cryptography,
                parser: parser
            )
            let target = ServerLegTarget(reference: try ServerReference(domain: account.jid.domain))
            let tls = ClientConnection.TLS(context: server.tls, target: target)
            let connection = ClientConnection(session, security, tls: tls, outerTLS: outerTLS, owner: self)
            self.connection = connection
            arm(server.timeout)
            try add(connection)
        } catch {
            channel.close(promise: nil)
            end(.unreachable("\(server.address): \(error)"))
        }
    }

    /// Sets the time limit for the next step.
    private func arm(_ time: TimeAmount) {
        extensions = 0
        wait(time)
    }

    private func wait(_ time: TimeAmount) {
        expiry?.cancel()
        receivedBefore = received.count
        expiry = loop.assumeIsolated().scheduleTask(in: time) { [self] in
            guard !extends() else { return wait(time) }
            connection?.session.expired()
            connection?.perform()
            connection?.close()
        }
    }

    // MARK: Events

    func handle(_ action: ClientSession.Action) {
        switch action {
        case .offered(let features): offered(features)
        case .registered(let condition): registered(condition)
        case .authenticated: arm(server.timeout)
        case .bound(let jid, let features):
            serverOffer.add(features)
            expiry?.cancel()
            onEvent?(.bound(jid, features))
        case .resumed(let handled):
            expiry?.cancel()
            onEvent?(.resumed(handled: handled))
        case .element(let element, let bytes): onEvent?(.received(bytes, element))
        case .ended: end(.closed)
        case .failed(let fault): end(.failed(fault))
        case .announced(let features): serverOffer.add(features)
        case .send, .beginTLS: break
        }
    }

    private func offered(_ features: StreamFeatures) {
        guard let connection else { return }
        serverOffer.isEncrypted = connection.session.channel.isSecure
        arm(server.timeout)
        if server.registers, !hasRegistered {
            hasRegistered = true
            offer = features
            connection.session.register(password: account.password)
            return connection.perform()
        }
        do {
            let nonce = try SCRAMMechanism.makeNonce(server.cryptography)
            let isLocal = server.address.endpoint.isLoopback
            guard let choice = LoginChoice.strongest(of: features, on: connection.session.channel, isLocal: isLocal)
            else {
                let offered = features.mechanisms.joined(separator: ", ")
                let reason = "no mechanism that xmpptap supports here (offered: \(offered.isEmpty ? "none" : offered))"
                return fail(reason)
            }
            connection.session.authenticate(choice, password: account.password, nonce: nonce)
            connection.perform()
        } catch {
            fail("\(error)")
        }
    }

    /// Continues with the login after the server's answer to the registration. An account that already exists is
    /// accepted.
    private func registered(_ condition: String?) {
        guard let offer else { return }
        guard condition == nil || condition == "conflict" else {
            return fail("the server refused to create the account (\(condition ?? ""))")
        }
        hasCreatedAccount = condition == nil
        offered(offer)
    }

    private func fail(_ reason: String) {
        end(.failed(ClientFault(step: .login, code: .unable, reason: reason)))
    }

    func tlsOpened(_ parameters: TLSParameters) -> Bool { true }
    func tlsFailed(_ fault: TLSFault) {
        if case .untrusted = fault.code { end(.untrusted(fault.explanation(peer: "\(server.address)"))) }
    }
    func tlsBegins(directly: Bool) {}
    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .recv else { return }
        received = (received.count + bytes.count, Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    }

    /// Number of bytes received of an incomplete item, and the time at which bytes last arrived, in nanoseconds of
    /// NIO's clock.
    var incomplete: (count: Int, at: Int64) { (connection?.session.pendingCount ?? 0, received.at) }

    func writable() { onWritable?() }

    func closed() { end(.failed(ClientFault(step: .open, code: .broken, reason: "the server closed the connection"))) }

    private func end(_ end: LiveEnd) {
        expiry?.cancel()
        onWritable = nil
        let onEvent = onEvent
        self.onEvent = nil
        onEvent?(.ended(end))
        // Close the connection after reporting: later events would give a less specific reason, and are ignored.
        connection?.close()
        connection = nil
    }
}
