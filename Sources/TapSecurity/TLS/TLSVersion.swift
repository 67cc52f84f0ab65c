internal import TapCore

/// A version of TLS that both legs can speak.
public enum TLSVersion: UInt16, Sendable, Hashable, Comparable, CaseIterable {
    /// RFC 2246; for old servers alone.
    case tls10 = 0x0301
    /// RFC 4346; for old servers alone.
    case tls11 = 0x0302
    /// RFC 5246.
    case tls12 = 0x0303
    /// RFC 8446.
    case tls13 = 0x0304

    /// Older is less.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}

extension TLSVersion: CustomStringConvertible {
    /// As people write it, `TLS 1.3`.
    public var description: String { ClientHello.name(ofVersion: rawValue) }
}
