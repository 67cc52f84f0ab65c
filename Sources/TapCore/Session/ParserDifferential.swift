internal import TapRecord
import XMPPCore

/// Finds items that other parsers may read differently. Such items are relayed unchanged, but reported.
///
/// A namespace that is not a URI is always reported. In addition, an element is read by the scanner's own reader, by
/// libxml2, and by libxml2 from its canonical form. If the results differ, other parsers may differ too.
struct ParserDifferential {
    /// The reason why an item is reported. The raw value is the code of the record.
    enum Finding: String {
        case doubtfulNamespace = "doubtful-namespace"
        case readsDifferently = "reads-differently"

        var explanation: Prose {
            switch self {
            case .doubtfulNamespace:
                "a namespace is not a valid URI: a parser that joins it with a name may read a different name"
            case .readsDifferently: "two parsers read this item, or its canonical form, differently"
            }
        }
    }

    /// The largest item in bytes that is read again.
    private static let maximumReadLength = 256 << 10

    /// The directions with findings so far.
    private var flagged: [Direction] = []

    /// Checks the decoder's last item, which has unusual syntax; returns the findings and their level. The first
    /// finding of a direction is a warning, later ones are verbose, because each item has its own record.
    mutating func observe(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decoder: borrowing StreamDecoder,
        _ tools: SessionTools
    ) -> [(level: Level, finding: Finding)] {
        var findings: [Finding] = event.head.hasDoubtfulNamespace ? [.doubtfulNamespace] : []
        if event.item == .element, !event.isTruncated, event.length <= Self.maximumReadLength,
            // If libxml2 rejects the item, the code that needs it reports the error.
            let parsed = try? tools.parser.parse(decoder),
            Self.contradict(parsed, [tools.elements.read(decoder), Self.canonicalReading(of: parsed, decoder, tools)])
        {
            findings.append(.readsDifferently)
        }
        return findings.map { finding in
            defer { if !flagged.contains(direction) { flagged.append(direction) } }
            return (flagged.contains(direction) ? .verbose : .warn, finding)
        }
    }

    /// Returns whether the readings of an item differ; nil is a failed reading.
    static func contradict(_ parsed: Element, _ readings: [Element?]) -> Bool { !readings.allSatisfy { $0 == parsed } }

    /// Returns libxml2's reading of the canonical form of an element: the form that xmpptap would write.
    private static func canonicalReading(
        of element: Element,
        _ decoder: borrowing StreamDecoder,
        _ tools: SessionTools
    ) -> Element? {
        var inherited = ""
        decoder.forEachDeclaration { prefix, uri in
            if prefix.isEmpty { inherited = uri.string() }
        }
        let bytes = XMLWriter.bytes { $0.element(element, inheriting: inherited) }
        return try? tools.parser.parse(bytes.span, root: decoder.declarations)
    }

    /// Records whether parsers read the last event's item differently.
    mutating func compareReaders(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        guard context.options.level >= .warn else { return }
        for found in observe(event, direction, context.directions[direction].decoder, context.tools) {
            context.report(
                .note,
                found.level,
                code: found.finding.rawValue,
                found.finding.explanation,
                direction: direction
            )
        }
    }
}
