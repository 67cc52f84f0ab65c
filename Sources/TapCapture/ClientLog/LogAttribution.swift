internal import TapRecord

/// Finds the session of items whose lines do not name one. Libpurple's log, for example, names the account only for
/// items that it sends.
///
/// An answer belongs to the session that waits for it, a stanza to the account to which it is addressed. If several
/// sessions wait for the same kind of answer, the session of the answer is unknown.
struct LogAttribution {
    /// The properties of an item that matter here.
    struct Item {
        var role: LogEvidence.Role
        var direction: Direction?
        /// The bare JID to which a stanza is addressed, or the domain of a stream header.
        var address: [UInt8]?

        init(_ evidence: LogEvidence, _ direction: Direction?) {
            role = evidence.role
            self.direction = direction ?? evidence.direction
            address = evidence.address
        }
    }

    private struct Session {
        var awaitsHeader = false
        var awaitsFeatures = false
        var awaitsConsent = false
        var isAuthenticating = false
        var domain: [UInt8]?
    }

    private var sessions: [[UInt8]: Session] = [:]
    private var requests: [[UInt8]: [UInt8]] = [:]
    private var accounts: [[UInt8]: [UInt8]] = [:]
    private var latest: [UInt8] = []
    /// The number of items that may belong to more than one session.
    private(set) var ambiguities = 0

    private static let maximumCount = 65_536

    /// Returns the session of a fragment's items, and notes what the session waits for after them.
    ///
    /// - Parameters:
    ///   - value: The session that the fragment's line names; nil if the line names none.
    ///   - isUsual: Whether lines of this direction usually name the session. If so, a line that names none belongs to
    ///     the session of the items before it.
    mutating func session(_ items: [Item], value: [UInt8]?, isUsual: Bool) -> [UInt8] {
        var owner = value
        for item in items where owner == nil {
            if case .reply(let id) = item.role { owner = requests[id] }
            if owner == nil, !isUsual { owner = self.owner(of: item) }
        }
        let session = owner ?? latest
        if value == nil, !isUsual {
            for item in items where isAmbiguous(item) { ambiguities += 1 }
        }
        latest = session
        for item in items { record(item, session) }
        return session
    }

    private func owner(of item: Item) -> [UInt8]? {
        guard item.direction != .send else { return nil }
        let waiting = waiting(for: item)
        if waiting.count == 1 { return waiting.first }
        return item.address.flatMap { accounts[$0] }
    }

    private func isAmbiguous(_ item: Item) -> Bool { item.direction != .send && waiting(for: item).count > 1 }

    /// Returns the sessions that wait for an item of this kind.
    private func waiting(for item: Item) -> [[UInt8]] {
        let isDue: (Session) -> Bool
        switch item.role {
        case .opening:
            isDue = { session in
                session.awaitsHeader
                    && (session.domain == nil || item.address == nil || session.domain == item.address)
            }
        case .features: isDue = { $0.awaitsFeatures }
        case .answer: isDue = { $0.awaitsConsent }
        case .challenge, .success, .failure: isDue = { $0.isAuthenticating }
        default: return []
        }
        return sessions.filter { isDue($0.value) }.map(\.key)
    }

    private mutating func record(_ item: Item, _ session: [UInt8]) {
        if sessions.count >= Self.maximumCount { sessions = [:] }
        switch (item.role, item.direction) {
        case (.opening, .send):
            let domain = item.address ?? sessions[session]?.domain
            sessions[session] = Session(awaitsHeader: true, awaitsFeatures: true, domain: domain)
        case (.opening, _): sessions[session]?.awaitsHeader = false
        case (.features, _):
            sessions[session]?.awaitsHeader = false
            sessions[session]?.awaitsFeatures = false
        case (.request(let isLogin), _):
            if isLogin {
                sessions[session, default: Session()].isAuthenticating = true
            } else {
                sessions[session, default: Session()].awaitsConsent = true
            }
        case (.answer, _): sessions[session]?.awaitsConsent = false
        case (.success, _), (.failure, _):
            sessions[session]?.isAuthenticating = false
            sessions[session]?.awaitsConsent = false
        case (.end, .send): sessions[session] = nil
        case (.query(let id), .send):
            if requests.count >= Self.maximumCount { requests = [:] }
            requests[id] = session
        default: break
        }
        if item.direction == .recv, let address = item.address, address.contains(0x40) {
            if accounts.count >= Self.maximumCount { accounts = [:] }
            accounts[address] = session
        }
    }
}
