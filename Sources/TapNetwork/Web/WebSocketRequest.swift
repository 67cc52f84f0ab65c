internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapRecord
internal import XMPPCore

/// A client's request for a WebSocket, and the check of its answer (RFC 6455 §4.1).
struct WebSocketRequest {
    /// The outcome of the handshake.
    enum Outcome {
        /// Frames follow.
        case opened(HTTPResponseHead)
        case refused(WebSocketRefusal)
        /// The answer violates RFC 6455; with the reason, as a clause.
        case invalid(String)
    }

    /// Maximum number of bytes of the body that explains a refusal; the rest is ignored.
    static let maximumBody = 64 << 10

    /// The request to send; it has no body.
    let head: HTTPRequestHead
    private let accept: String
    private var answer: HTTPResponseHead?
    private var body = ByteBuffer()

    /// Completes a request with the fields of the handshake, and a new key. No extension is offered.
    ///
    /// - Parameter head: The request, with `Host` and, if one is offered, the subprotocol.
    /// - Throws: Errors of the cryptographic library.
    init(_ head: HTTPRequestHead, cryptography: any Cryptography) throws {
        let key = Base64.encode((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        accept = try cryptography.webSocketAccept(key)
        var head = head
        head.headers.remove(name: "sec-websocket-extensions")
        head.headers.replaceOrAdd(name: "Connection", value: "Upgrade")
        head.headers.replaceOrAdd(name: "Upgrade", value: "websocket")
        head.headers.replaceOrAdd(name: "Sec-WebSocket-Version", value: "13")
        head.headers.replaceOrAdd(name: "Sec-WebSocket-Key", value: key)
        self.head = head
    }

    /// Creates the request of a client that is part of xmpptap.
    init(to server: WebServer, cryptography: any Cryptography) throws {
        let headers: HTTPHeaders = [
            "Host": server.authority, "Sec-WebSocket-Protocol": WebSocketHandshake.subprotocol,
        ]
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: server.target ?? "/", headers: headers)
        try self.init(head, cryptography: cryptography)
    }

    /// The refusal as far as it has been received; nil without one.
    var refusal: WebSocketRefusal? {
        answer.flatMap { $0.status == .switchingProtocols ? nil : WebSocketRefusal(head: $0, body: body) }
    }

    /// Handles a part of the answer; returns the outcome when it is complete.
    mutating func receive(_ part: HTTPClientResponsePart) -> Outcome? {
        switch part {
        case .head(let head):
            // Other informational answers precede the final one (RFC 9110 §15.2).
            if head.status == .switchingProtocols || head.status.code >= 200 { answer = head }
            return nil
        case .body(var bytes):
            let room = Self.maximumBody - body.readableBytes
            if let rest = bytes.readSlice(length: min(room, bytes.readableBytes)) { body.writeImmutableBuffer(rest) }
            return nil
        case .end:
            guard let answer else { return nil }
            if let refusal { return .refused(refusal) }
            return check(answer)
        }
    }

    private func check(_ answer: HTTPResponseHead) -> Outcome {
        let headers = answer.headers
        func has(_ name: String, _ token: String) -> Bool {
            WebSocketHandshake.tokens(headers[name]).contains { $0.lowercased() == token }
        }
        guard has("upgrade", "websocket"), has("connection", "upgrade") else {
            return .invalid("the server answers HTTP 101 without the fields Upgrade and Connection of a WebSocket")
        }
        guard headers["sec-websocket-accept"] == [accept] else {
            return .invalid("the server's Sec-WebSocket-Accept does not fit the key")
        }
        guard headers["sec-websocket-extensions"].isEmpty else {
            return .invalid("the server answers an extension that was not offered")
        }
        return .opened(answer)
    }
}

extension Cryptography {
    /// Returns the value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2).
    func webSocketAccept(_ key: String) throws -> String {
        try WebSocketHandshake.accept(key: key) { bytes throws in try digest(.sha1, of: bytes) }
    }
}

/// A server's answer to a request for a WebSocket by which it refuses it.
struct WebSocketRefusal {
    let head: HTTPResponseHead
    /// The beginning of the body.
    let body: ByteBuffer

    /// Returns the status, its usual cause, and a remedy, as a clause.
    ///
    /// - Parameter address: The place of the server's address, such as "in --upstream".
    func explanation(address: String) -> String {
        let code = head.status.code
        let cause =
            switch code {
            case 200..<300: "the path \(address) is that of a page; name that of the WebSocket"
            case 300..<400: "it redirects\(location.map { " to \($0)" } ?? ""); use the new address \(address)"
            case 400: "a proxy in front of the server may drop the field Upgrade, or the port expects TLS"
            case 401, 407: "it requires a login of HTTP, which is not supported"
            case 403: "it may not accept the Origin"
            case 404, 405:
                "check the path and the host \(address): servers choose the domain by the host"
            case 426: "it requires another version of the protocol"
            case 501: "it may require the subprotocol xmpp"
            case 502, 503, 504: "a proxy in front of the server does not reach it; check that the server runs"
            default: "check the server's log"
            }
        return "the server refused the WebSocket with HTTP \(code); \(cause)"
    }

    /// The new address, without parts that may be secret.
    private var location: String? {
        guard let location = head.headers.first(name: "location") else { return nil }
        let url = location.prefix { $0 != "?" && $0 != "#" }
        guard !url.contains("@") else { return nil }
        return LineBuffer.escaped(String(url.prefix(200)))
    }
}
