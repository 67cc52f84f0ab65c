internal import TapRecord

/// Words by which programs say who sent an item, from the point of view of the program that writes the log.
enum LogWords {
    private static let sending: Set<String> = [
        "send", "sending", "sent", "sends", "out", "outgoing", "outbound", "output", "tx", "write", "writing", "wrote",
        "transmit", "→", "⇒", "⮊", "▶", "➡",
    ]
    private static let receiving: Set<String> = [
        "recv", "rcv", "receive", "receiving", "received", "receives", "in", "incoming", "inbound", "input", "rx",
        "read",
        "reading", "got", "←", "⇐", "⮈", "◀", "⬅",
    ]
    /// Returns the direction that words indicate. If several words disagree, the last one counts, which is nearest to
    /// the XML. Nil if no word indicates a direction.
    static func direction(_ words: [[UInt8]]) -> Direction? {
        // `in` also occurs in sentences: it counts only without another direction word.
        var weak: Direction?
        for word in words.reversed() {
            let text = String(decoding: word, as: UTF8.self)
            guard let direction = sending.contains(text) ? .send : receiving.contains(text) ? .recv : arrow(word) else {
                continue
            }
            guard text == "in" else { return direction }
            weak = weak ?? direction
        }
        return weak
    }

    /// Returns the direction of an arrow of any length; nil for any other mark.
    private static func arrow(_ mark: [UInt8]) -> Direction? {
        if mark.allSatisfy({ $0 == 0x3E || $0 == 0x3D }), mark.last == 0x3E { return .send }
        return mark.first == 0x3C && mark.allSatisfy { $0 == 0x3C || $0 == 0x3D } ? .recv : nil
    }

    /// Whether a text in front of an item names a session of a server, such as `c2s55d0a2b7c8e0` of Prosody.
    static func namesServerSession(_ lead: LogLead) -> Bool {
        lead.slots.contains { slot in
            ["c2s", "s2sin", "jcp"].contains {
                slot.value.starts(with: $0.utf8) && slot.value.count > $0.utf8.count + 3
            }
        }
    }
}
