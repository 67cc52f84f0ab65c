internal import TapControl
internal import TapStore

/// Messages about the rows on their way to the servers of a store.
enum SpoolReport {
    /// Prints an event.
    ///
    /// - Parameter store: The store, for the message.
    static func show(_ event: Spool.Event, of store: String) {
        switch event {
        case .waiting(let fault, let folder):
            Console.printDiagnostic(escaped("\(fault); its rows wait in \(folder)"))
        case .sending(let shard): Console.printDiagnostic("\(store): rows are sent to \(shard) again")
        case .dropped(let stanzas, let folder):
            Console.printDiagnostic(
                escaped(
                    "warning: \(Plural.of(stanzas, "stanza")) for \(store) dropped: \(folder) is full, or a file in it is gone"
                )
            )
        case .rejected(let rows, let fault, let file):
            Console.printDiagnostic(
                escaped("warning: \(store) does not accept \(Plural.of(rows, "row")), now in \(file): \(fault.reason)")
            )
        case .damaged(let file):
            Console.printDiagnostic(
                escaped(
                    "warning: a file of the spool is damaged; what could be read was sent, the rest is missing. It is kept as \(file)"
                )
            )
        case .skipped(let folder):
            Console.printDiagnostic(
                escaped(
                    "\(folder) has rows of an earlier run for another store or of another version of xmpptap; 'xmpptap store send \(folder) STORE' "
                        + "sends them"
                )
            )
        case .notDeleted(let fault):
            Console.printDiagnostic(escaped("warning: old stanzas cannot be deleted: \(fault)"))
        case .left(let stanzas, let folder):
            Console.printDiagnostic(
                escaped(
                    "\(Plural.of(stanzas, "stanza")) for \(store) left in \(folder); the next run sends them, or "
                        + "'xmpptap store send'"
                )
            )
        }
    }

    private static func escaped(_ text: String) -> String { Console.escaped(text) }
}

extension DeliveryFigures {
    init(_ figures: Spool.Figures) {
        self.init(
            bytes: figures.bytes,
            oldest: figures.oldest,
            batches: figures.batches,
            retries: figures.retries,
            sent: figures.sent,
            rejected: figures.rejected,
            dropped: figures.dropped
        )
    }
}
