/// The subset of DER (X.690) that certificates need. Values are byte arrays, composed from the inside out.
///
/// Certificates are encoded by hand, because OpenSSL creates extensions from configuration text, in which a comma in a
/// name from the wire would start another name.
enum DER {
    /// Returns a value with tag and length; the content must be shorter than 4 GiB.
    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        if rest < 0x80 {
            length = [UInt8(rest)]
        } else {
            while rest > 0 {
                length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    static func sequence(_ values: [UInt8]...) -> [UInt8] { value(0x30, Array(values.joined())) }

    static func sequence(of values: [[UInt8]]) -> [UInt8] { value(0x30, Array(values.joined())) }

    /// Returns a value with a context-specific tag; `constructed` if it contains other values.
    static func tagged(_ number: UInt8, constructed: Bool = false, _ content: [UInt8]) -> [UInt8] {
        value((constructed ? 0xA0 : 0x80) | number, content)
    }

    /// Returns an INTEGER with these bytes, which must be minimal and begin below 0x80.
    static func integer(_ bytes: [UInt8]) -> [UInt8] { value(0x02, bytes) }

    /// Returns a BIT STRING without the last `unused` bits.
    static func bits(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] { value(0x03, [unused] + bytes) }

    static func octets(_ bytes: [UInt8]) -> [UInt8] { value(0x04, bytes) }

    static func text(_ text: String) -> [UInt8] { value(0x0C, Array(text.utf8)) }

    /// The BOOLEAN true.
    static let yes: [UInt8] = [0x01, 0x01, 0xFF]

    /// Returns an OBJECT IDENTIFIER with encoded arcs.
    static func identifier(_ arcs: [UInt8]) -> [UInt8] { value(0x06, arcs) }
}
