import NIOCore
import NIOPosix
import Synchronization
import TapTestKit

/// A Unix socket that answers every request with the same bytes.
final class ControlServerDouble: Sendable {
    /// The server's action after its answer.
    enum End {
        /// It closes the connection.
        case close
        /// It does nothing.
        case stay
    }

    let path: String
    private let folder: TemporaryFolder
    private let channel: any Channel
    private let seen: Seen

    /// The requests so far.
    var requests: [String] { seen.requests.withLock { $0 } }

    final class Seen: Sendable {
        let requests = Mutex<[String]>([])
    }

    /// - Parameter early: Whether it answers as soon as it has received the head of the request.
    init(_ answer: String, _ end: End = .close, early: Bool = false, name: String = "control.sock") async throws {
        folder = try TemporaryFolder()
        path = folder.path(of: name)
        let seen = Seen()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer, end, early, seen))
                }
            }
            .bind(unixDomainSocketPath: path).get()
        self.seen = seen
    }

    deinit { channel.close(promise: nil) }

    /// Returns an HTTP answer with a JSON body.
    static func answer(_ status: String, _ body: String) -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: String
        private let end: End
        private let isEarly: Bool
        private let seen: Seen
        private var text = ""
        private var hasAnswered = false

        init(_ answer: String, _ end: End, _ isEarly: Bool, _ seen: Seen) {
            (self.answer, self.end, self.isEarly, self.seen) = (answer, end, isEarly, seen)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !hasAnswered else { return }
            text += String(buffer: unwrapInboundIn(data))
            guard let head = text.firstRange(of: "\r\n\r\n"), isEarly || isWhole(after: head.upperBound) else {
                return
            }
            hasAnswered = true
            seen.requests.withLock { $0.append(text) }
            context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: answer)), promise: nil)
            if end == .close { context.close(promise: nil) }
        }

        private func isWhole(after end: String.Index) -> Bool {
            guard let length = text.firstMatch(of: /content-length: (\d+)/.ignoresCase()) else { return true }
            return text[end...].utf8.count >= Int(length.1) ?? 0
        }
    }
}
