package import TapRecord

/// Counts the stanzas and sessions of a store or of recordings.
///
/// Memory grows with the number of different addresses, payloads, accounts and unanswered requests, not with the number of
/// stanzas. Only if stanzas are not added in the order of their times, each message needs about 500 bytes until the end.
package struct StatisticsCounter {
    private var statistics = AuditStatistics()
    private var messages: MessageCounter
    private var requests = RequestCounter()
    private var logins = LoginCounter()
    private var sizes = SizeCounter()

    /// - Parameters:
    ///   - zone: The zone of hours and days.
    ///   - isOrdered: Whether stanzas are added in the order of their times.
    package init(zone: LocalZone, isOrdered: Bool) { messages = MessageCounter(zone: zone, isOrdered: isOrdered) }

    /// Counts a stanza, or a session with all that is known of it.
    package mutating func add(_ entry: AuditEntry) {
        switch entry {
        case .stanza(let row): add(row)
        case .session(let session): logins.add(session)
        case .gap: break
        }
    }

    private mutating func add(_ row: AuditRow) {
        statistics.stanzas += 1
        statistics.bytes += row.size
        statistics.times = statistics.times.map { $0.including(row.seen) } ?? row.seen...row.seen
        sizes.add(row)
        switch row.kind {
        case .message where row.body != nil: messages.add(row)
        case .iq: requests.add(row)
        case .message, .presence: break
        }
    }

    /// Returns the figures. Nothing can be added afterwards.
    package consuming func finish() -> AuditStatistics {
        messages.finish(&statistics)
        requests.finish(&statistics)
        statistics.failedLogins = logins.all
        (statistics.kinds, statistics.sizes) = (sizes.kinds, sizes.all)
        return statistics
    }
}

extension ClosedRange<Timestamp> {
    /// Returns the range that also contains a time.
    func including(_ time: Timestamp) -> Self { Swift.min(lowerBound, time)...Swift.max(upperBound, time) }
}

/// Counts stanzas and bytes by kind and namespace.
private struct SizeCounter {
    private struct Name: Hashable {
        let kind: AuditRow.Kind
        /// The payload, or its namespace.
        let text: String
    }

    private var sizes: [Name: (stanzas: Int, bytes: Int)] = [:]

    mutating func add(_ row: AuditRow) {
        let name = Name(kind: row.kind, text: row.payload ?? "")
        sizes[name, default: (0, 0)].stanzas += 1
        sizes[name, default: (0, 0)].bytes += row.size
    }

    var kinds: [AuditStatistics.KindSize] {
        AuditRow.Kind.allCases.compactMap { kind in
            let found = sizes.filter { $0.key.kind == kind }.values
            guard !found.isEmpty else { return nil }
            return AuditStatistics.KindSize(
                kind: kind,
                stanzas: found.reduce(0) { $0 + $1.stanzas },
                bytes: found.reduce(0) { $0 + $1.bytes }
            )
        }
        .sorted { ($1.bytes, $0.kind.rawValue) < ($0.bytes, $1.kind.rawValue) }
    }

    var all: [AuditStatistics.Size] {
        var found: [Name: AuditStatistics.Size] = [:]
        for (name, size) in sizes {
            let namespace = Self.namespace(name.text)
            let place = Name(kind: name.kind, text: namespace)
            found[place, default: .init(kind: name.kind, namespace: namespace)].stanzas += size.stanzas
            found[place, default: .init(kind: name.kind, namespace: namespace)].bytes += size.bytes
        }
        return found.values.sorted {
            ($1.bytes, $0.namespace, $0.kind.rawValue) < ($0.bytes, $1.namespace, $1.kind.rawValue)
        }
    }

    /// Returns the namespace of `{namespace}name`.
    private static func namespace(_ payload: String) -> String {
        guard payload.hasPrefix("{"), let end = payload.lastIndex(of: "}") else { return "" }
        return String(payload[payload.index(after: payload.startIndex)..<end])
    }
}
