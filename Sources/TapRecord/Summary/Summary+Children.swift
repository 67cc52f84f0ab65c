public import XMPPCore

// Nearly every message and presence: what its children are tells it, and none of them must be read.
extension Summary {
    /// The summary of a message or presence whose children say nothing beyond their names and the size of their text,
    /// the same that reading it would give; nil where it must be read.
    ///
    /// - Parameter decoder: has an outline of the item, its last event.
    public static func words(of head: StanzaHead, _ decoder: borrowing StreamDecoder) -> String? {
        guard head.kind == .message || head.kind == .presence else { return nil }
        let item = decoder.bytes
        let type = item.slice(head.type?.range ?? .empty)
        guard !type.equals("error"), !(head.type?.needsDecoding ?? false) else { return nil }
        var line = LineBuffer(capacity: 64)
        if head.kind == .presence {
            guard let words = presence(type) else { return nil }
            line.append(string: words)
        }
        let isTold = decoder.forEachChild { child in
            append(child, item, to: &line) && line.count < SummaryLine.limit / 2
        }
        // Where no child says anything, their names do.
        guard isTold, !line.isEmpty else { return nil }
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// - Returns: false where the child must be read.
    private static func append(_ child: OutlinedChild, _ item: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        let name = item.slice(child.name)
        guard case .text(let range) = child.content else {
            guard case .element(let inner, let photo) = child.content, child.namespace == .vCardUpdate,
                item.slice(inner).equals("photo")
            else { return false }
            return append(photo: item.slice(photo), to: &line)
        }
        switch child.namespace {
        case .client, .server, .componentAccept, .componentConnect:
            if name.equals("thread") { return true }
            let text = item.slice(range)
            guard let size = size(of: text) else { return false }
            if name.equals("body") {
                phrase("body ", to: &line)
                line.append(size: UInt64(size))
            } else if name.equals("status") {
                guard !text.isEmpty else { return true }
                phrase("status ", to: &line)
                line.append(size: UInt64(size))
            } else if name.equals("show") || name.equals("priority") {
                guard !text.isEmpty else { return true }
                guard text.count <= 16, text.count == size else { return false }
                phrase(name.equals("show") ? "" : "priority ", to: &line)
                line.append(bytes: text.bytes)
            } else {
                return false
            }
        case .chatStates:
            if name.equals("active") {
                phrase("active", to: &line)
            } else if name.equals("composing") {
                phrase("is typing", to: &line)
            } else if name.equals("paused") {
                phrase("paused typing", to: &line)
            } else {
                return false
            }
        case .receipts:
            guard name.equals("request") else { return false }
            phrase("receipt requested", to: &line)
        case .markers:
            guard name.equals("markable") else { return false }
            phrase("markable", to: &line)
        // As in their families: beside others they say nothing.
        case .stanzaID, .occupantID, .hints, .capabilities: break
        default: return false
        }
        return true
    }

    private static func phrase(_ words: StaticString, to line: inout LineBuffer) {
        if !line.isEmpty { line.append(", ") }
        line.append(words)
    }

    /// The hash of an avatar (XEP-0153 §3.1): its beginning is enough to tell one from another.
    private static func append(photo text: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        guard !text.isEmpty else {
            phrase("no avatar", to: &line)
            return true
        }
        guard text.count >= 8, size(of: text) == text.count else { return false }
        for index in 0..<8 where text[index] <= 0x20 || text[index] >= 0x7F { return false }
        phrase("avatar ", to: &line)
        line.append(bytes: text.extracting(0..<8).bytes)
        return true
    }

    /// Bytes of a text with its entities replaced; nil where more must be replaced, or it may stand for a hidden one.
    private static func size(of text: Span<UInt8>) -> Int? {
        guard !text.isEmpty else { return 0 }
        guard text[0] != 0x5B else { return nil }
        var size = 0
        var index = 0
        while index < text.count {
            switch text[index] {
            case 0x0D: return nil
            case 0x26:
                // An entity is one of the five, which are a byte each.
                guard index + 1 < text.count, text[index + 1] != 0x23 else { return nil }
                while index < text.count, text[index] != 0x3B { index += 1 }
            default: break
            }
            index += 1
            size += 1
        }
        return size
    }
}
