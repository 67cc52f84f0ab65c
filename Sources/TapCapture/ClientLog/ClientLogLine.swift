internal import TapRecord

/// A line of a client's own log, as far as it is recognised.
///
/// Clients write their own time, level and part in front of what they say; what they have in common is a word for the
/// direction and a colon before the XML: `SEND:` and `RECV:` (XMPPFramework, slixmpp, sleekxmpp), `SENT:` and `RECV:`
/// (libstrophe, and so profanity), `:::: DATA SENT ::::` with the XML on the lines that follow (nbxmpp, and so Gajim).
struct ClientLogLine {
    /// The time at its beginning.
    let stamp: ClientLogStamp?
    /// The direction of the item that it shows; nil if it shows none.
    let direction: Direction?
    /// The item, or its beginning: what follows the word for the direction.
    let item: ArraySlice<UInt8>
    /// The first word of the line, if that is a Python log level.
    let hasLevel: Bool

    init(_ line: [UInt8]) {
        stamp = ClientLogStamp(line)
        hasLevel = Self.levels.contains { level in
            line.starts(with: level) && [0x20, 0x3A].contains(line.dropFirst(level.count).first)
        }
        guard let (direction, end) = Self.marker(line) else {
            self.direction = nil
            item = line[line.endIndex...]
            return
        }
        let rest = line[end...].drop { $0 == 0x20 || $0 == 0x09 }
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
        (Array("RECEIVED".utf8), .recv),
    ]
    private static let levels: [[UInt8]] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"].map { Array($0.utf8) }

    /// Where the word for a direction ends, and the colons behind it.
    private static func marker(_ line: [UInt8]) -> (Direction, Int)? {
        let head = line.prefix(reach).prefix { $0 != 0x3C }
        // The text log of this program has the sessions of many clients in one, and is not what it was made from.
        guard !isOwnLog(head) else { return nil }
        for start in head.indices where isUpper(head[start]) && (start == 0 || !isWord(head[start - 1])) {
            for (word, direction) in words where head[start...].starts(with: word) {
                var end = start + word.count
                // sleekxmpp says in brackets that something did not wait: `SEND (IMMED):`.
                if head[end...].starts(with: " (".utf8), let close = head[end...].firstIndex(of: 0x29) {
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

    private static func isUpper(_ byte: UInt8) -> Bool { byte >= 0x41 && byte <= 0x5A }

    private static func isWord(_ byte: UInt8) -> Bool {
        isUpper(byte) || byte >= 0x61 && byte <= 0x7A || byte >= 0x30 && byte <= 0x39 || byte == 0x5F
    }
}
