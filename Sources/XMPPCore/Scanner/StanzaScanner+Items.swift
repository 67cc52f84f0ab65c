/// Between items: white space, declarations, where an item begins, and what may not stand there.
extension StanzaScanner {
    mutating func readBetween(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        guard window[0] == 0x3C else {
            let space = Self.whitespace(window)
            guard space == 0 else { return whitespaceItem(space) }
            head = StanzaHead()
            return .fault(openingFault(window[0]), at: 0, limit: 0)
        }
        guard window.count > 1 else { return .incomplete }
        head = StanzaHead()
        hasDiscarded = false
        cursor = 0
        switch window[1] {
        case 0x3F: return readDeclaration(window)
        case 0x21: return readMarkup(window, at: 0)
        case 0x00 where open.count == 0: return .fault(.unsupportedEncoding, at: 0, limit: 0)
        default: return readTag(window, at: 0)
        }
    }

    mutating func readAfterEnd(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        let space = Self.whitespace(window)
        head = StanzaHead()
        return space > 0 ? whitespaceItem(space) : .fault(.afterStreamEnd, at: 0, limit: 0)
    }

    private mutating func whitespaceItem(_ count: Int) -> Signal {
        head = StanzaHead()
        return .item(.whitespace, length: count, beginsEpoch: false)
    }

    private static func whitespace(_ window: Span<UInt8>) -> Int {
        var count = 0
        while count < window.count, XMLCharacters.isWhitespace(window[count]) { count &+= 1 }
        return count
    }

    /// What is wrong with a first byte that is neither `<` nor white space.
    private func openingFault(_ byte: UInt8) -> ScanFault.Code {
        switch byte {
        case 0xFE, 0xFF: open.count == 0 ? .unsupportedEncoding : .invalidUTF8
        case 0x00: open.count == 0 ? .unsupportedEncoding : .invalidCharacter
        default: open.count == 0 ? .notXML : .textOutsideStanza
        }
    }

    private mutating func readDeclaration(_ window: Span<UInt8>) -> Signal {
        let target: StaticString = "<?xml"
        for index in 0..<5 {
            guard index < window.count else { return .incomplete }
            guard window[index] == target.utf8Start[index] else {
                return .fault(.processingInstruction, at: 0, limit: 0)
            }
        }
        guard window.count > 5 else { return .incomplete }
        guard XMLCharacters.isWhitespace(window[5]), !seenDeclaration || open.count > 0 else {
            return .fault(.processingInstruction, at: 0, limit: 0)
        }
        switch XMLDeclaration.check(window) {
        case .incomplete: return .incomplete
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        case .complete(let end):
            resetEpoch()
            seenDeclaration = true
            return .item(.declaration, length: end, beginsEpoch: true)
        }
    }

    /// Forgets the stream: no declaration, name or element of it is known to the next one.
    mutating func resetEpoch() {
        open.removeAll()
        names.removeAll(keepingCapacity: true)
        scope.removeAll()
        declarations = []
        seenDeclaration = false
    }
}
