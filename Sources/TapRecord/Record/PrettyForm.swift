internal import XMPPCore

/// Breaks the XML of an item into indented lines, for reading.
///
/// It evaluates only tags and quotes, so that it shows every item as it is, valid or not: every byte is shown, in
/// order, and only white space between tags is replaced. An element that contains text keeps its content on one line,
/// since white space may be significant there.
package enum PrettyForm {
    /// Returns the item as lines with an indentation, escaped in the log form of ``Escape``.
    ///
    /// - Parameter limit: Maximum number of bytes of the item that are shown.
    /// - Returns: The lines, and the number of bytes that are left out.
    package static func lines(_ xml: Span<UInt8>, limit: Int) -> (lines: [String], omitted: Int) {
        let shown = xml.cut(to: limit)
        var buffer = LineBuffer()
        append(shown, to: &buffer) { piece, line in line.appendEscaped(piece.bytes) }
        // Line feeds of the item are escaped: all that remain begin a line, with four spaces that all lines have.
        let lines = buffer.text.split(separator: "\n").map {
            $0.hasPrefix("    ") ? String($0.dropFirst(4)) : String($0)
        }
        return (lines, xml.count - shown.count)
    }

    /// Maximum indentation in levels of two spaces: an element may be nested much deeper, up to the limit of the
    /// stream.
    private static let maximumDepth = 20

    /// Appends the item; each line begins with a newline and an indentation.
    ///
    /// - Parameter append: Writes a piece of the item, escaped.
    static func append(
        _ xml: Span<UInt8>,
        to line: inout LineBuffer,
        _ append: (Span<UInt8>, inout LineBuffer) -> Void
    ) {
        var offset = 0
        var depth = 0
        /// The depth at which text was found: from there on, lines are no longer broken.
        var inline: Int?
        /// Whether the last piece was an opening tag: its end tag follows on the same line.
        var isAfterOpening = false

        func breakLine(_ line: inout LineBuffer) {
            guard inline == nil else { return }
            line.append("\n    ")
            for _ in 0..<min(max(0, depth), maximumDepth) { line.append("  ") }
        }

        while offset < xml.count {
            let section = endOfCharacterData(xml, offset)
            guard xml[offset] == 0x3C, section == nil else {
                let end = section ?? xml.firstIndex(of: 0x3C, from: offset) ?? xml.count
                let text = xml.extracting(offset..<end)
                if inline == nil, text.isXMLSpace {
                    offset = end
                    continue
                }
                // Text outside any element, as in a partial item, begins a line; text in an element follows its start
                // tag.
                if depth <= 0, inline == nil { breakLine(&line) }
                if inline == nil { inline = depth }
                append(text, &line)
                isAfterOpening = false
                offset = end
                continue
            }
            let end = endOfTag(xml, offset)
            let tag = xml.extracting(offset..<end)
            switch kind(of: tag) {
            case .opening:
                breakLine(&line)
                append(tag, &line)
                depth += 1
                isAfterOpening = true
            case .closing:
                depth -= 1
                if !isAfterOpening { breakLine(&line) }
                append(tag, &line)
                if let level = inline, depth < level { inline = nil }
                isAfterOpening = false
            case .whole:
                breakLine(&line)
                append(tag, &line)
                isAfterOpening = false
            }
            offset = end
        }
    }

    private enum Tag { case opening, closing, whole }

    private static func kind(of tag: Span<UInt8>) -> Tag {
        guard tag.count > 2 else { return .whole }
        if tag[1] == 0x2F { return .closing }
        return tag[1] == 0x3F || tag[1] == 0x21 || tag[tag.count - 2] == 0x2F ? .whole : .opening
    }

    /// Returns the offset after the `>` that ends the tag; a `>` within quotes does not end it.
    private static func endOfTag(_ xml: Span<UInt8>, _ start: Int) -> Int {
        var quote: UInt8 = 0
        for offset in start..<xml.count {
            let byte = xml[offset]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == 0x22 || byte == 0x27 {
                quote = byte
            } else if byte == 0x3E {
                return offset + 1
            }
        }
        return xml.count
    }

    /// Returns the offset after `]]>` if a CDATA section begins at `start`; otherwise nil.
    private static func endOfCharacterData(_ xml: Span<UInt8>, _ start: Int) -> Int? {
        let opening: StaticString = "<![CDATA["
        guard xml.count - start >= opening.utf8CodeUnitCount else { return nil }
        for index in 0..<opening.utf8CodeUnitCount where xml[start + index] != opening.utf8Start[index] { return nil }
        var offset = start + opening.utf8CodeUnitCount
        while offset + 2 < xml.count {
            if xml[offset] == 0x5D, xml[offset + 1] == 0x5D, xml[offset + 2] == 0x3E { return offset + 3 }
            offset += 1
        }
        return xml.count
    }
}

extension Span<UInt8> {
    fileprivate var isXMLSpace: Bool {
        for index in indices {
            switch self[index] {
            case 0x20, 0x09, 0x0A, 0x0D: continue
            default: return false
            }
        }
        return true
    }
}
