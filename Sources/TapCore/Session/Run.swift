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

    /// The numbers of this run's secrets.
    public let secrets = SecretRegistry()

    /// Whose sessions drop soon after login, again and again.
    let reconnects = ReconnectWatch()

    /// What servers were seen to do about channel binding.
    let bindings = BindingObservations()

    /// Sessions that can be resumed.
    let resumptions: ResumptionTable

    /// What the ids of stanzas begin with that this run injects: unlike any that a peer chooses.
    let idPrefix = "xt-" + String(UInt64.random(in: .min ... .max), radix: 36)

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
        resumptions = ResumptionTable(journal: journal)
    }

    /// A running HMAC-SHA-256 under the run's key, for bytes that are recorded without being shown: the same bytes
    /// have the same digest within a run, and nobody else can test a guess. Nil where there is no cryptography.
    func makeByteDigest() -> (any Digest)? {
        guard !digestKey.isEmpty, let cryptography else { return nil }
        return try? cryptography.makeHMAC(.sha256, key: digestKey)
    }

    /// The number of the next record.
    public func nextSequence() -> UInt64 { sequence.add(1, ordering: .relaxed).newValue }

    /// The number of the next session.
    public func nextSession() -> UInt64 { session.add(1, ordering: .relaxed).newValue }
}

/// What the sessions of one event loop share: the parser with its pool of contexts, and the redactor.
///
/// Neither is ever used by two sessions at once, since a loop does one thing at a time.
public final class SessionTools {
    /// Takes items apart for those who must look inside.
    public let parser = StanzaParser()
    /// Reads items for those who only tell what they say.
    var elements = ElementReader()
    /// What their scanners have seen, for that reader.
    let outline = ItemOutline()
    /// Takes secrets out of what is told.
    public let redactor: Redactor

    /// Tools for the sessions of `run` on one event loop.
    public init(run: Run, redaction: RedactionPolicy) {
        redactor = Redactor(policy: redaction, registry: run.secrets)
    }
}
