public import XMPPCore

// The many that need not be read: what their head tells, and the few bytes behind it.
extension Summary {
    /// The summary of a stanza that its head tells whole, the same that reading it would give; nil where it must be
    /// read.
    ///
    /// These are pings, answers without content, presence without content, and messages with nothing but a body, a chat
    /// state or a request for a receipt.
    /// - Parameters:
    ///   - item: the bytes that `head` refers to.
    ///   - context: what is known beside them.
    public static func words(of head: StanzaHead, _ item: Span<UInt8>, _ context: Context) -> String? {
        let type = item.slice(head.type?.range ?? .empty)
        switch head.kind {
        case .presence where head.isEmptyElement && !type.equals("error"): return presence(type)
        case .iq where head.payloadNamespace.namespace == .ping && !type.equals("error"): return "ping"
        case .iq where head.payloadName == nil && type.equals("result"):
            return context.request.map { "ok: \($0.text)" } ?? "ok"
        case .message where !type.equals("error"):
            guard let name = head.payloadName else { return nil }
            return message(head.payloadNamespace.namespace, name, item)
        default: return nil
        }
    }

    /// A message with one child, which is empty or a body of plain text.
    private static func message(_ namespace: Namespace, _ name: ByteRange, _ item: Span<UInt8>) -> String? {
        let word = item.slice(name)
        if namespace.isContent {
            guard word.equals("body"), let size = bodySize(item, behind: Int(name.end)), size < 1_000_000 else {
                return nil
            }
            var line = LineBuffer(capacity: 32)
            line.append("body ")
            line.append(size: UInt64(size))
            return String(decoding: line.bytes, as: UTF8.self)
        }
        guard namespace == .chatStates || namespace == .receipts, isLast(item, behind: Int(name.end)) else {
            return nil
        }
        switch namespace {
        case .chatStates where word.equals("composing"): return "is typing"
        case .chatStates where word.equals("paused"): return "paused typing"
        case .chatStates where word.equals("active"): return "active"
        case .receipts where word.equals("request"): return "receipt requested"
        default: return nil
        }
    }

    /// Whether the empty tag whose name ends at `end` is followed by nothing but the end of the message.
    private static func isLast(_ item: Span<UInt8>, behind end: Int) -> Bool {
        let rest: StaticString = "/></message>"
        let start = item.count - rest.utf8CodeUnitCount
        guard start >= end, item.extracting(start..<item.count).equals(rest) else { return false }
        // No `<` can stand within a tag, so there is no other one.
        for index in end..<start where item[index] == 0x3C { return false }
        return true
    }

    /// Bytes of the text in a body whose name ends at `end`; nil where the message holds more, or the text must be decoded.
    private static func bodySize(_ item: Span<UInt8>, behind end: Int) -> Int? {
        let rest: StaticString = "</body></message>"
        let start = item.count - rest.utf8CodeUnitCount
        // A bracket could begin what stands for a hidden text.
        guard end + 1 < start, item[end] == 0x3E, item[end + 1] != 0x5B,
            item.extracting(start..<item.count).equals(rest)
        else { return nil }
        for index in (end + 1)..<start {
            switch item[index] {
            case 0x3C, 0x26, 0x0D: return nil
            default: continue
            }
        }
        return start - end - 1
    }
}
