internal import XMPPCore

/// The divergences of a replay, with the stanzas that were not sent because of them.
struct ReplayFindings: Sendable {
    /// Identifies a stanza that was not sent.
    private struct Unsent: Hashable {
        let account: JID
        let id: String
    }

    /// Maximum number of unexpected items that are reported.
    static let maximumUnexpected = 10_000

    /// The divergences in the order in which they were found; sorted by recording order after ``sort()``.
    private(set) var divergences: [Divergence] = []
    /// Number of unexpected items so far.
    private var unexpected = 0
    /// Number of unexpected items that are not reported, by class.
    private(set) var omitted: [Divergence.Class: Int] = [:]
    /// Stanzas that were not sent, with the index of the divergence that is the cause.
    private var unsent: [Unsent: Int] = [:]

    /// The messages of the reported differences between offers.
    private var comparedOffers: Set<String> = []

    /// Errors of the preparation.
    var failures: [String] = []
    var hasFailed: Bool { !failures.isEmpty }
    /// The first error of the preparation, with the number of further errors; nil if there is none.
    var failure: String? {
        failures.first.map { "\($0)\(failures.count > 1 ? " (and \(failures.count - 1) more)" : "")" }
    }

    /// Adds a divergence, below its cause if it has one.
    ///
    /// - Returns: The index of the cause if there is one. Otherwise the index of the divergence, or of the last
    ///   divergence if this one is not reported.
    @discardableResult
    mutating func add(_ divergence: Divergence, of client: Int, below cause: Int? = nil) -> Int {
        if divergence.code == .unexpected {
            unexpected += 1
            guard unexpected <= Self.maximumUnexpected else {
                omit(1, divergence.divergenceClass)
                return cause ?? divergences.count - 1
            }
        }
        var divergence = divergence
        divergence.client = client
        guard let cause else {
            divergences.append(divergence)
            return divergences.count - 1
        }
        if divergences[cause].divergenceClass == .redacted { divergence.divergenceClass = .redacted }
        divergences[cause].followed.append(divergence)
        return cause
    }

    /// Compares the offer of the recorded server with that of the live one. A difference is reported once, for the first
    /// client that has it.
    mutating func compare(_ recorded: ServerOffer?, _ live: ServerOffer, of client: Int, at moment: Divergence.Item) {
        guard let recorded, let divergence = Divergence(recorded, live, at: moment),
            comparedOffers.insert(divergence.message).inserted
        else { return }
        add(divergence, of: client)
    }

    /// Counts divergences that are not reported.
    mutating func omit(_ count: Int, _ divergenceClass: Divergence.Class) {
        if count > 0 { omitted[divergenceClass, default: 0] += count }
    }

    /// Records that an account did not send a stanza because of a divergence.
    mutating func recordUnsent(_ item: RecordedItem, of account: JID, _ cause: Int) {
        guard let id = item.id else { return }
        unsent[Unsent(account: account.normalized, id: id)] = cause
    }

    /// Returns the index of the divergence because of which an account did not send the stanza with the id of the item;
    /// nil if the stanza was sent.
    func cause(of item: RecordedItem, from accounts: [JID]) -> Int? {
        guard !unsent.isEmpty, let id = item.id else { return nil }
        return accounts.lazy.compactMap { unsent[Unsent(account: $0.normalized, id: id)] }.first
    }

    /// Sorts the divergences by recording order.
    mutating func sort() {
        divergences.sort { $0.place < $1.place }
        for index in divergences.indices { divergences[index].followed.sort { $0.place < $1.place } }
    }
}
