internal import TapRecord

/// A stream header that stands for one that was not seen, without which a stream cannot be read.
enum InferredHeader {
    /// A header of a direction, with the domain that it names where that is known.
    static func bytes(_ direction: Direction, domain: String? = nil) -> [UInt8] {
        let address = domain.map { " \(direction == .send ? "to" : "from")=\"\(escape($0))\"" }
        return Array(
            ("<stream:stream xmlns=\"jabber:client\" xmlns:stream=\"http://etherx.jabber.org/streams\""
                + "\(address ?? "") version=\"1.0\">").utf8
        )
    }

    private static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }
}
