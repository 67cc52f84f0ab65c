internal import XMPPCore

/// Determines which parts of each record a log shows, according to its ``LogSpec``.
///
/// If the specification has no entries for parts, sessions or JIDs, this takes only a few comparisons.
public struct LogFilter: Sendable, Hashable {
    /// The parts of a record that a log shows.
    public struct Shown: OptionSet, Sendable, Hashable {
        /// The parts as bits.
        public let rawValue: UInt8

        /// Creates options from bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The line that describes the event.
        public static let summary = Shown(rawValue: 1)
        /// The SEND or RECV line with the whole XML.
        package static let xml = Shown(rawValue: 2)
    }

    /// The specification.
    package let spec: LogSpec
    /// The least severe level that this filter may show: less severe records need not be made for it.
    ///
    /// At least ``Level/verbose`` if SEND or RECV are on, since that is the level of the whole XML.
    package let level: Level

    private let base: Level
    private let hasOverrides: Bool

    /// Creates the filter of a specification.
    package init(_ spec: LogSpec) {
        self.spec = spec
        base = spec.level ?? .info
        hasOverrides = !(spec.parts.isEmpty && spec.sessions.isEmpty && spec.jids.isEmpty)
        var levels = [base]
        levels += spec.parts.values
        levels += spec.sessions.values
        levels += spec.jids.map(\.level)
        if spec.showsSend || spec.showsReceive { levels.append(.verbose) }
        level = levels.max() ?? .off
    }

    /// Returns the shown parts of `record`; empty if it is not shown.
    package func shown(of record: borrowing Record) -> Shown {
        let asked = hasOverrides ? override(record.part, record.session, spec.jids.isEmpty ? nil : whose(record)) : nil
        let level = asked ?? base
        var shown: Shown = record.level <= level && record.level != .off ? .summary : []
        // A note about an item is shown beside the item.
        guard let direction = record.direction, record.xml != nil, record.kind != .note else { return shown }
        // `send` and `recv` show XML at any level, but a session or part at level `off` shows nothing.
        let isSwitchedOn = (direction == .send ? spec.showsSend : spec.showsReceive) && asked != .off
        if level >= .verbose || isSwitchedOn { shown.insert(.xml) }
        return shown
    }

    /// Returns the level for a part, a session (0 for none) and its bound JID.
    package func level(of part: Part, session: UInt64 = 0, jid: String? = nil) -> Level {
        (hasOverrides ? override(part, session, jid) : nil) ?? base
    }

    /// Returns the identity of the session: its JID once bound, before that the name that the client claims, or only
    /// the domain.
    private func whose(_ record: borrowing Record) -> String? {
        if let jid = record.jid { return jid }
        guard let user = record.user else { return record.domain }
        // Some clients send the whole bare JID as the user name, and some servers accept it.
        guard !user.utf8.contains(0x40), let domain = record.domain else { return user }
        return "\(user)@\(domain)"
    }

    /// Returns the level of the most specific matching entry, if any.
    private func override(_ part: Part, _ session: UInt64, _ jid: String?) -> Level? {
        if let level = spec.sessions[session] { return level }
        if !spec.jids.isEmpty, let jid, let level = override(jid) { return level }
        return spec.parts[part]
    }

    private func override(_ text: String) -> Level? {
        // The bound address may be an invalid JID; its parts still identify the session.
        let address = Address(text)
        var best: (particularity: Int, level: Level)?
        for entry in spec.jids {
            let parts: JID.Parts = entry.jid.isFull ? .full : entry.jid.isServer ? .domain : .bare
            guard address.matches(Address(entry.jid), in: parts),
                parts.rawValue.nonzeroBitCount > best?.particularity ?? 0
            else {
                continue
            }
            best = (parts.rawValue.nonzeroBitCount, entry.level)
        }
        return best?.level
    }
}
