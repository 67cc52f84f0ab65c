internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
package import TapRecord

/// Sends requests to a running proxy: HTTP/1.1 with JSON over its control socket, with one connection per request.
package struct ControlClient: Sendable {
    /// A request.
    package struct Request: Sendable {
        /// `GET`, `POST`, `PUT` or `DELETE`.
        package var method: String
        /// The path, percent-encoded as necessary.
        package var path: String
        /// Names and values of the query; pairs with a nil value are omitted.
        package var query: [(name: String, value: String?)] = []
        /// The JSON text of the request.
        package var body: String?

        package init(_ method: String, _ path: String, query: [(String, String?)] = [], body: String? = nil) {
            self.method = method
            self.path = path
            self.query = query
            self.body = body
        }

        /// The request target of HTTP: path and query.
        var target: String {
            let pairs = query.compactMap { name, value in value.map { "\(name)=\(Self.encoded($0))" } }
            return pairs.isEmpty ? path : "\(path)?\(pairs.joined(separator: "&"))"
        }

        /// Percent-encodes all characters except unreserved ones (RFC 3986 §2.3).
        private static func encoded(_ text: String) -> String {
            let digits = Array("0123456789ABCDEF".utf8)
            let bytes = text.utf8.flatMap { byte -> [UInt8] in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: [byte]
                default: [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    private typealias Connection = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    /// The path of the control socket.
    package let path: String

    /// Maximum size of an answer in bytes.
    private static let maximumAnswerLength = 64 << 20

    /// Creates a client for the proxy with this control socket; does not connect yet.
    package init(path: String) { self.path = path }

    /// Creates a client for the only running proxy whose control socket is in a folder.
    package init(onlyIn folder: String) throws(ControlClientError) {
        let proxies = RunningProxy.all(in: folder)
        guard let proxy = proxies.first else { throw .noProxy(folder) }
        guard proxies.count == 1 else { throw .severalProxies(proxies) }
        path = proxy.path
    }

    // MARK: Requests

    /// Sends a request and returns the answer's body; `null` if there is none.
    ///
    /// - Parameter timeout: Time limit for the whole request. Default 30 s.
    package func ask(_ request: Request, timeout: Duration = .seconds(30)) async throws(ControlClientError) -> JSONValue
    {
        try await perform { () async throws -> JSONValue in
            try await withThrowingTaskGroup(of: JSONValue.self) { tasks in
                tasks.addTask { try await answer(to: request) }
                tasks.addTask {
                    try await Task.sleep(for: timeout)
                    throw ControlClientError.timeout(timeout)
                }
                defer { tasks.cancelAll() }
                return try await tasks.next() ?? .null
            }
        }
    }

    private func answer(to request: Request) async throws -> JSONValue {
        try await connect().executeThenClose { inbound, outbound in
            try? await send(request, outbound)
            var parts = inbound.makeAsyncIterator()
            let head = try await Self.head(&parts)
            return try await Self.body(of: head, &parts)
        }
    }

    /// Sends a request for a stream of events, and passes each event to `body` until the proxy ends the stream, the
    /// task is cancelled or `body` returns false.
    ///
    /// No data is read while `body` runs, so that a slow reader delays only itself.
    ///
    /// - Parameter body: Handles an event; returns whether to continue.
    package func follow(
        _ request: Request,
        _ body: (ServerSentEvent) throws(ControlClientError) -> Bool
    ) async throws(ControlClientError) {
        do throws(ControlClientError) {
            try await perform { () async throws in
                try await connect().executeThenClose { inbound, outbound in
                    try? await send(request, outbound)
                    var parts = inbound.makeAsyncIterator()
                    let head = try await Self.head(&parts)
                    guard head.status == .ok else {
                        _ = try await Self.body(of: head, &parts)
                        return
                    }
                    var reader = ServerSentEvents()
                    while case .body(let buffer)? = try await parts.next() {
                        var events: [ServerSentEvent] = []
                        try reader.read(buffer.readableBytesView) { events.append($0) }
                        for event in events { guard try body(event) else { return } }
                    }
                }
            }
        } catch {
            guard Task.isCancelled else { throw error }
        }
    }

    // MARK: A connection

    private func connect() async throws -> Connection {
        do {
            return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: path) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHTTPClientHandlers()
                        return try Connection(wrappingChannelSynchronously: channel)
                    }
                }
        } catch let error as IOError {
            throw ControlClientError.unreachable(path, error.message)
        } catch is SocketAddressError {
            throw ControlClientError.unreachable(path, "the path is too long for a socket")
        }
    }

    /// Sends a request. The proxy may answer before it has read the whole request.
    private func send(
        _ request: Request,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>
    ) async throws {
        let body = request.body.map { ByteBuffer(string: $0) }
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: request.target)
        head.headers = ["Host": "localhost", "Connection": "close"]
        if let body {
            head.headers.add(name: "Content-Type", value: "application/json")
            head.headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        }
        try await outbound.write(
            contentsOf: [.head(head)] + (body.map { [.body(.byteBuffer($0))] } ?? []) + [.end(nil)]
        )
    }

    private static func head(
        _ parts: inout NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator
    ) async throws -> HTTPResponseHead {
        guard case .head(let head)? = try await parts.next() else { throw ControlClientError.ended(nil) }
        return head
    }

    /// Reads the rest of an answer and returns its body.
    ///
    /// - Throws: ``ControlClientError/refused(_:_:_:)`` if the status is not a success.
    private static func body(
        of head: HTTPResponseHead,
        _ parts: inout NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator
    ) async throws -> JSONValue {
        var bytes: [UInt8] = []
        while case .body(let buffer)? = try await parts.next() {
            guard bytes.count + buffer.readableBytes <= maximumAnswerLength else {
                throw ControlClientError.unexpected("it is larger than \(maximumAnswerLength) bytes")
            }
            bytes += buffer.readableBytesView
        }
        let isWell = (200..<300).contains(head.status.code)
        let value: JSONValue
        do throws(JSONError) {
            value = bytes.isEmpty ? .null : try JSONValue(bytes.span.bytes)
        } catch {
            guard isWell else {
                throw ControlClientError.refused(nil, "\(head.status)", .null)
            }
            throw ControlClientError.unexpected("\(error)")
        }
        guard isWell else {
            let detail = value["detail"]?.text ?? value["title"]?.text ?? "\(head.status)"
            let problem = value["code"]?.text.flatMap { ControlProblem(rawValue: $0) }
            throw ControlClientError.refused(problem, detail, value)
        }
        return value
    }

    /// Converts errors of the connection to ``ControlClientError``.
    private func perform<Value>(_ body: () async throws -> Value) async throws(ControlClientError) -> Value {
        do {
            return try await body()
        } catch let error as ControlClientError {
            throw error
        } catch let error as IOError {
            throw .ended(error.message)
        } catch is CancellationError {
            throw .ended("it was given up")
        } catch HTTPParserError.invalidEOFState {
            throw .ended(nil)
        } catch let error as HTTPParserError {
            throw .unexpected("no HTTP: \(error)")
        } catch {
            throw .ended("\(error)")
        }
    }
}
