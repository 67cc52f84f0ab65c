internal import Synchronization
public import TapRecord
public import XMPPCore

/// What all sessions of one run of the program share: when it began, the numbers of its records and sessions.
public final class Run: Sendable {
    /// A reading of both clocks, taken by whoever has clocks.
    public struct Instant: Sendable, Hashable {
        /// Wall clock.
        public var time: Timestamp
        /// Nanoseconds since the run began; never goes back.
        public var monotonic: Int64

        /// A reading of both clocks.
        public init(time: Timestamp, monotonic: Int64) {
            self.time = time
            self.monotonic = monotonic
        }

        /// The moment `nanoseconds` later.
        public func advanced(by nanoseconds: Int64) -> Instant {
            Instant(
                time: Timestamp(nanoseconds: time.nanoseconds &+ nanoseconds),
                monotonic: monotonic &+ nanoseconds
            )
        }
    }

    /// What sessions know of each other.
    private final class Shared: Sendable {
        let reconnects = ReconnectWatch()
        let failedLogins = ReconnectWatch(span: 600_000_000_000)
        let bindings = BindingObservations()
        let software = ClientSoftwareTable()
        let resumptions: ResumptionTable

        init(_ journal: (any ResumptionJournal)?) { resumptions = ResumptionTable(journal: journal) }
    }

    /// Knows sessions of earlier runs that cannot be resumed; nil if there is none.
    public let journal: (any ResumptionJournal)?

    /// The numbers of this run's secrets.
    public let secrets: SecretRegistry

    private let shared: Shared
    private let turn: (@Sendable () -> Void)?

    /// Whose sessions drop soon after login, again and again.
    var reconnects: ReconnectWatch {
        awaitTurn()
        return shared.reconnects
    }

    /// Clients whose logins fail again and again, within ten minutes.
    var failedLogins: ReconnectWatch {
        awaitTurn()
        return shared.failedLogins
    }

    /// What servers were seen to do about channel binding.
    var bindings: BindingObservations {
        awaitTurn()
        return shared.bindings
    }

    /// What clients called themselves.
    var software: ClientSoftwareTable {
        awaitTurn()
        return shared.software
    }

    /// Sessions that can be resumed.
    var resumptions: ResumptionTable {
        awaitTurn()
        return shared.resumptions
    }

    /// What the ids of stanzas begin with that this run injects: 96 random bits, so that no peer chooses the same.
    let idPrefix =
        "xt-" + String(UInt64.random(in: .min ... .max), radix: 36)
        + String(UInt32.random(in: .min ... .max), radix: 36)

    private let sequence = Atomic<UInt64>(0)
    private let session = Atomic<UInt64>(0)

    private let cryptography: (any Cryptography)?
    private let digestKey: [UInt8]

    /// A run that has not recorded anything. Without `cryptography`, bytes that are not shown have no digest.
    ///
    /// - Parameter journal: Knows sessions of earlier runs that cannot be resumed; without one all can that are unknown.
    public init(cryptography: (any Cryptography)? = nil, journal: (any ResumptionJournal)? = nil) {
        self.cryptography = cryptography
        digestKey = (try? cryptography?.randomBytes(count: 32)) ?? []
        secrets = SecretRegistry()
        self.journal = journal
        shared = Shared(journal)
        turn = nil
    }

    /// The part of a recorded run that one of several threads makes anew: sessions know of those of the other parts, and
    /// records are numbered by themselves.
    ///
    /// - Parameter turn: Returns when all that comes before what this thread does now is done in the other parts.
    package init(partOf run: Run, inTurn turn: @escaping @Sendable () -> Void) {
        cryptography = run.cryptography
        digestKey = run.digestKey
        secrets = SecretRegistry(sharing: run.secrets, inTurn: turn)
        shared = run.shared
        journal = run.journal
        self.turn = turn
    }

    /// Waits until what one session does can be seen by the others in the order in which it happened.
    func awaitTurn() { turn?() }

    /// A running HMAC-SHA-256 under the run's key, for bytes that are recorded without being shown: the same bytes
    /// have the same digest within a run, and nobody else can test a guess. Nil where there is no cryptography.
    func makeByteDigest() -> (any Digest)? {
        guard !digestKey.isEmpty, let cryptography else { return nil }
        return try? cryptography.makeHMAC(.sha256, key: digestKey)
    }

    /// The number of the next record.
    public func nextSequence() -> UInt64 { sequence.add(1, ordering: .relaxed).newValue }

    /// Records so far.
    package var lastSequence: UInt64 { sequence.load(ordering: .relaxed) }

    /// The number of the next session.
    public func nextSession() -> UInt64 { session.add(1, ordering: .relaxed).newValue }
}

/// What the sessions of one event loop share: parser and readers, the redactor, and memory for summaries.
///
/// None of it is ever used by two sessions at once, since a loop does one thing at a time.
public final class SessionTools {
    /// Takes items apart for those who must look inside.
    public let parser = StanzaParser()
    /// Reads items for those who only tell what they say.
    var elements = ElementReader()
    /// What their scanners have seen, for that reader.
    let outline = ItemOutline()
    /// Where summaries are made.
    var summary = LineBuffer(capacity: 256)
    /// Removes secrets from records.
    public let redactor: Redactor

    /// Tools for the sessions of `run` on one event loop.
    public init(run: Run, redaction: RedactionPolicy) {
        redactor = Redactor(policy: redaction, registry: run.secrets)
    }
}
