internal import NIOCore
internal import NIOHTTP1
internal import TapSecurity

/// An answer after which the connection is closed: one of xmpptap itself, or a server's refusal of a WebSocket.
struct HTTPAnswer {
    private let head: HTTPResponseHead
    private let body: ByteBuffer

    /// Creates an answer with a line of text for people.
    init(_ status: HTTPResponseStatus, _ text: String) {
        self.init(status, "xmpptap: \(text)\n", type: "text/plain; charset=utf-8")
    }

    /// Creates an answer with a file.
    init(_ status: HTTPResponseStatus, _ file: String, type: String, _ fields: HTTPHeaders = [:]) {
        body = ByteBuffer(string: file)
        var fields = fields
        fields.add(name: "Content-Type", value: type)
        fields.add(name: "Content-Length", value: "\(body.readableBytes)")
        if status == .upgradeRequired {
            // RFC 9110 §15.5.22, RFC 6455 §4.4.
            fields.add(name: "Upgrade", value: "websocket")
            fields.add(name: "Sec-WebSocket-Version", value: "13")
            fields.add(name: "Connection", value: "Upgrade, close")
        } else {
            fields.add(name: "Connection", value: "close")
        }
        head = HTTPResponseHead(version: .http1_1, status: status, headers: fields)
    }

    /// Creates the answer that passes the refusal of a server on.
    init(_ refusal: WebSocketRefusal) {
        body = refusal.body
        var head = HTTPResponseHead(version: .http1_1, status: refusal.head.status, headers: refusal.head.headers)
        for name in ["connection", "keep-alive", "transfer-encoding", "content-length"] {
            head.headers.remove(name: name)
        }
        head.headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        head.headers.add(name: "Connection", value: "close")
        self.head = head
    }

    /// Sends the answer, and closes the connection.
    ///
    /// - Parameters:
    ///   - context: The handler of the requests; it must ignore the parts that follow.
    ///   - tls: The TLS with the client; nil without TLS.
    func send(_ context: ChannelHandlerContext, _ tls: TLSHandler?) {
        for part in [HTTPServerResponsePart.head(head), .body(.byteBuffer(body))] {
            context.write(NIOAny(part), promise: nil)
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        let channel = context.channel
        written.futureResult.assumeIsolated().whenComplete { _ in
            tls?.finish()
            channel.closeAfterAnswer()
        }
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: written)
    }
}
