internal import Dispatch
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization
internal import TapRecord
package import TapSecurity
internal import XMPPCore

/// Sends requests to one web server, one after the other; the connection is kept between them. For threads that may wait: not for an
/// event loop.
package final class WebClient: Sendable {
    /// The reason why a request has no answer.
    package struct Failure: Error {
        /// One clause.
        package let text: String
    }

    /// An answer.
    package struct Answer: Sendable {
        package let status: Int
        /// The fields of the header, by their names in lower case.
        package let fields: [String: String]
        package let body: [UInt8]
    }

    /// The maximum number of bytes of an answer.
    private static let maximumBody = 256 << 20

    private let server: WebServer
    private let tls: TLSContext?
    private let timeout: TimeAmount
    private let loop: any EventLoop
    private let requests: NIOLoopBoundBox<Requests?>

    /// - Parameters:
    ///   - server: The server; its path is not used.
    ///   - tls: How its certificate is verified; nil for a server without TLS.
    ///   - timeout: The maximum time for connecting, and between parts of an exchange, in seconds.
    package init(_ server: WebServer, _ tls: ServerLegTLS?, timeout: Int64 = 30) throws(Failure) {
        self.server = server
        self.timeout = .seconds(timeout)
        do throws(TLSContextError) {
            self.tls = try tls.map { options throws(TLSContextError) in try TLSContext(options) }
        } catch {
            throw Failure(text: "\(error)")
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        self.loop = loop
        requests = .makeEmptyBox(valueType: Requests.self, eventLoop: loop)
    }

    /// Sends a request, and waits for its answer.
    ///
    /// - Parameter target: The path and query.
    package func send(
        _ method: String,
        _ target: String,
        fields: [(String, String)],
        body: [UInt8]
    ) throws(Failure) -> Answer {
        let done = DispatchSemaphore(value: 0)
        let result = Mutex<Result<Answer, Failure>?>(nil)
        let (requests, server, tls, timeout, loop) = (requests, server, tls, timeout, loop)
        loop.execute {
            let client = requests.value ?? Requests(server, tls, timeout, loop)
            requests.value = client
            client.send(method, target, fields, body) { answer in
                result.withLock { $0 = answer }
                done.signal()
            }
        }
        done.wait()
        switch result.withLock({ $0 }) {
        case .success(let answer): return answer
        case .failure(let failure): throw failure
        case nil: throw Failure(text: "no answer")
        }
    }

    deinit {
        let requests = requests
        loop.execute { requests.value?.close() }
    }

    /// The part of a client that its event loop uses.
    private final class Requests {
        private let server: WebServer
        private let tls: TLSContext?
        private let timeout: TimeAmount
        private let loop: any EventLoop
        private var connection: WebConnection?
        /// Whether the connection has answered before: the server may have closed it since.
        private var isReused = false
        private var request: (head: HTTPRequestHead, body: [UInt8])?
        private var head: HTTPResponseHead?
        private var body: [UInt8] = []
        private var expiry: Scheduled<Void>?
        private var done: ((Result<Answer, Failure>) -> Void)?

        init(_ server: WebServer, _ tls: TLSContext?, _ timeout: TimeAmount, _ loop: any EventLoop) {
            (self.server, self.tls, self.timeout, self.loop) = (server, tls, timeout, loop)
        }

        func send(
            _ method: String,
            _ target: String,
            _ fields: [(String, String)],
            _ body: [UInt8],
            _ done: @escaping (Result<Answer, Failure>) -> Void
        ) {
            var headers: HTTPHeaders = ["Host": server.authority, "Content-Length": "\(body.count)"]
            for (name, value) in fields { headers.add(name: name, value: value) }
            let head = HTTPRequestHead(
                version: .http1_1,
                method: HTTPMethod(rawValue: method),
                uri: target,
                headers: headers
            )
            request = (head, body)
            self.done = done
            transmit()
        }

        func close() {
            connection?.close()
            connection = nil
        }

        private func transmit() {
            guard let request else { return }
            guard let connection else { return connect() }
            head = nil
            body = []
            restartTimer()
            connection.onPart = { [self] part in received(part) }
            connection.onEnd = { [self] reason in ended(reason) }
            connection.write(.head(request.head))
            if !request.body.isEmpty { connection.write(.body(ByteBuffer(bytes: request.body))) }
            connection.write(.end(nil))
            connection.flush()
            connection.setReading(true)
        }

        private func connect() {
            isReused = false
            WebConnection.connect(to: server, tls, timeout: timeout, on: loop) { [self] result in
                switch result {
                case .success(let connection):
                    self.connection = connection
                    transmit()
                case .failure(let failure): finish(.failure(Failure(text: "\(failure.explanation)")))
                }
            }
        }

        private func received(_ part: HTTPClientResponsePart) {
            restartTimer()
            switch part {
            // Informational answers precede the final one.
            case .head(let head) where head.status.code < 200: break
            case .head(let head): self.head = head
            case .body(let bytes):
                guard body.count + bytes.readableBytes <= WebClient.maximumBody else {
                    close()
                    return finish(
                        .failure(Failure(text: "its answer is longer than \(WebClient.maximumBody >> 20) MiB"))
                    )
                }
                body.append(bytes.readableBytesUInt8Span)
            case .end:
                guard let head else { return }
                isReused = true
                if !head.isKeepAlive { close() }
                var fields: [String: String] = [:]
                for (name, value) in head.headers { fields[name.lowercased()] = value }
                finish(.success(Answer(status: Int(head.status.code), fields: fields, body: body)))
            }
        }

        private func ended(_ reason: String) {
            connection = nil
            guard done != nil else { return }
            // The server may close an idle connection at any time: then it has not read the request.
            guard isReused, head == nil, body.isEmpty else {
                return finish(.failure(Failure(text: "the connection ended before its answer: \(reason)")))
            }
            connect()
        }

        private func restartTimer() {
            expiry?.cancel()
            expiry = loop.assumeIsolated().scheduleTask(in: timeout) { [self] in
                close()
                finish(.failure(Failure(text: "no answer within \(timeout.nanoseconds / 1_000_000_000) s")))
            }
        }

        private func finish(_ result: Result<Answer, Failure>) {
            expiry?.cancel()
            expiry = nil
            request = nil
            let done = done
            self.done = nil
            done?(result)
        }
    }
}
