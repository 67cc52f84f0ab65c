internal import NIOCore
internal import TapDiagnosis
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// One client of a replay or script: connects, logs in, sends the given items, and reports received ones.
///
/// It insists on TLS unless the server is on this machine. All on its event loop, which calls it back; it is held until its
/// connection is over.
final class LiveClient: ClientOwner {
    /// An event of the client.
    enum Event {
        /// The session is open, with the features that the server offers in it.
        case bound(JID, StreamFeatures)
        /// The earlier session is resumed, with the number of its stanzas that the server has handled.
        case resumed(handled: UInt32)
        /// An item has come behind the login.
        case received([UInt8], Element)
        /// The session, or the attempt to open one, is over; nothing follows.
        case ended(LiveEnd)
    }

    private let server: LiveServer
    private let account: LiveAccount
    private let parser: StanzaParser
    private let loop: any EventLoop
    /// Nil once the session has ended.
    private var tell: ((Event) -> Void)?
    private var connection: ClientConnection?
    private var expiry: Scheduled<Void>?
    /// How often the server got more time for the current step.
    private var extensions = 0
    private static let mostExtensions = 5
    /// Number of bytes received, and when the last of them arrived.
    private var received = (count: 0, at: Int64.min)
    /// The value of ``received`` when the wait for the current step began.
    private var receivedBefore = 0
    private var isClosing = false
    private var hasRegistered = false
    /// Whether it has created its account (XEP-0077).
    private(set) var hasCreatedAccount = false
    /// The features that the server offers, until the account is created.
    private var offer: StreamFeatures?
    /// Bytes to write at the next flush.
    private var outgoing: [UInt8] = []
    private var isFlushDue = false

    /// - Parameters:
    ///   - parser: One for all clients of the event loop.
    ///   - tell: Called on the event loop, in the order of events.
    init(
        _ account: LiveAccount,
        at server: LiveServer,
        parser: StanzaParser,
        on loop: any EventLoop,
        tell: @escaping (Event) -> Void
    ) {
        self.account = account
        self.server = server
        self.parser = parser
        self.loop = loop
        self.tell = tell
    }

    /// Begins to connect and to log in.
    func connect() {
        let dialer = Dialer(server.endpoint, timeout: server.timeout)
        dialer.connect(on: loop).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let channel): connected(channel)
            case .failure(let error):
                // A connection that did not fit into the server's backlog is tried again.
                if Dialer.fault(of: error) == .timeout, extends() { return connect() }
                end(.unreachable(dialer.words(for: error)))
            }
        }
    }

    /// Whether the server is busy with other clients, which may delay the answer to this one.
    var isServerAtWork: () -> Bool = { false }

    /// Gives more time to a server that is at work, or whose bytes keep arriving.
    private func extends() -> Bool {
        let isReceiving = received.count > receivedBefore && !isClosing
        guard tell != nil, extensions < Self.mostExtensions, isServerAtWork() || isReceiving else { return false }
        extensions += 1
        return true
    }

    /// Called when more can be sent, after ``isWritable`` was false.
    var onWritable: (() -> Void)?

    /// Whether more can be sent at the moment without waiting in memory.
    var isWritable: Bool { connection?.isWritable ?? true }

    /// Number of bytes that are written at once, without waiting for more.
    static let writeSize = 1 << 16

    /// Sends items, verbatim; items sent in the same turn are written together.
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

    /// Closes the stream, and waits for the server to do so.
    func close() {
        guard let connection else { return end(.closed) }
        flush()
        isClosing = true
        connection.session.close()
        connection.perform()
        arm(.seconds(5))
    }

    /// Done when all that was sent so far has been given to the system, or the connection is over.
    func written() -> EventLoopFuture<Void> { connection?.written(on: loop) ?? loop.makeSucceededVoidFuture() }

    /// Closes the connection without an end of the stream, so that the session can be resumed.
    ///
    /// Bytes sent before are passed to the system first, unless the connection is not writable.
    ///
    /// - Returns: Done when it is closed.
    @discardableResult
    func drop() -> EventLoopFuture<Void> {
        let takesMore = isWritable
        flush()
        expiry?.cancel()
        onWritable = nil
        tell = nil
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

    private func connected(_ channel: any Channel) {
        guard tell != nil else { return channel.close(promise: nil) }
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
            let connection = ClientConnection(session, security, tls: tls, owner: self)
            self.connection = connection
            arm(server.timeout)
            try channel.pipeline.syncOperations.addHandler(connection)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            channel.close(promise: nil)
            end(.unreachable("\(server.endpoint): \(error)"))
        }
    }

    private var security: ClientSession.Security { .startTLS(isRequired: !server.endpoint.isLoopback) }

    /// Gives the server this time for the next step.
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

    func happened(_ action: ClientSession.Action) {
        switch action {
        case .offered(let features): offered(features)
        case .registered(let condition): registered(condition)
        case .authenticated: arm(server.timeout)
        case .bound(let jid, let features):
            expiry?.cancel()
            tell?(.bound(jid, features))
        case .resumed(let handled):
            expiry?.cancel()
            tell?(.resumed(handled: handled))
        case .element(let element, let bytes): tell?(.received(bytes, element))
        case .ended: end(.closed)
        case .failed(let fault): end(.failed(fault))
        case .send, .beginTLS, .announced: break
        }
    }

    private func offered(_ features: StreamFeatures) {
        guard let connection else { return }
        arm(server.timeout)
        if server.registers, !hasRegistered {
            hasRegistered = true
            offer = features
            connection.session.register(password: account.password)
            return connection.perform()
        }
        do {
            let nonce = try SCRAMMechanism.makeNonce(server.cryptography)
            let isLocal = server.endpoint.isLoopback
            guard let choice = LoginChoice.strongest(of: features, on: connection.session.channel, isLocal: isLocal)
            else {
                let offered = features.mechanisms.joined(separator: ", ")
                let words = "no mechanism that xmpptap supports here (offered: \(offered.isEmpty ? "none" : offered))"
                return fail(words)
            }
            connection.session.authenticate(choice, password: account.password, nonce: nonce)
            connection.perform()
        } catch {
            fail("\(error)")
        }
    }

    /// An account that is there already is as good as a new one.
    private func registered(_ condition: String?) {
        guard let offer else { return }
        guard condition == nil || condition == "conflict" else {
            return fail("the server refused to create the account (\(condition ?? ""))")
        }
        hasCreatedAccount = condition == nil
        offered(offer)
    }

    private func fail(_ reason: String) {
        end(.failed(ClientFault(step: .login, code: .given, reason: reason)))
    }

    func tlsOpened(_ parameters: TLSParameters) -> Bool { true }
    func tlsFailed(_ fault: TLSFault) {
        if case .untrusted = fault.code { end(.untrusted(fault.words(peer: "\(server.endpoint)"))) }
    }
    func tlsBegins(directly: Bool) {}
    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .recv else { return }
        received = (received.count + bytes.count, Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    }

    /// Number of bytes received of the next item, and when bytes last arrived, in nanoseconds of NIO's clock.
    var incomplete: (count: Int, at: Int64) { (connection?.session.pendingCount ?? 0, received.at) }

    func writable() { onWritable?() }

    func closed() { end(.failed(ClientFault(step: .open, code: .broken, reason: "the server closed the connection"))) }

    private func end(_ end: LiveEnd) {
        expiry?.cancel()
        onWritable = nil
        let tell = tell
        self.tell = nil
        tell?(.ended(end))
        // Its end says less than what led to it.
        connection?.close()
        connection = nil
    }
}
