/// A random number generator that returns the same numbers for the same seed, so that failures of tests are
/// reproducible.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator for one test. The test contains the seed.
    package init(seed: UInt64) {
        state = seed
    }

    /// Returns the next number of the SplitMix64 sequence.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Returns random bytes.
    package mutating func bytes(count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }

    /// Returns a random text with many characters that parsers often handle wrongly: quotes, control characters,
    /// characters next to surrogates, supplementary planes.
    package mutating func hostileText(count: Int) -> String {
        let corners: [Unicode.Scalar] = [
            "\"", "\\", "/", "\0", "\n", "\r", "\t", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{A0}", "\u{61C}",
            "\u{7FF}",
            "\u{800}", "\u{200B}", "\u{200D}", "\u{202E}", "\u{2028}", "\u{2066}", "\u{D7FF}", "\u{E000}", "\u{FEFF}",
            "\u{FFFD}", "\u{FFFF}", "\u{10000}", "\u{1F600}", "\u{E0001}", "\u{10FFFF}", "<", "&", ">", "'", ",",
        ]
        var text = String.UnicodeScalarView()
        while text.count < count {
            switch UInt8.random(in: 0..<4, using: &self) {
            case 0: text.append(corners[Int.random(in: corners.indices, using: &self)])
            case 1:
                if let scalar = Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &self)) { text.append(scalar) }
            default: text.append(Unicode.Scalar(UInt8.random(in: 0x20...0x7E, using: &self)))
            }
        }
        return String(text)
    }
}
