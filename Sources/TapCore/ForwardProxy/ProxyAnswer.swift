/// The outcome of a client's request to a proxy.
package enum ProxyOutcome: Sendable, Hashable, CaseIterable {
    /// The connection to the target is established.
    case connected
    /// The proxy does not connect to this target.
    case notAllowed
    case networkUnreachable
    case hostUnreachable
    case connectionRefused
    /// The target did not answer in time.
    case timeout
    /// The connection failed for another reason.
    case failed

    /// The reply field of SOCKS version 5 (RFC 1928 §6). It has no code for an expired time limit.
    private var reply: UInt8 {
        switch self {
        case .connected: 0
        case .failed: 1
        case .notAllowed: 2
        case .networkUnreachable: 3
        case .hostUnreachable, .timeout: 4
        case .connectionRefused: 5
        }
    }

    private var status: HTTPStatus {
        switch self {
        case .connected: HTTPStatus(200, "Connection established")
        case .notAllowed: HTTPStatus(403, "Forbidden")
        case .timeout: HTTPStatus(504, "Gateway Timeout")
        case .networkUnreachable, .hostUnreachable, .connectionRefused, .failed: HTTPStatus(502, "Bad Gateway")
        }
    }

    /// Returns the answer to a request.
    ///
    /// - Parameters:
    ///   - kind: The protocol of the request.
    ///   - text: The reason for a failure, as one line for users. SOCKS cannot transmit it.
    ///   - local: The bytes of the proxy's address on the connection to the target, and the port; nil if it is unknown.
    package func answer(
        _ kind: ProxyRequestKind,
        text: String,
        local: (address: [UInt8], port: Int)? = nil
    ) -> [UInt8] {
        switch kind {
        case .socks5: SOCKS5.reply(reply, local)
        case .connect: status.answer(text)
        // The client is not aware of the proxy.
        case .redirect: []
        }
    }
}

/// Constants and answers of SOCKS version 5 (RFC 1928, RFC 1929).
enum SOCKS5 {
    static let version: UInt8 = 5
    static let loginVersion: UInt8 = 1
    static let noLogin: UInt8 = 0
    static let passwordLogin: UInt8 = 2
    static let noMethod: UInt8 = 0xFF
    static let connect: UInt8 = 1

    /// Replies to requests that are not carried out.
    static let generalFailure: UInt8 = 1
    static let unsupportedCommand: UInt8 = 7
    static let unsupportedAddress: UInt8 = 8

    static func reply(_ code: UInt8, _ local: (address: [UInt8], port: Int)? = nil) -> [UInt8] {
        let address = local?.address ?? []
        guard let local, address.count == 4 || address.count == 16 else {
            return [version, code, 0, 1, 0, 0, 0, 0, 0, 0]
        }
        let port = [UInt8(truncatingIfNeeded: local.port >> 8), UInt8(truncatingIfNeeded: local.port)]
        return [version, code, 0, address.count == 4 ? 1 : 4] + address + port
    }
}

/// A status line of HTTP/1.1, with the answer that it begins.
struct HTTPStatus {
    private let code: Int
    private let reason: String
    /// Further header lines, each with its CRLF.
    private let fields: String

    init(_ code: Int, _ reason: String, fields: String = "") {
        self.code = code
        self.reason = reason
        self.fields = fields
    }

    /// Returns the answer. A successful answer to CONNECT has no content (RFC 9110 §9.3.6), others have the text as a
    /// line, and end the connection.
    func answer(_ text: String) -> [UInt8] {
        guard code >= 300 else { return Array("HTTP/1.1 \(code) \(reason)\r\n\r\n".utf8) }
        let content = Array("xmpptap: \(text)\n".utf8)
        let head =
            "HTTP/1.1 \(code) \(reason)\r\n\(fields)Content-Type: text/plain; charset=utf-8\r\n"
            + "Content-Length: \(content.count)\r\nConnection: close\r\n\r\n"
        return Array(head.utf8) + content
    }
}
