internal import TapRecord

/// Parses a client's request for a target: SOCKS version 5 (RFC 1928, RFC 1929) or the HTTP method CONNECT
/// (RFC 9110 §9.3.6). The first byte decides which.
///
/// Sans-IO. The bytes come from the network and are not trusted: every length is checked, and no state needs more than
/// ``maximumHeadBytes``. User names and passwords are compared here, and are not part of any result.
package struct ProxyRequestReader {
    /// The next step of the exchange with the client.
    package enum Event: Sendable, Hashable {
        /// More bytes are needed.
        case needMore
        /// These bytes must be sent to the client. Further events follow.
        case answer([UInt8])
        /// The request is complete; ``rest`` has the bytes after it. Final.
        case request(ProxyRequestKind, NamedTarget)
        /// The client must get the answer, and be disconnected. Final.
        case refused(Refusal)
    }

    /// The reason why a request is not carried out.
    package struct Refusal: Sendable, Hashable {
        /// The kind of problem; the raw value is the code of the record.
        package enum Code: String, Sendable, Hashable {
            /// The bytes are not a request that xmpptap can carry out.
            case badRequest = "bad-proxy-request"
            /// The client has sent no user name and password, but they are required.
            case loginRequired = "proxy-login-required"
            /// The user name or the password is wrong.
            case loginFailed = "proxy-login-failed"
        }

        /// The kind of problem.
        package let code: Code
        /// The problem, as a human-readable clause.
        package let reason: String
        /// The answer in the client's protocol; empty if it is unknown.
        package let answer: [UInt8]

        init(_ code: Code, _ reason: String, answer: [UInt8]) {
            self.code = code
            self.reason = reason
            self.answer = answer
        }

        init(_ reason: String, answer: [UInt8]) { self.init(.badRequest, reason, answer: answer) }
    }

    private enum State {
        case start
        case greeting, login, request
        case http
        case over(Event)
    }

    /// Maximum number of bytes of an HTTP request, up to its empty line.
    package static let maximumHeadBytes = 8192

    private let users: ProxyUsers?
    private let requiresLogin: Bool
    private var state = State.start
    private var bytes: [UInt8] = []
    /// The number of bytes in which the end of an HTTP request was searched.
    private var searched = 0

    /// - Parameters:
    ///   - users: The users who may log in; nil if there are none.
    ///   - requiresLogin: Whether the client must log in. Without users, every client is then refused.
    package init(users: ProxyUsers? = nil, requiresLogin: Bool = false) {
        self.users = users
        self.requiresLogin = requiresLogin
    }

    /// The bytes after the request.
    package var rest: [UInt8] { if case .over(.request) = state { bytes } else { [] } }

    /// Whether no further bytes can change the result.
    package var isOver: Bool { if case .over = state { true } else { false } }

    /// Appends received bytes. Bytes after a refusal are discarded.
    package mutating func append(_ input: some Sequence<UInt8>) {
        if case .over(.refused) = state { return }
        bytes += input
    }

    /// Returns the next step. After ``Event/needMore``, the next call needs more bytes.
    package mutating func next() -> Event {
        while true {
            let event: Event?
            switch state {
            case .over(let event): return event
            case .start: event = start()
            case .greeting: event = readGreeting()
            case .login: event = readLogin()
            case .request: event = readRequest()
            case .http: event = readHead()
            }
            switch event {
            case nil: continue
            case .needMore, .answer: return event ?? .needMore
            case .request, .refused: return end(event ?? .needMore)
            }
        }
    }

    private mutating func end(_ event: Event) -> Event {
        state = .over(event)
        if case .refused = event { bytes = [] }
        return event
    }

    /// Chooses the protocol by the first byte; nil if it is one.
    private mutating func start() -> Event? {
        switch bytes.first {
        case nil: return .needMore
        case SOCKS5.version: state = .greeting
        case 4:
            // The answer of version 4: the request is rejected.
            return .refused(
                Refusal("SOCKS version 4 is not supported; use version 5", answer: [0, 0x5B, 0, 0, 0, 0, 0, 0])
            )
        case .some(0x41...0x5A), .some(0x61...0x7A): state = .http
        case 0x3C: return .refused(Refusal("XMPP without a request for a target", answer: []))
        case 0x16: return .refused(Refusal("TLS without a request for a target", answer: []))
        default: return .refused(Refusal("neither SOCKS nor HTTP", answer: []))
        }
        return nil
    }

    // MARK: SOCKS

    private mutating func readGreeting() -> Event {
        guard bytes.count >= 2, bytes.count >= 2 + Int(bytes[1]) else { return .needMore }
        let methods = bytes[2..<(2 + Int(bytes[1]))]
        let (canLogIn, offersLogin) = (users != nil, methods.contains(SOCKS5.passwordLogin))
        if !requiresLogin, methods.contains(SOCKS5.noLogin) {
            consume(2 + methods.count, .request)
            return .answer([SOCKS5.version, SOCKS5.noLogin])
        }
        if canLogIn, offersLogin {
            consume(2 + methods.count, .login)
            return .answer([SOCKS5.version, SOCKS5.passwordLogin])
        }
        let answer = [SOCKS5.version, SOCKS5.noMethod]
        guard requiresLogin else {
            return .refused(Refusal("no supported login method among \(methods.count) offered", answer: answer))
        }
        return .refused(Refusal(.loginRequired, "a user name and a password are required", answer: answer))
    }

    /// Reads the user name and password (RFC 1929).
    private mutating func readLogin() -> Event {
        let refused = [SOCKS5.loginVersion, 1]
        guard let version = bytes.first else { return .needMore }
        guard version == SOCKS5.loginVersion else {
            return .refused(Refusal("the login has the unknown version \(version)", answer: refused))
        }
        guard bytes.count >= 2, bytes.count >= 3 + Int(bytes[1]) else { return .needMore }
        let user = bytes[2..<(2 + Int(bytes[1]))]
        let start = user.endIndex + 1
        let end = start + Int(bytes[user.endIndex])
        guard bytes.count >= end else { return .needMore }
        guard let users, users.accept(user, bytes[start..<end]) else {
            return .refused(Refusal(.loginFailed, "wrong user name or password", answer: refused))
        }
        consume(end, .request)
        return .answer([SOCKS5.loginVersion, 0])
    }

    private mutating func readRequest() -> Event {
        guard let version = bytes.first else { return .needMore }
        guard version == SOCKS5.version else {
            return refuse(SOCKS5.generalFailure, "the request has the unknown version \(version)")
        }
        guard bytes.count >= 5 else { return .needMore }
        let (start, length): (Int, Int)
        switch bytes[3] {
        case 1: (start, length) = (4, 4)
        case 3: (start, length) = (5, Int(bytes[4]))
        case 4: (start, length) = (4, 16)
        default: return refuse(SOCKS5.unsupportedAddress, "the request has the unknown address type \(bytes[3])")
        }
        let end = start + length
        // Wait for the whole request, also if it is refused: if the connection were closed with unread bytes, the client
        // could lose the answer.
        guard bytes.count >= end + 2 else { return .needMore }
        guard bytes[1] == SOCKS5.connect else {
            let name = bytes[1] == 2 ? "BIND" : bytes[1] == 3 ? "UDP ASSOCIATE" : "\(bytes[1])"
            return refuse(SOCKS5.unsupportedCommand, "the SOCKS command \(name) is not supported")
        }
        let port = Int(bytes[end]) << 8 | Int(bytes[end + 1])
        let host = bytes[3] == 3 ? NamedTarget.host(bytes[start..<end]) : .address(Array(bytes[start..<end]))
        guard let host else { return refuse(SOCKS5.generalFailure, "the request has an invalid host name") }
        guard port > 0 else { return refuse(SOCKS5.generalFailure, "the request has port 0") }
        bytes.removeFirst(end + 2)
        return .request(.socks5, NamedTarget(host: host, port: port))
    }

    private func refuse(_ reply: UInt8, _ reason: String) -> Event {
        .refused(Refusal(reason, answer: SOCKS5.reply(reply)))
    }

    private mutating func consume(_ count: Int, _ next: State) {
        bytes.removeFirst(count)
        state = next
    }

    // MARK: HTTP

    private mutating func readHead() -> Event {
        guard let length = headLength() else {
            guard bytes.count >= Self.maximumHeadBytes else { return .needMore }
            let status = HTTPStatus(431, "Request Header Fields Too Large")
            return refuse(status, "the request is longer than \(Self.maximumHeadBytes) bytes")
        }
        let head = HTTPHead(bytes.prefix(length))
        let words = head.lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 3, words[2].starts(with: "HTTP/".utf8), head.hasValidFields else {
            return refuse(HTTPStatus(400, "Bad Request"), "malformed HTTP request")
        }
        guard words[2].elementsEqual("HTTP/1.1".utf8) || words[2].elementsEqual("HTTP/1.0".utf8) else {
            return refuse(HTTPStatus(505, "HTTP Version Not Supported"), "unknown version of HTTP")
        }
        guard words[0].elementsEqual("CONNECT".utf8) else {
            let status = HTTPStatus(405, "Method Not Allowed", fields: "Allow: CONNECT\r\n")
            return refuse(status, "an HTTP request other than CONNECT")
        }
        if let refusal = checkLogin(head) { return refusal }
        guard let target = Self.target(words[1]) else {
            return refuse(HTTPStatus(400, "Bad Request"), "the target of CONNECT is not HOST:PORT")
        }
        bytes.removeFirst(length)
        return .request(.connect, target)
    }

    /// Returns the number of bytes up to and including the empty line; nil if it has not arrived. A single LF ends a
    /// line too (RFC 9112 §2.2).
    private mutating func headLength() -> Int? {
        while searched < min(bytes.count, Self.maximumHeadBytes) {
            let index = searched
            searched += 1
            guard bytes[index] == 0x0A else { continue }
            let before = bytes[..<index].suffix(2)
            if before.last == 0x0A || before.elementsEqual([0x0A, 0x0D]) { return searched }
        }
        return nil
    }

    /// Returns the refusal of a client that has to log in and did not; nil if the request can be carried out.
    private func checkLogin(_ head: HTTPHead) -> Event? {
        let status = HTTPStatus(
            407,
            "Proxy Authentication Required",
            fields: "Proxy-Authenticate: Basic realm=\"xmpptap\", charset=\"UTF-8\"\r\n"
        )
        let values = head.values(of: "proxy-authorization")
        guard let value = values.first, let users else {
            return requiresLogin ? refuse(status, "a user name and a password are required", .loginRequired) : nil
        }
        let words = value.split(separator: 0x20)
        guard values.count == 1, words.count == 2,
            words[0].map({ $0 | 0x20 }).elementsEqual("basic".utf8),
            let pair = String(validating: words[1], as: UTF8.self).flatMap({ Base64.decode($0) })
        else {
            return refuse(status, "the login is not of the kind Basic", .loginFailed)
        }
        let parts = pair.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, users.accept(parts[0], parts[1]) else {
            return refuse(status, "wrong user name or password", .loginFailed)
        }
        return nil
    }

    private func refuse(_ status: HTTPStatus, _ reason: String, _ code: Refusal.Code = .badRequest) -> Event {
        .refused(Refusal(code, reason, answer: status.answer(reason)))
    }

    /// Parses `HOST:PORT`, with an IPv6 address in brackets.
    private static func target(_ text: ArraySlice<UInt8>) -> NamedTarget? {
        guard let colon = text.lastIndex(of: 0x3A) else { return nil }
        let digits = text[(colon + 1)...]
        guard 1...5 ~= digits.count, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        let port = digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
        guard 1...65535 ~= port else { return nil }
        var name = text[..<colon]
        if name.first == 0x5B, name.last == 0x5D {
            name = name.dropFirst().dropLast()
        } else if name.contains(0x3A) {
            return nil
        }
        return NamedTarget.host(name).map { NamedTarget(host: $0, port: port) }
    }
}

/// The request line and the header lines of an HTTP/1 request.
private struct HTTPHead {
    /// The lines without their ends, except the empty one; at least one.
    let lines: [ArraySlice<UInt8>]

    /// Creates the lines of a head that ends with its empty line, and begins with another.
    init(_ bytes: ArraySlice<UInt8>) {
        let all = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        lines = all.dropLast(2).map { $0.last == 0x0D ? $0.dropLast() : $0 }
    }

    /// Whether all header lines have a name and a colon, and no line has control characters.
    var hasValidFields: Bool {
        for line in lines {
            guard !line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else { return false }
        }
        return lines.dropFirst().allSatisfy { line in
            guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex else { return false }
            return !line[..<colon].contains { $0 == 0x20 || $0 == 0x09 }
        }
    }

    /// Returns the values of all fields with this name, which is in lower case.
    func values(of name: String) -> [ArraySlice<UInt8>] {
        lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: 0x3A),
                line[..<colon].lazy.map({ 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }).elementsEqual(name.utf8)
            else { return nil }
            return line[(colon + 1)...]
        }
    }
}
