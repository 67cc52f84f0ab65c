/// A host and a port as they are typed: `example.org:5222`, `192.0.2.1:5222`, `[2001:db8::1]:5222`.
struct HostPort: Hashable {
    /// A name or an address, without brackets.
    let host: String
    /// The port.
    let port: UInt16

    /// One known beforehand.
    init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads what was typed.
    ///
    /// - Parameter isOwn: A port of ours, where 0 asks for any free one.
    init(_ text: some StringProtocol, isOwn: Bool = false) throws(Failure) {
        let host: Substring
        let rest: Substring
        let text = Substring(text)
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { throw .usage("'\(text)' lacks the closing bracket") }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard host.contains(":") else { throw .usage("in brackets stands an IPv6 address, as in [::1]:5222") }
        } else if let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            rest = text[colon...]
            guard !rest.dropFirst().contains(":") else {
                throw .usage("write an IPv6 address in brackets, as in [::1]:5222")
            }
        } else {
            throw .usage("'\(text)' lacks \(Number.isWhole(text) ? "its host" : "its port"); write HOST:PORT")
        }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x2F && $0 != 0x40 }) else {
            throw .usage("'\(host)' is no host; write HOST:PORT, as in example.org:5222")
        }
        guard rest.first == ":" else { throw .usage("'\(text)' lacks its port; write HOST:PORT") }
        self.host = String(host)
        port = try Self.port(rest.dropFirst(), isOwn: isOwn)
    }

    /// Reads a port.
    static func port(_ text: some StringProtocol, isOwn: Bool) throws(Failure) -> UInt16 {
        guard Number.isWhole(text), let port = UInt16(text), port > 0 || isOwn else {
            let hint =
                isOwn ? "a port is a number up to 65535, or 0 for any free one" : "a port is a number from 1 to 65535"
            throw .usage("'\(text)' is no port; \(hint)")
        }
        return port
    }
}

extension HostPort: CustomStringConvertible {
    /// `HOST:PORT`, with brackets around an IPv6 address.
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
