internal import TapRecord
import XMPPCore

// What others may read differently: bytes pass as they came, so that is flagged.
extension Session {
    /// Above this many bytes an item is not read again.
    private static let longestReadAgain = 256 << 10

    /// Looks twice at an item that is written in an unusual way.
    ///
    /// A namespace that is no URI is told as it is. Beyond that an element is read by the scanner's own reader, by
    /// libxml2, and by libxml2 once more from its canonical form; where these differ, others may differ, too.
    mutating func compareReaders(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        guard options.level >= .warn else { return }
        if event.head.hasDoubtfulNamespace {
            flag(
                "doubtful-namespace",
                "a namespace holds what no URI can hold: a parser that joins it with a name may read another name there",
                direction
            )
        }
        guard kind == .element, !event.isTruncated, event.length <= Self.longestReadAgain,
            // Where libxml2 refuses it, whoever needs the item will say so.
            let parsed = try? tools.parser.parse(directions[direction].decoder)
        else { return }
        let readings = [tools.elements.read(directions[direction].decoder), canonicalReading(of: parsed, direction)]
        guard Self.contradict(parsed, readings) else { return }
        flag("reads-differently", "two parsers read this item differently, or its canonical form", direction)
    }

    /// Whether not all readings of an item are alike; nil is one that failed.
    static func contradict(_ parsed: Element, _ readings: [Element?]) -> Bool { !readings.allSatisfy { $0 == parsed } }

    /// What libxml2 makes of an element as this program would write it.
    private func canonicalReading(of element: Element, _ direction: Direction) -> Element? {
        var inherited = ""
        directions[direction].decoder.forEachDeclaration { prefix, uri in
            if prefix.isEmpty { inherited = uri.string() }
        }
        let bytes = XMLWriter.bytes { $0.element(element, inheriting: inherited) }
        return try? tools.parser.parse(bytes.span, root: directions[direction].decoder.declarations)
    }

    /// The first is worth a warning; who sends a thousand of them has a thousand records of items.
    private mutating func flag(_ code: String, _ words: String, _ direction: Direction) {
        note(.note, directions[direction].hasDifference ? .verbose : .warn, code: code, words, direction: direction)
        directions[direction].hasDifference = true
    }

    // MARK: Other places

    /// A server that names a place where the session is to be resumed (XEP-0198 §3, XEP-0397 §5) leads the client away
    /// from the tap. The place can be a secret, and is not told.
    mutating func noteOtherPlace(_ enabled: Element) {
        let isPlace = enabled.isNamed("enabled") && enabled.namespace == .streamManagement
        guard isPlace, ([enabled] + enabled.children).contains(where: { $0.attribute("location") != nil }) else {
            return
        }
        note(
            .note,
            .warn,
            code: "other-location",
            "the server names another place to resume this session at: a client that goes there leaves the tap",
            direction: .recv
        )
    }
}
