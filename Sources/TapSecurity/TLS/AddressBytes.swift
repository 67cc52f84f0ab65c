internal import Glibc

/// IP addresses between their text and the bytes that a certificate holds.
enum AddressBytes {
    /// The 4 or 16 bytes of an address, also of an IPv6 address in brackets; nil if it is not an address.
    static func parse(_ text: String) -> [UInt8]? {
        var text = Substring(text)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, String(text), &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, String(text), &bytes) == 1 ? bytes : nil
    }

    /// As people read it; bytes that are no address in hexadecimal.
    static func text(_ bytes: [UInt8]) -> String {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16 else {
            return bytes.map { String($0, radix: 16) }.joined(separator: ":")
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
