internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// An open WebSocket: its channel has a ``WebSocketHandler``, after which the owner adds a handler of streams.
struct OpenWebSocket {
    let channel: any Channel
    let handler: WebSocketHandler
    /// The TLS of the connection; nil without TLS.
    let tls: TLSHandler?
    /// The answer to the request.
    let answer: HTTPResponseHead
    /// The fault of the subprotocol; nil if it is `xmpp`.
    let subprotocolFault: WebSocketHandshake.SubprotocolFault?

    /// Adds the handler of the stream, and begins to read.
    func add(_ handler: some ChannelInboundHandler) throws {
        try channel.pipeline.syncOperations.addHandler(handler)
        self.handler.begin()
        try channel.syncOptions?.setOption(.autoRead, value: true)
    }
}

/// Connects to a server by WebSocket, as a client. Kept alive by the connection until the handshake is over.
final class WebSocketDialer {
    /// The reason why no WebSocket was opened.
    struct Failure: Error {
        /// One line for users, with the server's URL.
        let text: String
        let fault: ConnectionFault
        /// The failure of TLS, if that is the reason.
        var tls: TLSFault?
        /// The status by which the server refused, if it did.
        var status: Int?
    }

    private let server: WebServer
    private let timeout: TimeAmount
    private let loop: any EventLoop
    private var request: WebSocketRequest
    private var connection: WebConnection?
    private var expiry: Scheduled<Void>?
    /// Receives the result; nil after that.
    private var done: ((Result<OpenWebSocket, Failure>) -> Void)?

    /// Called when the connection is open, with TLS if it is used, before the request is sent; returns whether to send
    /// it. If not, the connection is closed, and the result is not reported.
    private let onConnection: (any Channel, TLSHandler?) -> Bool

    private init(
        _ server: WebServer,
        _ request: WebSocketRequest,
        timeout: TimeAmount,
        on loop: any EventLoop,
        onConnection: @escaping (any Channel, TLSHandler?) -> Bool,
        _ done: @escaping (Result<OpenWebSocket, Failure>) -> Void
    ) {
        self.server = server
        self.request = request
        self.timeout = timeout
        self.loop = loop
        self.onConnection = onConnection
        self.done = done
    }

    /// Connects, and calls `done` once, on the event loop. The channel does not read until ``OpenWebSocket/add(_:)``.
    ///
    /// - Parameters:
    ///   - tls: How the server's certificate is verified; used for `wss://` only.
    ///   - reference: The identity that the certificate must prove; nil means that of the server.
    ///   - timeout: Time limit of the connection attempt, and of the handshakes together.
    static func connect(
        to server: WebServer,
        tls: TLSContext,
        reference: ServerReference? = nil,
        timeout: TimeAmount,
        cryptography: any Cryptography,
        on loop: any EventLoop,
        onConnection: @escaping (any Channel, TLSHandler?) -> Bool = { _, _ in true },
        _ done: @escaping (Result<OpenWebSocket, Failure>) -> Void
    ) {
        do {
            let dialer = WebSocketDialer(
                server,
                try WebSocketRequest(to: server, cryptography: cryptography),
                timeout: timeout,
                on: loop,
                onConnection: onConnection,
                done
            )
            dialer.connect(tls, reference)
        } catch {
            done(.failure(Failure(text: "\(server): \(error)", fault: .unreachable)))
        }
    }

    private func connect(_ tls: TLSContext, _ reference: ServerReference?) {
        WebConnection.connect(to: server, tls, reference: reference, timeout: timeout, on: loop) { [self] result in
            switch result {
            case .success(let connection): connected(connection)
            case .failure(let failure):
                // The text about a connection attempt names the server already.
                let text = failure.isOpen ? "\(server): \(failure.explanation)" : "\(failure.explanation)"
                finish(.failure(Failure(text: text, fault: failure.fault, tls: failure.tls)))
            }
        }
    }

    private func connected(_ connection: WebConnection) {
        guard onConnection(connection.channel, connection.tls) else {
            done = nil
            return connection.close()
        }
        self.connection = connection
        connection.onPart = { [self] part in received(part) }
        connection.onEnd = { [self] reason in
            fail("the server ended the handshake of the WebSocket: \(reason)", .unreachable)
        }
        expiry = loop.assumeIsolated().scheduleTask(in: timeout) { [self] in
            if let refusal = request.refusal { return refused(refusal) }
            let seconds = timeout.nanoseconds / 1_000_000_000
            fail("no answer to the request for a WebSocket within \(seconds) s", .timeout)
        }
        connection.write(.head(request.head))
        connection.write(.end(nil))
        connection.flush()
        connection.setReading(true)
    }

    private func received(_ part: HTTPClientResponsePart) {
        guard done != nil else { return }
        switch request.receive(part) {
        case nil: break
        case .refused(let refusal): refused(refusal)
        case .invalid(let reason): fail(reason, .unreachable)
        case .opened(let answer):
            connection?.setReading(false)
            // The decoder of the answer is in use.
            loop.assumeIsolated().execute { [self] in opened(answer) }
        }
    }

    private func opened(_ answer: HTTPResponseHead) {
        guard done != nil, let connection else { return }
        let handler = WebSocketHandler(.client, tls: connection.tls)
        do {
            try connection.channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            return fail("the connection was closed during the handshake of the WebSocket", .unreachable)
        }
        let socket = OpenWebSocket(
            channel: connection.channel,
            handler: handler,
            tls: connection.tls,
            answer: answer,
            subprotocolFault: WebSocketHandshake.subprotocolFault(
                offered: request.head.headers["sec-websocket-protocol"],
                answered: answer.headers["sec-websocket-protocol"]
            )
        )
        connection.leave().assumeIsolated().whenComplete { [self] _ in finish(.success(socket)) }
    }

    private func refused(_ refusal: WebSocketRefusal) {
        fail(refusal.explanation(address: "of the URL"), .unreachable, status: Int(refusal.head.status.code))
    }

    private func fail(_ reason: String, _ fault: ConnectionFault, status: Int? = nil) {
        connection?.close()
        finish(.failure(Failure(text: "\(server): \(reason)", fault: fault, status: status)))
    }

    private func finish(_ result: Result<OpenWebSocket, Failure>) {
        expiry?.cancel()
        connection = nil
        let done = done
        self.done = nil
        done?(result)
    }
}

extension WebSocketHandshake.SubprotocolFault {
    /// The fault as a clause.
    var explanation: String {
        switch self {
        case .notOffered: "the client did not offer the subprotocol xmpp"
        case .notAnswered: "the server did not select the subprotocol xmpp"
        case .several: "the server selected more than one subprotocol"
        case .other: "the server selected another subprotocol than xmpp"
        }
    }
}
