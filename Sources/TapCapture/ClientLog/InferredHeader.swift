internal import TapRecord

/// Makes a stream header to replace one that was not seen, because a stream cannot be read without its header.
enum InferredHeader {
    /// Returns a header for a direction, which names the server's domain if it is known.
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
