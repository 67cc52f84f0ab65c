/// The identifier of a run: a UUID of version 7 (RFC 9562 §5.7), whose text sorts by the time at which the run began.
package enum RunIdentifier {
    /// The number of random bytes that an identifier needs.
    package static let randomCount = 10

    /// Returns the text of an identifier.
    ///
    /// - Parameter random: ``randomCount`` bytes; missing ones are 0.
    package static func text(at time: Timestamp, random: [UInt8]) -> String {
        let milliseconds = UInt64(clamping: time.nanoseconds / 1_000_000)
        var bytes = (0..<6).map { UInt8(truncatingIfNeeded: milliseconds >> UInt64(40 - 8 * $0)) }
        bytes += (0..<randomCount).map { random.indices.contains($0) ? random[$0] : 0 }
        bytes[6] = 0x70 | bytes[6] & 0x0F
        bytes[8] = 0x80 | bytes[8] & 0x3F
        var text = ""
        for (place, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(place) { text += "-" }
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return text
    }
}
