internal import TapRecord
import XMPPCore

// Items that other parsers may read differently: they are relayed unchanged, so they are flagged.
extension Session {
    /// Larger items, in bytes, are not parsed again.
    private static let longestReadAgain = 256 << 10

    /// Parses an item with unusual syntax again.
    ///
    /// A namespace that is no URI is told as it is. Beyond that an element is read by the scanner's own reader, by
    /// libxml2, and by libxml2 once more from its canonical form; where these differ, others may differ, too.
    mutating func compareReaders(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        guard options.level >= .warn else { return }
        if event.head.hasDoubtfulNamespace {
            flag(
                "doubtful-namespace",
                "a namespace is not a valid URI: a parser that joins it with a name may read a different name",
                direction
            )
        }
        guard kind == .element, !event.isTruncated, event.length <= Self.longestReadAgain,
            // If libxml2 rejects it, the code that needs the item reports that.
            let parsed = try? tools.parser.parse(directions[direction].decoder)
        else { return }
        let readings = [tools.elements.read(directions[direction].decoder), canonicalReading(of: parsed, direction)]
        guard Self.contradict(parsed, readings) else { return }
        flag("reads-differently", "two parsers read this item, or its canonical form, differently", direction)
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

    /// Only the first is reported; each item has its own record.
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
            "the server names another host for resumption; a client that resumes there will bypass xmpptap",
            direction: .recv
        )
    }
}
