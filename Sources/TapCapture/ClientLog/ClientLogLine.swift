internal import TapRecord

/// A line of a client's own log, as far as it is recognised.
///
/// Clients write their own time, level and part in front of what they say; what they have in common is a word for the
/// direction and a colon before the XML: `SEND:` and `RECV:` (XMPPFramework, slixmpp, sleekxmpp), `SENT:` and `RECV:`
/// (libstrophe, and so profanity), `:::: DATA SENT ::::` with the XML on the lines that follow (nbxmpp, and so Gajim),
/// `SENT (0):` and `RECV (0):` with the number of the connection and what was read at once (Smack). The text log of this
/// program and the debug log of Prosody with mod_stanza_debug have the same words, and the sessions of many clients.
struct ClientLogLine {
    /// The time at its beginning.
    let stamp: ClientLogStamp?
    /// The direction of the item that it shows; nil if it shows none.
    let direction: Direction?
    /// The item, or its beginning: what follows the word for the direction.
    let item: ArraySlice<UInt8>
    /// What tells the sessions of a log with several apart: `3` in this program's, `(0)` in Smack's, `c2s55d0a2b7c8e0` in
    /// Prosody's; empty in the log of a client with one.
    private(set) var session: [UInt8] = []
    /// Whose log it is.
    private(set) var writer = Writer.client
    /// The first word of the line, if that is a Python log level.
    let hasLevel: Bool

    enum Writer {
        case client
        /// A client that logs what was read or written at once, which may be part of an item or several.
        case smack
        /// This program.
        case tap
        /// Prosody, whose words are those of the server.
        case server
    }

    init(_ line: [UInt8]) {
        stamp = ClientLogStamp(line)
        hasLevel = Self.levels.contains { level in
            line.starts(with: level) && [0x20, 0x3A].contains(line.dropFirst(level.count).first)
        }
        if let own = Self.ownItem(line) {
            (session, direction) = (own.session, own.direction)
            item = Escape.resolved(own.item)[...]
            writer = .tap
            return
        }
        guard let (direction, end) = Self.marker(line) else {
            self.direction = nil
            item = line[line.endIndex...]
            return
        }
        if let connection = Self.connection(line[..<end]) {
            session = connection
            writer = .smack
            self.direction = direction
            item = line[end...].drop { $0 == 0x20 || $0 == 0x09 }
            return
        }
        let rest = line[end...].drop { $0 == 0x20 || $0 == 0x09 }
        if rest.first == 0x3C, let (session, accepts) = Self.serverSession(line[..<end]) {
            self.session = session
            writer = .server
            self.direction = accepts ? direction.opposite : direction
            item = rest
            return
        }
        // A line that says in words that something was sent shows no item.
        guard rest.isEmpty || rest.first == 0x3C else {
            self.direction = nil
            item = rest[rest.endIndex...]
            return
        }
        self.direction = direction
        item = rest
    }

    /// Characters within which the word for the direction must begin, after the client's own prefix.
    private static let reach = 240
    private static let words: [([UInt8], Direction)] = [
        (Array("SEND".utf8), .send), (Array("SENT".utf8), .send), (Array("RECV".utf8), .recv),
        (Array("RECEIVED".utf8), .recv), (Array("RCV".utf8), .recv),
    ]
    private static let levels: [[UInt8]] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"].map { Array($0.utf8) }

    /// Where the word for a direction ends, and the colons behind it.
    private static func marker(_ line: [UInt8]) -> (Direction, Int)? {
        let head = line.prefix(reach).prefix { $0 != 0x3C }
        guard !isOwnLog(head) else { return nil }
        for start in head.indices where isUpper(head[start]) && (start == 0 || !isWord(head[start - 1])) {
            for (word, direction) in words where head[start...].starts(with: word) {
                var end = start + word.count
                // sleekxmpp says in brackets that something did not wait, Smack on which connection: `SEND (IMMED):`, `RCV  (7):`.
                let brackets = head[end...].drop { $0 == 0x20 }
                if brackets.first == 0x28, brackets.startIndex > end, let close = brackets.firstIndex(of: 0x29) {
                    end = close + 1
                }
                let colons = head[end...].drop { $0 == 0x20 }
                guard colons.first == 0x3A else { continue }
                return (direction, colons.drop { $0 == 0x3A }.startIndex)
            }
        }
        return nil
    }

    /// `17:22:42.102 [3 juliet@example.org/balcony] SEND:`
    private static func isOwnLog(_ head: ArraySlice<UInt8>) -> Bool {
        let rest = head.drop { $0 != 0x20 }.dropFirst()
        guard rest.first == 0x5B, let digit = rest.dropFirst().first, digit >= 0x30, digit <= 0x39 else { return false }
        let number = rest.dropFirst().drop { $0 >= 0x30 && $0 <= 0x39 }
        return number.first == 0x20 || number.starts(with: "] SEND:".utf8) || number.starts(with: "] RECV:".utf8)
    }

    /// The time in the comment at the head of this program's log, `# 2026-11-21T17:22:42.102000000Z xmpptap 0.1.0 log info`.
    static func ownHeader(_ line: [UInt8]) -> Timestamp? {
        let words = line.prefix(100).split(separator: 0x20)
        guard words.count >= 5, words[0].elementsEqual("#".utf8), words[2].elementsEqual("xmpptap".utf8) else {
            return nil
        }
        return Timestamp(rfc3339: String(decoding: words[1], as: UTF8.self))
    }

    /// What a line of this program's log shows that was forwarded: what it dropped, or replaced, is none.
    private static func ownItem(_ line: [UInt8]) -> (session: [UInt8], direction: Direction, item: ArraySlice<UInt8>)? {
        let time = line.prefix { $0 != 0x20 }
        guard time.map({ $0 >= 0x30 && $0 <= 0x39 ? 0x30 : $0 }).elementsEqual("00:00:00.000".utf8) else { return nil }
        let rest = line[time.endIndex...].dropFirst()
        let number = rest.dropFirst().prefix { $0 >= 0x30 && $0 <= 0x39 }
        guard rest.first == 0x5B, !number.isEmpty else { return nil }
        // In who it is of, a bracket before a space is escaped.
        guard let end = rest.indices.first(where: { rest[$0] == 0x5D && rest[($0 + 1)...].first == 0x20 }) else {
            return nil
        }
        for (word, direction) in [("SEND", Direction.send), ("RECV", .recv)]
        where rest[(end + 2)...].starts(with: word.utf8) {
            let behind = rest[(end + 2 + word.utf8.count)...]
            for mark in [": <", " tap: <"] where behind.starts(with: mark.utf8) {
                return (Array(number), direction, behind.dropFirst(mark.utf8.count - 1))
            }
        }
        return nil
    }

    /// The number of a connection in brackets, as Smack writes it before the colon.
    private static func connection(_ head: ArraySlice<UInt8>) -> [UInt8]? {
        guard let open = head.lastIndex(of: 0x28) else { return nil }
        let number = head[open...].dropFirst().prefix { $0 >= 0x30 && $0 <= 0x39 }
        return !number.isEmpty && head[number.endIndex...].starts(with: "):".utf8) ? Array(number) : nil
    }

    /// The name of a session of Prosody before its level, `c2s55d0a2b7c8e0 debug`, and whether the other side opened it.
    private static func serverSession(_ head: ArraySlice<UInt8>) -> (name: [UInt8], accepts: Bool)? {
        let words = head.split { $0 == 0x20 || $0 == 0x09 }
        guard let level = words.firstIndex(where: { $0.elementsEqual("debug".utf8) }), level > 0 else { return nil }
        let name = words[level - 1]
        let kinds: [(name: String, accepts: Bool)] = [
            ("c2s", true), ("s2sin", true), ("jcp", true), ("component", true), ("s2sout", false),
        ]
        for kind in kinds where name.starts(with: kind.name.utf8) && name.count > kind.name.utf8.count + 3 {
            return (Array(name), kind.accepts)
        }
        return nil
    }

    private static func isUpper(_ byte: UInt8) -> Bool { byte >= 0x41 && byte <= 0x5A }

    private static func isWord(_ byte: UInt8) -> Bool {
        isUpper(byte) || byte >= 0x61 && byte <= 0x7A || byte >= 0x30 && byte <= 0x39 || byte == 0x5F
    }
}
