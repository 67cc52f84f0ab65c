internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Reads the bodies of a request and its response that ``WebHandler`` relays, and passes them to the BOSH session that
/// they belong to. It changes and delays nothing.
///
/// A body is read when its last byte has arrived, before that byte is relayed: so its receiver cannot cause another body
/// that is read first.
final class BOSHExchange {
    /// Maximum number of bytes of a body that is decoded.
    private static let maximumBody = 4 << 20
    /// The number of bytes within which the namespace of BOSH must appear.
    private static let searchLimit = 4096
    private static let namespace = Array("http://jabber.org/protocol/httpbind".utf8)

    private enum State {
        /// The request is not complete.
        case collecting
        /// The request is complete, and the server is being connected.
        case connecting(BOSHBody, Run.Instant)
        /// The request belongs to this session.
        case awaiting(rid: UInt64, NIOLoopBound<BOSHDriver>)
        /// The request belongs to a session that is not known; its response shows whether the server knows it.
        case unknown(rid: UInt64, BOSHBody, Run.Instant)
        /// It is not BOSH, or is not decoded.
        case over
    }

    private let front: WebFront
    private let head: HTTPRequestHead
    private let remote: SocketAddress?
    private let tls: TLSHandler?
    private var state = State.collecting
    private var isConnected = false
    private var serverTLS: TLSAgreement?
    private var request: BodyCollector
    private var response = BodyCollector(limit: 0, length: nil)
    private var status: Int?
    private var isCompressed = false

    /// Collects the bytes of a body.
    private struct BodyCollector {
        private(set) var bytes = ByteBuffer()
        private(set) var count = 0
        let limit: Int
        /// The announced number of bytes; nil if it is not known.
        let length: Int?

        init(limit: Int, length: Int?) {
            self.limit = limit
            self.length = length
        }

        init(limit: Int, _ headers: HTTPHeaders) {
            self.init(limit: limit, length: headers.first(name: "content-length").flatMap { Int($0) })
        }

        var isTooLong: Bool { count > limit }

        /// Whether all announced bytes have arrived.
        var isWhole: Bool { length.map { count >= $0 } ?? false }

        mutating func append(_ part: ByteBuffer) {
            count += part.readableBytes
            guard !isTooLong else { return bytes = ByteBuffer() }
            bytes.writeImmutableBuffer(part)
        }

        mutating func clear() { bytes = ByteBuffer() }
    }

    /// Creates a reader for a request; nil if it cannot be one of BOSH.
    init?(_ front: WebFront, _ head: HTTPRequestHead, _ remote: SocketAddress?, _ tls: TLSHandler?) {
        guard head.method == .POST else { return nil }
        self.front = front
        self.head = head
        self.remote = remote
        self.tls = tls
        request = BodyCollector(limit: Self.maximumBody, head.headers)
        isCompressed = Self.isCompressed(head.headers)
        if isCompressed, head.headers.first(name: "content-type")?.contains("xml") == false { return nil }
    }

    private static func isCompressed(_ headers: HTTPHeaders) -> Bool {
        headers[canonicalForm: "content-encoding"].contains { $0.lowercased() != "identity" }
    }

    private var now: Run.Instant { front.loop.context.clock.now() }

    // MARK: The request

    /// Reads a part of the request, before it is relayed.
    func sent(_ part: HTTPServerRequestPart) {
        guard case .collecting = state else { return }
        switch part {
        case .head: break
        case .body(let body):
            request.append(body)
            guard mayBeBOSH else { return finish() }
            if request.isWhole { readRequest() }
        case .end: readRequest()
        }
    }

    /// Whether the bytes so far may be a body of BOSH.
    private var mayBeBOSH: Bool {
        if request.isTooLong { return true }
        let collected = request.bytes
        let bytes = collected.readableBytesUInt8Span
        var index = 0
        while index < bytes.count, [0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains(bytes[index]) { index += 1 }
        guard index < bytes.count else { return true }
        guard bytes[index] == 0x3C else { return isCompressed && request.count <= Self.searchLimit }
        return bytes.count < Self.searchLimit
            || bytes.extracting(..<Self.searchLimit).contains(Self.namespace.span)
    }

    private func readRequest() {
        let now = now
        if isCompressed {
            return refuse(
                "bosh-compressed",
                "a POST request is compressed (Content-Encoding); if it is BOSH, it is not decoded"
            )
        }
        if request.isTooLong {
            return refuse(
                "limit-body",
                "a POST request has more than \(Self.maximumBody) bytes; if it is BOSH, it is not decoded"
            )
        }
        let collected = request.bytes
        guard collected.readableBytesUInt8Span.contains(Self.namespace.span) else { return finish() }
        do throws(BOSHBody.Fault) {
            let body = try read(request)
            request.clear()
            guard body.rid != nil else {
                return refuse(
                    "bosh-no-rid",
                    "a BOSH request has no rid from 0 to 2^53-1 (XEP-0124 §14.1); it is not decoded"
                )
            }
            state = .connecting(body, now)
            if isConnected { begin() }
        } catch {
            refuse(error.code, "a BOSH request cannot be decoded: \(error.explanation); it is relayed unchanged")
        }
    }

    private func read(_ body: BodyCollector) throws(BOSHBody.Fault) -> BOSHBody {
        guard !body.isTooLong else { throw .tooLong(limit: Self.maximumBody) }
        let collected = body.bytes
        return try BOSHBody(
            collected.readableBytesUInt8Span,
            limits: front.loop.context.options.limits,
            limit: Self.maximumBody,
            front.loop.tools.parser
        )
    }

    /// The server is connected, with this TLS.
    func connected(_ agreement: TLSAgreement?) {
        isConnected = true
        serverTLS = agreement
        begin()
    }

    /// The server cannot be connected.
    func failed(_ failure: WebConnection.Failure) {
        guard case .connecting(let body, let at) = state, let rid = body.rid, body.sid == nil,
            let driver = makeDriver(rid, isJoined: false, at: at)
        else { return lost() }
        finish()
        driver.request(rid, body, at: at)
        driver.handle(.unreachable("\(failure.explanation)", failure.fault), at: now)
    }

    /// Passes the request to its session.
    private func begin() {
        guard case .connecting(let body, let at) = state, let rid = body.rid else { return }
        if let sid = body.sid {
            guard let driver = front.loop.context.bosh.driver(of: key(sid)) else {
                return state = .unknown(rid: rid, body, at)
            }
            state = .awaiting(rid: rid, driver)
            return Self.perform(driver) { $0.request(rid, body, at: at) }
        }
        guard let driver = makeDriver(rid, isJoined: false, at: at) else { return finish() }
        state = .awaiting(rid: rid, NIOLoopBound(driver, eventLoop: front.loop.eventLoop))
        driver.handle(opening, at: at)
        driver.request(rid, body, at: at)
    }

    private var opening: BOSHEvent {
        var opening = BOSHOpening(
            path: WebAccess.path(head),
            origin: head.headers.first(name: "origin"),
            clientTLS: tls.flatMap { $0.engine.parameters() }.map { TLSAgreement($0, .client) },
            serverTLS: serverTLS
        )
        opening.hasRules = front.loop.context.options.rules != nil
        return .opened(opening)
    }

    private func key(_ sid: String) -> BOSHTable.Key { BOSHTable.Key(server: "\(front.server)", sid: sid) }

    private func makeDriver(_ rid: UInt64, isJoined: Bool, at: Run.Instant) -> BOSHDriver? {
        guard !front.loop.isStopping else { return nil }
        switch front.loop.context.bosh.reserve() {
        case .granted:
            let remote = remote?.endpoint?.description
            return BOSHDriver(front.loop, front.server, remote: remote, rid: rid, isJoined: isJoined, at: at)
        case .full(let isReported):
            if !isReported { refuse("bosh-limit", "too many BOSH sessions: new ones are relayed, but not decoded") }
            return nil
        }
    }

    /// Passes a body to a session. It is also queued on the session's event loop itself, after the bodies that other
    /// event loops have queued before.
    private static func perform(
        _ driver: NIOLoopBound<BOSHDriver>,
        _ body: @escaping @Sendable (BOSHDriver) -> Void
    ) {
        driver.eventLoop.execute { body(driver.value) }
    }

    // MARK: The response

    /// Reads a part of the response, before it is relayed.
    func received(_ part: HTTPClientResponsePart) {
        switch part {
        case .head(let answer):
            guard answer.status.code >= 200 else { return }
            status = Int(answer.status.code)
            isCompressed = Self.isCompressed(answer.headers)
            response = BodyCollector(limit: Self.maximumBody, answer.headers)
        case .body(let body):
            guard isAwaiting, status == 200, !isCompressed else { return }
            response.append(body)
            if response.isWhole { readResponse() }
        case .end: readResponse()
        }
    }

    private var isAwaiting: Bool {
        switch state {
        case .awaiting, .unknown: true
        case .collecting, .connecting, .over: false
        }
    }

    private func readResponse() {
        guard isAwaiting, let status else { return finish() }
        let answer = answer(status)
        let (waiting, now) = (state, now)
        finish()
        switch waiting {
        case .awaiting(let rid, let driver):
            if driver.eventLoop.inEventLoop, case .body(let body) = answer, let sid = body.sid, !body.isTerminate {
                _ = driver.value.register(key(sid))
            }
            Self.perform(driver) { $0.response(to: rid, answer, at: now) }
        case .unknown(let rid, let body, let at): join(rid, body, at, answer, now)
        case .collecting, .connecting, .over: break
        }
    }

    private func answer(_ status: Int) -> BOSHAnswer {
        guard status == 200 else { return .status(status) }
        guard !isCompressed else { return .compressed }
        do throws(BOSHBody.Fault) {
            return .body(try read(response))
        } catch {
            return .unread(code: error.code, explanation: error.explanation)
        }
    }

    /// Begins to observe a session that was created before, if the server knows it.
    private func join(_ rid: UInt64, _ body: BOSHBody, _ at: Run.Instant, _ answer: BOSHAnswer, _ now: Run.Instant) {
        guard let sid = body.sid else { return }
        if let driver = front.loop.context.bosh.driver(of: key(sid)) {
            return Self.perform(driver) { driver in
                driver.request(rid, body, at: at)
                driver.response(to: rid, answer, at: now)
            }
        }
        guard case .body(let response) = answer, !response.isTerminate else {
            return front.loop.record(
                remote,
                "bosh-unknown-session",
                .warn,
                "a BOSH request of a session that is not known; the server's answer: \(Self.outcome(answer))",
                details: ["rid": .integer(Int64(clamping: rid))]
            )
        }
        guard let driver = makeDriver(rid, isJoined: true, at: at) else { return }
        if let known = driver.register(key(sid)) {
            driver.stop()
            return Self.perform(known) { driver in
                driver.request(rid, body, at: at)
                driver.response(to: rid, answer, at: now)
            }
        }
        driver.handle(opening, at: at)
        driver.request(rid, body, at: at)
        driver.response(to: rid, answer, at: now)
    }

    private static func outcome(_ answer: BOSHAnswer) -> String {
        switch answer {
        case .body(let body): LineBuffer.escaped(body.condition.map { String($0.prefix(60)) } ?? "terminate")
        case .status(let status): "HTTP \(status)"
        case .unread(_, let explanation): explanation
        case .compressed: "compressed"
        }
    }

    /// The exchange ends without a whole response.
    func lost() {
        let waiting = state
        let now = now
        finish()
        if case .awaiting(let rid, let driver) = waiting { Self.perform(driver) { $0.lost(rid, at: now) } }
    }

    private func finish() {
        state = .over
        request.clear()
        response.clear()
    }

    /// Records why a request is not decoded.
    private func refuse(_ code: String, _ message: Prose) {
        finish()
        front.loop.record(remote, code, .warn, message, details: ["path": .string(WebAccess.path(head))])
    }
}
