internal import TapCore
internal import TapRecord
internal import XMPPCore

/// One session of a client's log: its items in the order of the log, and the stream headers that it lacks.
struct ClientLogStreams {
    /// The directions in which a stream is open: a header was there or was inferred.
    private var open: Set<Direction> = []
    /// A `<success/>` or `<proceed/>` has passed: the client's next header belongs to this session.
    private var isRestartDue = true
    private var isClosed = false
    /// The directions whose stream was closed.
    private var ended: Set<Direction> = []
    /// Whether both sides have closed their streams.
    var isClosedByBoth: Bool { ended.count == 2 }
    /// The log shows the client's own headers, and will show that of its next session too.
    private var hasHeaders = false
    /// Declarations that wait for their headers.
    private var declarations: [Direction: [UInt8]] = [:]
    /// The domain of the account, as the client's last header named it.
    private var domain: String?

    /// Whether an item belongs to a session that comes after this one: this one's streams are closed, or the client
    /// opens one unexpectedly.
    func isOver(before text: ArraySlice<UInt8>, _ direction: Direction) -> Bool {
        let opensStream = Self.isHeader(text) || Self.isDeclaration(text)
        // What the server had sent before it heard of the end still belongs to this one, and so do the acknowledgements
        // that a client sends behind its own end.
        if isClosed { return direction == .send && !Self.isEnd(text) && (opensStream || !hasHeaders) }
        guard direction == .send, opensStream else { return false }
        return !isRestartDue && declarations[.send] == nil
    }

    /// Takes what one line, or several that belong together, showed; gives the bytes that the session gets of it.
    mutating func take(_ direction: Direction, _ bytes: [UInt8]) -> [SourceInput.Kind] {
        let text = bytes.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x09 }
        defer { noteRestart(text, direction) }
        if Self.isDeclaration(text), !Self.holdsHeader(text) {
            // Some log it apart from its header: both begin one stream.
            declarations[direction] = bytes
            return []
        }
        if Self.isHeader(text) || Self.isDeclaration(text) {
            open(direction)
            if direction == .send { hasHeaders = true }
            let whole = (declarations.removeValue(forKey: direction) ?? []) + bytes
            let completed = Self.completed(whole)
            if direction == .send { noteDomain(completed ?? whole) }
            return [
                .received(
                    direction,
                    completed ?? whole,
                    inferred: completed == nil ? nil : "its namespaces are not in the log"
                )
            ]
        }
        guard !open.contains(direction) else { return [.received(direction, bytes)] }
        let inferred =
            (declarations.removeValue(forKey: direction) ?? []) + InferredHeader.bytes(direction, domain: domain)
        open(direction)
        return [.received(direction, inferred, inferred: "the header is not in the log"), .received(direction, bytes)]
    }

    // MARK: Streams

    private mutating func open(_ direction: Direction) {
        let isNew = open.insert(direction).inserted
        guard direction == .send else { return }
        // The server answers with its own stream.
        if !isNew { open.remove(.recv) }
        isRestartDue = false
    }

    /// After `<proceed/>` and after `<success/>` the streams restart (RFC 6120 §4.3.3).
    private mutating func noteRestart(_ text: ArraySlice<UInt8>, _ direction: Direction) {
        if Self.isEnd(text) {
            isClosed = true
            ended.insert(direction)
        }
        guard direction == .recv else { return }
        let tag = text.prefix { $0 != 0x3E }
        let isSASL = Self.holds("urn:ietf:params:xml:ns:xmpp-sasl", tag)
        let isTLS = Self.holds("urn:ietf:params:xml:ns:xmpp-tls", tag)
        guard text.starts(with: "<success".utf8) && isSASL || text.starts(with: "<proceed".utf8) && isTLS else {
            return
        }
        isRestartDue = true
        open = []
    }

    private mutating func noteDomain(_ header: [UInt8]) {
        var reader = OpeningReader()
        if case .header(let to?) = reader.append(header.span) { domain = to }
    }

    /// A header with the namespaces that a client's log left out, as those do that show what a parser made of it; nil if
    /// it has them.
    private static func completed(_ bytes: [UInt8]) -> [UInt8]? {
        let text = bytes[...]
        let name = Array("<stream:stream".utf8)
        guard let start = text.indices.first(where: { text[$0...].starts(with: name) }) else { return nil }
        let tag = text[start...].prefix { $0 != 0x3E }
        var missing = ""
        if !holds(" xmlns:stream=", tag) { missing += " xmlns:stream=\"http://etherx.jabber.org/streams\"" }
        if !holds(" xmlns=", tag) { missing += " xmlns=\"jabber:client\"" }
        guard !missing.isEmpty else { return nil }
        let end = start + name.count
        return Array(text[..<end]) + Array(missing.utf8) + Array(text[end...])
    }

    private static func isDeclaration(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: "<?xml".utf8) }
    private static func isEnd(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: "</stream:stream".utf8) }
    private static func isHeader(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: "<stream:stream".utf8) }
    private static func holdsHeader(_ text: ArraySlice<UInt8>) -> Bool { holds("<stream:stream", text) }

    private static func holds(_ word: StaticString, _ text: ArraySlice<UInt8>) -> Bool {
        let word = word.withUTF8Buffer { Array($0) }
        guard text.count >= word.count else { return false }
        return (text.startIndex...(text.endIndex - word.count)).contains { text[$0...].starts(with: word) }
    }
}
