/// The few forms of DER (X.690) that certificates are written in here: values are arrays of bytes, put together from the
/// inside out.
///
/// Certificates are written by hand because OpenSSL makes extensions from lines of configuration text, where a comma in a
/// name that came from the wire would begin another name.
enum DER {
    /// A value with its tag and length. Lengths beyond four bytes do not happen: what is put in fits into memory.
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

    /// A value with a context tag; `constructed` where it holds other values.
    static func tagged(_ number: UInt8, constructed: Bool = false, _ content: [UInt8]) -> [UInt8] {
        value((constructed ? 0xA0 : 0x80) | number, content)
    }

    /// An INTEGER whose bytes are those given, the first below 0x80 and not needless.
    static func integer(_ bytes: [UInt8]) -> [UInt8] { value(0x02, bytes) }

    /// A BIT STRING, `unused` bits of the last byte not counted.
    static func bits(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] { value(0x03, [unused] + bytes) }

    static func octets(_ bytes: [UInt8]) -> [UInt8] { value(0x04, bytes) }

    static func text(_ text: String) -> [UInt8] { value(0x0C, Array(text.utf8)) }

    /// A BOOLEAN that is true.
    static let yes: [UInt8] = [0x01, 0x01, 0xFF]

    /// An OBJECT IDENTIFIER from its encoded arcs.
    static func identifier(_ arcs: [UInt8]) -> [UInt8] { value(0x06, arcs) }
}
