internal import TapRecord

/// A line of a text log of xmpptap, `2026-11-21T17:22:42.102Z [3 juliet@example.org/balcony] SEND: <…>`. In logs of
/// older versions, and in logs without days, lines begin with `17:22:42.102`.
enum TapLogLine {
    /// Returns the time in the comment at the head of the log, `# 2026-11-21T17:22:42.102Z xmpptap 0.4.0 log info`; nil
    /// for any other line.
    static func header(_ line: [UInt8]) -> Timestamp? {
        let words = line.prefix(100).split(separator: 0x20)
        guard words.count >= 5, words[0].elementsEqual("#".utf8), words[2].elementsEqual("xmpptap".utf8) else {
            return nil
        }
        guard let stamp = ClientLogStamp(Array(words[1])), stamp.hasDay, stamp.hasZone else { return nil }
        return stamp.time
    }

    /// Returns the session's number, the direction and the unescaped XML of a forwarded item; nil for any other line,
    /// including a line for an item that was dropped or replaced.
    static func item(_ line: [UInt8]) -> (session: [UInt8], direction: Direction, item: [UInt8])? {
        let time = line.prefix { $0 != 0x20 }
        guard FileFormat.isStamp(time) else { return nil }
        let rest = line[time.endIndex...].dropFirst()
        let number = rest.dropFirst().prefix { $0 >= 0x30 && $0 <= 0x39 }
        guard rest.first == 0x5B, !number.isEmpty else { return nil }
        // Within the brackets, the writer escapes a closing bracket before a space.
        guard let end = rest.indices.first(where: { rest[$0] == 0x5D && rest[($0 + 1)...].first == 0x20 }) else {
            return nil
        }
        for (word, direction) in [("SEND", Direction.send), ("RECV", .recv)]
        where rest[(end + 2)...].starts(with: word.utf8) {
            let behind = rest[(end + 2 + word.utf8.count)...]
            for mark in [": <", " tap: <"] where behind.starts(with: mark.utf8) {
                return (Array(number), direction, Array(Escape.resolved(behind.dropFirst(mark.utf8.count - 1))))
            }
        }
        return nil
    }
}
