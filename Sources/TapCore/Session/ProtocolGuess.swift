/// A guess at the protocol of a connection from its first bytes.
package enum ProtocolGuess: Sendable, Hashable {
    /// The beginning of XMPP over TCP (RFC 6120 §4.2): an XML declaration, a stream header, or white space.
    case xml
    case tls
    /// An HTTP/1 request, or the HTTP/2 preface: from BOSH, WebSocket, a browser or a health check.
    case http
    case httpResponse
    case ssh
    /// A PROXY protocol header, version 1 or 2: a proxy in front of this port passes on the client's address.
    case proxyProtocol
    /// A line of SMTP, IMAP, POP3 or FTP.
    case mail
    /// XML in UTF-16 or UTF-32, which XMPP does not allow (RFC 6120 §11.6).
    case wideXML
    /// Printable text of no known protocol.
    case text
    case unknown

    /// The number of bytes after which more bytes do not change the guess.
    package static let sufficient = 24

    /// Guesses from the bytes so far; nil if more bytes are needed to distinguish two protocols.
    ///
    /// With `isFinal`, no more bytes follow, and the result is never nil.
    package init?(_ bytes: Span<UInt8>, isFinal: Bool = false) {
        guard let first = bytes.isEmpty ? nil : bytes[0] else {
            guard isFinal else { return nil }
            self = .unknown
            return
        }
        if let guess = Self.binary(bytes, first) {
            self = guess
            return
        }
        for (prefix, guess) in Self.prefixes {
            let count = min(prefix.utf8CodeUnitCount, bytes.count)
            guard Self.matches(bytes, prefix, count) else { continue }
            if count == prefix.utf8CodeUnitCount {
                self = guess
                return
            }
            // The bytes are the beginning of a known word: wait for more.
            if !isFinal { return nil }
        }
        guard isFinal || bytes.count >= Self.sufficient || !Self.isText(bytes) else { return nil }
        self = Self.isText(bytes) ? .text : .unknown
    }

    private static func binary(_ bytes: Span<UInt8>, _ first: UInt8) -> ProtocolGuess? {
        switch first {
        case 0x16: return bytes.count < 2 || bytes[1] == 3 ? .tls : .unknown
        case 0x00: return bytes.count > 1 && bytes[1] == 0x3C ? .wideXML : .unknown
        case 0xFE, 0xFF: return bytes.count > 1 && bytes[0] ^ bytes[1] == 1 ? .wideXML : .unknown
        case 0xEF: return .xml
        case 0x3C: return bytes.count > 1 && bytes[1] == 0 ? .wideXML : .xml
        case 0x20, 0x09, 0x0A: return .xml
        case 0x0D:
            // The signature of PROXY version 2 begins with a line end, which may also precede XML.
            let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
            for index in 0..<min(signature.count, bytes.count) where bytes[index] != signature[index] { return .xml }
            return bytes.count > 4 ? .proxyProtocol : .xml
        default: return nil
        }
    }

    private static let prefixes: [(StaticString, ProtocolGuess)] = [
        ("GET ", .http), ("POST ", .http), ("HEAD ", .http), ("PUT ", .http), ("OPTIONS ", .http), ("DELETE ", .http),
        ("PATCH ", .http), ("CONNECT ", .http), ("TRACE ", .http), ("PRI * HTTP/2", .http), ("HTTP/1.", .httpResponse),
        ("SSH-", .ssh), ("PROXY TCP4 ", .proxyProtocol), ("PROXY TCP6 ", .proxyProtocol),
        ("PROXY UNKNOWN", .proxyProtocol), ("EHLO ", .mail), ("HELO ", .mail), ("USER ", .mail), ("CAPA", .mail),
        ("220 ", .mail), ("220-", .mail), ("+OK", .mail), ("* OK", .mail),
    ]

    private static func matches(_ bytes: Span<UInt8>, _ prefix: StaticString, _ count: Int) -> Bool {
        for index in 0..<count where bytes[index] != prefix.utf8Start[index] { return false }
        return true
    }

    private static func isText(_ bytes: Span<UInt8>) -> Bool {
        for index in bytes.indices {
            let byte = bytes[index]
            if byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D || byte == 0x7F { return false }
        }
        return true
    }

    /// The guess, as a human-readable phrase such as `an HTTP request`.
    package var description: String {
        switch self {
        case .xml: "XML"
        case .tls: "TLS"
        case .http: "an HTTP request"
        case .httpResponse: "an HTTP answer"
        case .ssh: "an SSH banner"
        case .proxyProtocol: "a PROXY protocol header"
        case .mail: "a mail or file transfer protocol"
        case .wideXML: "XML in UTF-16 or UTF-32; XMPP is UTF-8 only"
        case .text: "text of no known protocol"
        case .unknown: "binary data of no known protocol"
        }
    }

    /// The name of the server's protocol; nil if the protocol is unknown or XMPP.
    package var serverProtocol: String? {
        switch self {
        case .http, .httpResponse: "HTTP"
        case .ssh: "SSH"
        case .mail: "SMTP, IMAP, POP3 or FTP"
        case .xml, .tls, .proxyProtocol, .wideXML, .text, .unknown: nil
        }
    }

    /// The advice to the user, as a whole sentence; nil if there is none.
    package var advice: String? {
        switch self {
        case .http, .httpResponse:
            "BOSH and WebSocket are not decoded; point a client for XMPP over TCP at this port."
        case .proxyProtocol: "Disable the PROXY protocol in the proxy in front of this port."
        default: nil
        }
    }
}
