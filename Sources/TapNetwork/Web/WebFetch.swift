internal import NIOCore
internal import NIOHTTP1
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Gets one file by HTTPS; follows a few redirections to other https addresses. Kept alive by its connection.
final class WebFetch {
    /// A file, with the fields of its answer.
    struct File {
        let address: HTTPSAddress
        let headers: HTTPHeaders
        let body: [UInt8]
    }

    /// The reason why the file cannot be used.
    struct Failure: Error {
        /// One line, with the URL.
        let text: String
    }

    /// How connections are opened.
    struct Options {
        /// TLS that accepts any certificate: its faults are checked here.
        let tls: TLSContext
        /// The XMPP domain, for which certificates may be instead of the URL's host.
        let domain: ServerReference
        /// Whether faults of certificates are ignored.
        var isInsecure = false
        /// Time limit for everything.
        let timeout: TimeAmount
    }

    /// Maximum number of bytes of a file.
    static let maximumBody = 64 << 10
    /// Maximum number of redirections.
    static let maximumRedirects = 3

    private let options: Options
    private let loop: any EventLoop
    private var address: HTTPSAddress
    private var redirects = 0
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []
    private var connection: WebConnection?
    private var expiry: Scheduled<Void>?
    /// Receives the result; nil after that.
    private var done: ((Result<File, Failure>) -> Void)?

    private init(
        _ address: HTTPSAddress,
        _ options: Options,
        on loop: any EventLoop,
        _ done: @escaping (Result<File, Failure>) -> Void
    ) {
        self.address = address
        self.options = options
        self.loop = loop
        self.done = done
    }

    /// Gets a file, and calls `done` once, on the event loop.
    static func get(
        _ address: HTTPSAddress,
        _ options: Options,
        on loop: any EventLoop,
        _ done: @escaping (Result<File, Failure>) -> Void
    ) {
        let fetch = WebFetch(address, options, on: loop, done)
        let seconds = options.timeout.nanoseconds / 1_000_000_000
        fetch.expiry = loop.assumeIsolated().scheduleTask(in: options.timeout) {
            fetch.fail("no whole answer within \(seconds) s")
        }
        fetch.connect()
    }

    private func connect() {
        WebConnection.connect(to: address.server, options.tls, timeout: options.timeout, on: loop) { [self] result in
            switch result {
            case .success(let connection): connected(connection)
            case .failure(let failure): fail("\(failure.explanation)")
            }
        }
    }

    private func connected(_ connection: WebConnection) {
        guard done != nil else { return connection.close() }
        self.connection = connection
        let faults = connection.tls?.engine.parameters()?.faults(allowing: options.domain) ?? []
        guard faults.isEmpty || options.isInsecure else {
            let reasons = faults.map(\.explanation).joined(separator: "; ")
            return fail("the certificate of the server is not trusted: \(reasons)")
        }
        connection.onPart = { [self] part in received(part) }
        connection.onEnd = { [self] reason in fail("the server ended its answer: \(reason)") }
        let headers: HTTPHeaders = ["Host": address.server.authority, "Accept": "*/*", "Connection": "close"]
        let target = address.server.target ?? "/"
        connection.write(.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)))
        connection.write(.end(nil))
        connection.flush()
        connection.setReading(true)
    }

    private func received(_ part: HTTPClientResponsePart) {
        guard done != nil else { return }
        switch part {
        // Informational answers precede the final one.
        case .head(let head) where head.status.code < 200: break
        case .head(let head): receive(head)
        case .body(let bytes):
            guard body.count + bytes.readableBytes <= Self.maximumBody else {
                return fail("it is longer than \(Self.maximumBody >> 10) KiB")
            }
            body.append(bytes.readableBytesUInt8Span)
        case .end:
            guard let head else { return }
            finish(.success(File(address: address, headers: head.headers, body: body)))
        }
    }

    private func receive(_ head: HTTPResponseHead) {
        if [301, 302, 303, 307, 308].contains(head.status.code), let location = head.headers.first(name: "location") {
            return redirect(to: location)
        }
        guard head.status == .ok else { return fail("HTTP \(head.status.code)") }
        let encodings = head.headers["content-encoding"].filter { $0.lowercased() != "identity" }
        guard encodings.isEmpty else { return fail("it is compressed, which was not requested") }
        self.head = head
    }

    private func redirect(to location: String) {
        connection?.close()
        connection = nil
        redirects += 1
        guard redirects <= Self.maximumRedirects else {
            return fail("more than \(Self.maximumRedirects) redirections")
        }
        guard let next = try? address.redirected(to: location) else {
            let shown = LineBuffer.escaped(String(WebServer.withoutSecrets(location).prefix(200)))
            return fail("a redirection to \"\(shown)\", which is not an https URL")
        }
        address = next
        // The connection is in use.
        loop.assumeIsolated().execute { [self] in if done != nil { connect() } }
    }

    private func fail(_ reason: String) {
        finish(.failure(Failure(text: "\(address): \(reason)")))
    }

    private func finish(_ result: Result<File, Failure>) {
        expiry?.cancel()
        connection?.close()
        connection = nil
        let done = done
        self.done = nil
        done?(result)
    }
}

extension TLSParameters {
    /// Returns the faults of the certificate, without that of its name if it is for the XMPP domain (XEP-0156).
    func faults(allowing domain: ServerReference) -> [CertificateFault] {
        guard let names = certificate?.names, domain.matches(names) else { return overlooked }
        return overlooked.filter { fault in
            if case .wrongName = fault.code { false } else { true }
        }
    }
}
