import XMPPCore

/// Finds the text of a message in an item: that of its `<body/>` (RFC 6121 §5.2.3), or of the inner message that is a
/// copy or an archive result.
enum MessageBody {
    /// Maximum depth of inner messages. A copy of an archive result, the deepest common case, is at the sixth level.
    private static let maximumDepth = 12

    /// Appends the text, with references decoded.
    ///
    /// - Returns: Whether there is a text that may be shown; false if a placeholder replaces it.
    static func read(_ item: Span<UInt8>, into text: inout [UInt8]) -> Bool {
        var reader = ItemReader()
        reader.begin()
        /// The namespaces of the open elements; nil for an element that is not a message.
        var messages: [Namespace?] = []
        /// The depth of the current body.
        var body: Int?
        var best = Int.max
        var isDone = false
        while !isDone, let token = reader.next(item) {
            switch token {
            case .start:
                let name = item.slice(reader.name)
                if body == nil, messages.count < best, name.equals("body"), let parent = messages.last,
                    parent == reader.namespace
                {
                    // Takes the first body if there are several languages, and the body of the outermost message.
                    text.removeAll(keepingCapacity: true)
                    body = messages.count
                    best = messages.count
                }
                messages.append(name.equals("message") && messages.count < maximumDepth ? reader.namespace : nil)
            case .text(let range) where messages.count == body.map({ $0 + 1 }):
                AttributeValue.decodeText(item.slice(range), into: &text)
            case .section(let range, _) where messages.count == body.map({ $0 + 1 }): text.append(item.slice(range))
            case .text, .section: break
            case .end:
                guard !messages.isEmpty else { return false }
                messages.removeLast()
                if messages.count == body {
                    body = nil
                    // A body of the outermost message takes precedence over all others.
                    isDone = best == 1
                }
            case .fault: return false
            }
        }
        return body == nil && best < .max && !text.isEmpty && !Placeholder.isPlaceholder(text.span)
    }
}
