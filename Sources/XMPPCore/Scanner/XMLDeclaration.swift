/// The XML declaration before a stream header (XML 1.0 production 23): version 1.0, encoding UTF-8 or absent.
enum XMLDeclaration {
    enum Outcome {
        case complete(end: Int)
        case incomplete
        case fault(ScanFault.Code, at: Int)
    }

    /// Maximum number of bytes; `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`, the longest usual form, has
    /// 55.
    private static let maximumLength = 256

    /// Checks the declaration at the beginning of `bytes`, which begin with `<?`.
    static func check(_ bytes: Span<UInt8>) -> Outcome {
        let target: StaticString = "<?xml"
        for index in 0..<5 {
            guard index < bytes.count else { return .incomplete }
            guard bytes[index] == target.utf8Start[index] else { return .fault(.processingInstruction, at: 0) }
        }
        guard bytes.count > 5 else { return .incomplete }
        guard XMLCharacters.isWhitespace(bytes[5]) else { return .fault(.processingInstruction, at: 0) }
        var end = 5
        while end < bytes.count, bytes[end] != 0x3E {
            guard end < maximumLength else { return .fault(.malformedDeclaration, at: 0) }
            guard bytes[end] < 0x80, bytes[end] != 0x3C else { return .fault(.malformedDeclaration, at: end) }
            end &+= 1
        }
        guard end < bytes.count else { return .incomplete }
        guard end > 6, bytes[end &- 1] == 0x3F else { return .fault(.malformedDeclaration, at: end) }
        let body = bytes.extracting(0..<(end &- 1))

        var index = 5
        var allowed: [StaticString] = ["version", "encoding", "standalone"]
        while true {
            let before = index
            while index < body.count, XMLCharacters.isWhitespace(body[index]) { index &+= 1 }
            guard index < body.count else { break }
            guard index > before, let pair = readPair(body, at: &index) else {
                return .fault(.malformedDeclaration, at: index)
            }
            let name = body.extracting(pair.name)
            guard let position = allowed.firstIndex(where: { name.equals($0) }),
                allowed.count < 3 || position == 0
            else { return .fault(.malformedDeclaration, at: pair.name.lowerBound) }
            if let code = check(name: allowed[position], value: body.extracting(pair.value)) {
                return .fault(code, at: pair.value.lowerBound)
            }
            allowed.removeFirst(position + 1)
        }
        return allowed.count < 3 ? .complete(end: end &+ 1) : .fault(.malformedDeclaration, at: 5)
    }

    private static func check(name: StaticString, value: Span<UInt8>) -> ScanFault.Code? {
        switch name.utf8CodeUnitCount {
        case 7: return value.equals("1.0") ? nil : .unsupportedXMLVersion
        case 8: return isUTF8(value) ? nil : .unsupportedEncoding
        default: return value.equals("yes") || value.equals("no") ? nil : .malformedDeclaration
        }
    }

    private static func isUTF8(_ value: Span<UInt8>) -> Bool {
        guard value.count == 5 else { return false }
        let name: StaticString = "utf-8"
        for index in 0..<5 {
            let byte = value[index]
            let lowered = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
            guard lowered == name.utf8Start[index] else { return false }
        }
        return true
    }

    private static func readPair(_ body: Span<UInt8>, at index: inout Int) -> (name: Range<Int>, value: Range<Int>)? {
        let nameStart = index
        while index < body.count, XMLCharacters.isName(body[index]) { index &+= 1 }
        let name = nameStart..<index
        while index < body.count, XMLCharacters.isWhitespace(body[index]) { index &+= 1 }
        guard index < body.count, body[index] == 0x3D else { return nil }
        index &+= 1
        while index < body.count, XMLCharacters.isWhitespace(body[index]) { index &+= 1 }
        guard index < body.count, body[index] == 0x22 || body[index] == 0x27 else { return nil }
        let quote = body[index]
        index &+= 1
        let valueStart = index
        while index < body.count, body[index] != quote { index &+= 1 }
        guard index < body.count else { return nil }
        let value = valueStart..<index
        index &+= 1
        return (name, value)
    }
}
