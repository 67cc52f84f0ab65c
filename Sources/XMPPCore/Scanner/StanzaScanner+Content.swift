/// Inside an element: text, CDATA sections, and the way to the next tag.
extension StanzaScanner {
    /// Reads text and tags until the item ends or bytes are missing.
    mutating func readContent(_ window: Span<UInt8>) -> Signal {
        while true {
            // Most tags follow another at once.
            if cursor >= window.count || window[cursor] != 0x3C {
                var mayHoldKey = false
                let stop = TextScan.scanText(window, from: cursor, mayHoldKey: &mayHoldKey)
                if mayHoldKey { head.mayHoldSecret = true }
                switch stop {
                case .end(let at):
                    cursor = at
                    return .incomplete
                case .fault(let code, let at): return .fault(code, at: at, limit: 0)
                case .special(let at): cursor = at
                }
            }
            guard cursor &+ 1 < window.count else { return .incomplete }
            if window[cursor] == 0x5D {
                // Alone it is text, before `]>` it is an error (production 14).
                if window[cursor &+ 1] == 0x5D {
                    guard cursor &+ 2 < window.count else { return .incomplete }
                    guard window[cursor &+ 2] != 0x3E else { return .fault(.sectionEndInText, at: cursor, limit: 0) }
                }
                cursor &+= 1
                continue
            }
            let signal: Signal
            switch window[cursor &+ 1] {
            case 0x2F: signal = readEndTag(window)
            case 0x21: signal = readMarkup(window, at: cursor)
            case 0x3F: return .fault(.processingInstruction, at: cursor, limit: 0)
            default: signal = readTag(window, at: cursor)
            }
            guard case .more = signal, case .content = state else { return signal }
        }
    }

    /// `<!`: a CDATA section inside an element is allowed, everything else is not.
    mutating func readMarkup(_ window: Span<UInt8>, at start: Int) -> Signal {
        guard start &+ 2 < window.count else { return .incomplete }
        let opening: StaticString = "<![CDATA["
        switch window[start &+ 2] {
        case 0x2D: return .fault(.comment, at: start, limit: 0)
        case 0x5B:
            for index in 2..<9 {
                guard start &+ index < window.count else { return .incomplete }
                guard window[start &+ index] == opening.utf8Start[index] else {
                    return .fault(.malformedTag, at: start, limit: 0)
                }
            }
            guard open.count > 1 else { return .fault(.textOutsideStanza, at: start, limit: 0) }
            state = .section
            head.isUnusual = true
            // Text that goes on in a section may hold what neither of the two parts shows.
            head.mayHoldSecret = true
            cursor = start &+ 9
            if let outlineState, outlineState.pointee.item == outlinedItem { outlineState.pointee.isPartial = true }
            return .more
        default: return .fault(.documentType, at: start, limit: 0)
        }
    }

    mutating func readSection(_ window: Span<UInt8>) -> Signal {
        var mayHoldKey = false
        let stop = TextScan.scanSection(window, from: cursor, mayHoldKey: &mayHoldKey)
        if mayHoldKey { head.mayHoldSecret = true }
        switch stop {
        case .end(let at):
            cursor = at
            return .incomplete
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        case .special(let at):
            cursor = at
            guard at &+ 1 < window.count else { return .incomplete }
            guard window[at &+ 1] == 0x5D else {
                cursor = at &+ 1
                return .more
            }
            guard at &+ 2 < window.count else { return .incomplete }
            guard window[at &+ 2] == 0x3E else {
                cursor = at &+ 1
                return .more
            }
            cursor = at &+ 3
            state = .content
            return .more
        }
    }
}
