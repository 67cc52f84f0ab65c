/// The encoding of labels with non-ASCII characters for the DNS (RFC 3492), without the prefix `xn--`.
enum Punycode {
    /// The maximum length of a DNS label, prefix included (RFC 1035 §2.3.4).
    static let maximumLabelLength = 63
    /// The prefix of A-labels (RFC 5890 §2.3.2.1).
    static let prefix = "xn--"
    /// The maximum length after the prefix.
    private static let maximumLength = maximumLabelLength - prefix.utf8.count

    /// Decodes a label; nil if it is too long or invalid.
    ///
    /// Digits may be upper case, as in the DNS; the case of other characters is kept.
    static func decode(_ encoded: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        guard encoded.count <= maximumLength, encoded.allSatisfy(\.isASCII) else { return nil }
        // The last hyphen ends the basic code points; a hyphen at the start ends none.
        let delimiter = encoded.lastIndex(of: "-") ?? 0
        var text = Array(encoded[..<delimiter])
        var position = delimiter > 0 ? delimiter + 1 : 0
        var code = initialCode
        var index: UInt32 = 0
        var bias = initialBias
        while position < encoded.count {
            let before = index
            var weight: UInt32 = 1
            var threshold: UInt32 = 0
            var digitBase = base
            repeat {
                guard position < encoded.count, let digit = digit(encoded[position]) else { return nil }
                position += 1
                let (step, overflows) = digit.multipliedReportingOverflow(by: weight)
                let (sum, sumOverflows) = index.addingReportingOverflow(step)
                guard !overflows, !sumOverflows else { return nil }
                index = sum
                threshold = self.threshold(digitBase, bias)
                if digit < threshold { break }
                let (next, nextOverflows) = weight.multipliedReportingOverflow(by: base - threshold)
                guard !nextOverflows else { return nil }
                weight = next
                digitBase += base
            } while true
            let count = UInt32(text.count) + 1
            bias = adapt(index - before, count, isFirst: before == 0)
            let (next, overflows) = code.addingReportingOverflow(index / count)
            guard !overflows, let scalar = Unicode.Scalar(next) else { return nil }
            code = next
            index %= count
            text.insert(scalar, at: Int(index))
            index += 1
        }
        return text
    }

    /// Encodes a text; nil if the result does not fit into a label.
    static func encode(_ text: [Unicode.Scalar]) -> String? {
        // Each character takes at least one byte, so this also bounds the work.
        guard text.count <= maximumLength else { return nil }
        var encoded = text.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basicCount = UInt32(encoded.count)
        if basicCount > 0 { encoded.append(UInt8(ascii: "-")) }
        var handled = basicCount
        var code = initialCode
        var bias = initialBias
        var delta: UInt32 = 0
        while let next = text.lazy.map(\.value).filter({ $0 >= code }).min() {
            // `delta` is at most 60 times the largest code point, which fits into 32 bits.
            delta += (next - code) * (handled + 1)
            code = next
            for scalar in text {
                if scalar.value < code { delta += 1 }
                guard scalar.value == code else { continue }
                var rest = delta
                var digitBase = base
                while true {
                    let threshold = threshold(digitBase, bias)
                    guard rest >= threshold else { break }
                    encoded.append(character(threshold + (rest - threshold) % (base - threshold)))
                    rest = (rest - threshold) / (base - threshold)
                    digitBase += base
                }
                encoded.append(character(rest))
                bias = adapt(delta, handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            code += 1
        }
        return encoded.count <= maximumLength ? String(decoding: encoded, as: UTF8.self) : nil
    }

    // MARK: Parameters and arithmetic (RFC 3492 §5, §6.1)

    private static let base: UInt32 = 36
    private static let smallestThreshold: UInt32 = 1
    private static let largestThreshold: UInt32 = 26
    private static let skew: UInt32 = 38
    private static let damp: UInt32 = 700
    private static let initialBias: UInt32 = 72
    private static let initialCode: UInt32 = 0x80

    private static func threshold(_ digitBase: UInt32, _ bias: UInt32) -> UInt32 {
        digitBase <= bias + smallestThreshold
            ? smallestThreshold : min(digitBase - bias, largestThreshold)
    }

    private static func adapt(_ delta: UInt32, _ count: UInt32, isFirst: Bool) -> UInt32 {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var steps: UInt32 = 0
        while delta > (base - smallestThreshold) * largestThreshold / 2 {
            delta /= base - smallestThreshold
            steps += base
        }
        return steps + (base - smallestThreshold + 1) * delta / (delta + skew)
    }

    private static func digit(_ scalar: Unicode.Scalar) -> UInt32? {
        switch scalar {
        case "a"..."z": scalar.value - 0x61
        case "A"..."Z": scalar.value - 0x41
        case "0"..."9": scalar.value - 0x30 + 26
        default: nil
        }
    }

    private static func character(_ digit: UInt32) -> UInt8 {
        UInt8(truncatingIfNeeded: digit < 26 ? 0x61 + digit : 0x30 + digit - 26)
    }
}
