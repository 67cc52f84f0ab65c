internal import TapRecord

/// A message that was found, with its copies: those of the sender and of the receiver, carbons, results of archives.
package struct FoundMessage: Sendable {
    /// A record of the message.
    package struct Copy: Sendable, Hashable {
        /// The run, the session in it, and the number of the record in it.
        package let run: String
        package let session: UInt64
        package let sequence: UInt64
        /// The account of the session.
        package let account: String

        fileprivate init(_ row: AuditRow) {
            (run, session, sequence, account) = (row.run, row.session, row.sequence, row.account)
        }
    }

    /// The copy that is shown: the earliest; of a room, one with the sender's nickname.
    package private(set) var row: AuditRow
    /// All copies, the earliest first.
    package private(set) var copies: [Copy]

    fileprivate init(_ row: AuditRow) {
        self.row = row
        copies = [Copy(row)]
    }

    /// Adds a copy.
    ///
    /// - Parameter isShown: Whether it is shown instead of the one so far.
    fileprivate mutating func add(_ other: AuditRow, isShown: Bool) {
        copies.append(Copy(other))
        if isShown { row = other }
    }
}

/// The result of a search: each message once.
package struct FoundMessages {
    private var rows: [AuditRow] = []

    package init() {}

    /// Adds a row that matches.
    package mutating func add(_ row: AuditRow) { rows.append(row) }

    /// Number of rows, with copies.
    package var count: Int { rows.count }

    /// Returns the messages in the order of their times.
    package func messages() -> [FoundMessage] {
        var folder = MessageFolder()
        let ordered = rows.sorted {
            ($0.time, $0.seen, $0.run, $0.sequence) < ($1.time, $1.seen, $1.run, $1.sequence)
        }
        var messages: [FoundMessage] = []
        for row in ordered {
            let (number, isShown) = folder.add(MessageCopy(row))
            if messages.indices.contains(number) {
                messages[number].add(row, isShown: isShown)
            } else {
                messages.append(FoundMessage(row))
            }
        }
        return messages
    }
}
