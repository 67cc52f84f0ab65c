internal import TapCore
internal import TapRecord
internal import XMPPCore

/// The opening handshake of a WebSocket in captured bytes (RFC 6455 §4, RFC 7395 §3.1).
struct PacketUpgrade {
    /// The progress of the handshake after bytes were received.
    enum Step {
        /// More bytes are needed.
        case incomplete
        /// The WebSocket is open; with the parameters of its compression, nil if there is none, and the bytes of each
        /// direction after its head.
        case opened(WebSocketUpgrade, PerMessageDeflate?, rest: (send: [UInt8], recv: [UInt8]))
        /// No frames follow, or they cannot be read; with the code and the text of a remark.
        case failed(code: String, Prose)
    }

    /// Maximum number of bytes of a head. Those of browsers with many cookies have 8 KiB.
    static let maximumHead = 32 << 10

    private var request: HTTPHead?
    private var stored: (send: [UInt8], recv: [UInt8]) = ([], [])
    private var hasFailed = false

    /// Returns whether bytes of a client begin with a request for a WebSocket of XMPP; nil if more bytes are needed.
    static func isRequest(_ bytes: [UInt8]) -> Bool? {
        let method = Array("GET ".utf8)
        guard !bytes.isEmpty, bytes.prefix(method.count).elementsEqual(method.prefix(bytes.count)) else { return false }
        guard let head = HTTPHead(bytes.span) else { return bytes.count < maximumHead ? nil : false }
        let protocols = WebSocketHandshake.tokens(head.values("sec-websocket-protocol"))
        return head.contains("websocket", in: "upgrade")
            && (protocols.contains(WebSocketHandshake.subprotocol) || head.target.contains("xmpp"))
    }

    /// Handles bytes of the handshake, or bytes that follow a handshake that failed.
    mutating func receive(_ direction: Direction, _ bytes: [UInt8]) -> Step {
        guard !hasFailed else { return .incomplete }
        if direction == .send { stored.send += bytes } else { stored.recv += bytes }
        if request == nil, let head = HTTPHead(stored.send.span) {
            request = head
            stored.send.removeFirst(head.length)
        }
        guard let request, let answer = HTTPHead(stored.recv.span) else {
            guard max(stored.send.count, stored.recv.count) > Self.maximumHead else { return .incomplete }
            return fail("websocket-refused", "no handshake of a WebSocket follows the request")
        }
        stored.recv.removeFirst(answer.length)
        guard answer.target == "101" else {
            return fail("websocket-refused", "the server answered HTTP \(answer.target) to the request for a WebSocket")
        }
        let extensions = answer.values("sec-websocket-extensions")
        let compression: PerMessageDeflate?
        do throws(WebSocketExtensionFault) {
            let offered = request.values("sec-websocket-extensions")
            compression = try PerMessageDeflate.agreed(offered: offered, answered: extensions)
        } catch {
            return fail(
                "websocket-extension",
                "not decoded: the server answered the WebSocket extension \(extensions.joined(separator: ", ")): \(error.explanation)"
            )
        }
        var upgrade = WebSocketUpgrade(path: String(request.target.prefix { $0 != "?" }))
        upgrade.origin = request.values("origin").first
        upgrade.offered = request.values("sec-websocket-protocol")
        upgrade.answered = answer.values("sec-websocket-protocol")
        if let server = answer.values("server").first { upgrade.details["server"] = .string(server) }
        return .opened(upgrade, compression, rest: stored)
    }

    private mutating func fail(_ code: String, _ message: Prose) -> Step {
        hasFailed = true
        stored = ([], [])
        return .failed(code: code, message)
    }
}

/// The head of an HTTP/1.1 message (RFC 9112 §2), as far as a reader of captured bytes needs it.
struct HTTPHead {
    /// The second word of the first line: the target of a request, or the status of an answer.
    let target: String
    /// Number of bytes, with the empty line at the end.
    let length: Int
    private let fields: [(name: String, value: String)]

    /// Reads the head at the beginning of the bytes; nil if it is incomplete or not HTTP/1.
    init?(_ bytes: Span<UInt8>) {
        var lines: [String] = []
        var start = 0
        while true {
            guard let end = bytes.firstIndex(of: 0x0A, from: start) else { return nil }
            let hasReturn = end > start && bytes[end - 1] == 0x0D
            let line = bytes.extracting(start..<(hasReturn ? end - 1 : end))
            start = end + 1
            if line.isEmpty { break }
            lines.append(line.string())
        }
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1.") || words.last?.hasPrefix("HTTP/1.") == true else {
            return nil
        }
        target = String(words[1])
        length = start
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            return (line[..<colon].lowercased(), String(value))
        }
    }

    /// Returns the values of the field with this name in lower case.
    func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// Returns whether a list contains this token, in lower case.
    func contains(_ token: String, in name: String) -> Bool {
        WebSocketHandshake.tokens(values(name)).contains { $0.lowercased() == token }
    }
}
