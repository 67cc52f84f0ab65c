internal import Synchronization
package import TapDiagnosis
public import TapRecord
import TapRules
package import XMPPCore

/// The state that all sessions of one run of the program share: its secrets, observations of peers, and the numbers of
/// its records and sessions.
public final class Run: Sendable {
    /// The time of both clocks, read by the caller.
    public struct Instant: Sendable, Hashable {
        /// The wall clock time.
        public var time: Timestamp
        /// The time in nanoseconds since the run began; never decreases.
        package var monotonic: Int64

        /// Creates an instant from the time of both clocks.
        public init(time: Timestamp, monotonic: Int64) {
            self.time = time
            self.monotonic = monotonic
        }

        /// Returns the instant that is `nanoseconds` later.
        public func advanced(by nanoseconds: Int64) -> Instant {
            Instant(
                time: Timestamp(nanoseconds: time.nanoseconds &+ nanoseconds),
                monotonic: monotonic &+ nanoseconds
            )
        }
    }

    /// The state that sessions share.
    private final class Shared: Sendable {
        let reconnects = ReconnectWatch()
        let failedLogins = ReconnectWatch(span: 600_000_000_000)
        let bindings = BindingObservations()
        let software = ClientSoftwareTable()
        let resumptions: ResumptionTable

        init(_ journal: (any ResumptionJournal)?) { resumptions = ResumptionTable(journal: journal) }
    }

    /// The journal of sessions that cannot be resumed after a restart; nil without a journal.
    package let journal: (any ResumptionJournal)?

    /// The secrets of this run, with the numbers that replace them in records.
    package let secrets: SecretRegistry

    private let shared: Shared
    private let turn: (@Sendable () -> Void)?

    /// The clients whose sessions repeatedly drop soon after login.
    var reconnects: ReconnectWatch {
        awaitTurn()
        return shared.reconnects
    }

    /// The clients whose logins repeatedly fail within ten minutes.
    var failedLogins: ReconnectWatch {
        awaitTurn()
        return shared.failedLogins
    }

    /// The observed behaviour of servers with channel binding.
    var bindings: BindingObservations {
        awaitTurn()
        return shared.bindings
    }

    /// The software names of clients.
    var software: ClientSoftwareTable {
        awaitTurn()
        return shared.software
    }

    /// The sessions that can be resumed.
    var resumptions: ResumptionTable {
        awaitTurn()
        return shared.resumptions
    }

    /// The prefix of the ids of injected stanzas. It has 96 random bits, so that no peer chooses the same id.
    let idPrefix =
        "xt-" + String(UInt64.random(in: .min ... .max), radix: 36)
        + String(UInt32.random(in: .min ... .max), radix: 36)

    private let sequence = Atomic<UInt64>(0)
    private let session = Atomic<UInt64>(0)

    private let cryptography: (any Cryptography)?
    private let digestKey: [UInt8]

    /// Creates a run. Without `cryptography`, records have no digest of bytes that they do not show.
    ///
    /// - Parameter journal: The journal of sessions that cannot be resumed after a restart; without it, unknown
    ///   sessions count as resumable.
    public init(cryptography: (any Cryptography)? = nil, journal: (any ResumptionJournal)? = nil) {
        self.cryptography = cryptography
        digestKey = (try? cryptography?.randomBytes(count: 32)) ?? []
        secrets = SecretRegistry()
        self.journal = journal
        shared = Shared(journal)
        turn = nil
    }

    /// Creates a part of a recorded run, which one of several threads processes. The parts share the state that
    /// sessions share, and number their own records.
    ///
    /// - Parameter turn: Blocks until the other parts have processed all earlier input.
    package init(partOf run: Run, inTurn turn: @escaping @Sendable () -> Void) {
        cryptography = run.cryptography
        digestKey = run.digestKey
        secrets = SecretRegistry(sharing: run.secrets, inTurn: turn)
        shared = run.shared
        journal = run.journal
        self.turn = turn
    }

    /// Returns the key of a resumption id: see ``ResumptionTable/key(id:account:)``.
    func resumptionKey(id: String, account: String) -> ResumptionTable.Key {
        shared.resumptions.key(id: id, account: account)
    }

    /// Returns the software of a session's client: the TLS library that sent its ClientHello, and the software names
    /// that sessions from the same address have sent.
    package func clientSoftware(
        of session: borrowing Session,
        _ library: ClientSoftware.Library?
    ) -> ClientSoftware {
        let host = session.remote.map { RuleContext.host($0) }
        return ClientSoftware(names: host.map { software.names(at: $0) } ?? [], library: library)
    }

    /// Waits until this part of a recorded run may access state that sessions share.
    func awaitTurn() { turn?() }

    /// Returns a new HMAC-SHA-256 with the run's key, for recorded bytes that are not shown: equal bytes have equal
    /// digests within a run, and outsiders cannot test a guess. Nil without cryptography.
    func makeByteDigest() -> (any Digest)? {
        guard !digestKey.isEmpty, let cryptography else { return nil }
        return try? cryptography.makeHMAC(.sha256, key: digestKey)
    }

    /// Returns the number of the next record.
    package func nextSequence() -> UInt64 { sequence.add(1, ordering: .relaxed).newValue }

    /// The number of the next session.
    package func nextSession() -> UInt64 { session.add(1, ordering: .relaxed).newValue }
}

/// The tools that the sessions of one event loop share: a parser, readers, the redactor, and memory for summaries.
///
/// Two sessions never use the tools at the same time, because an event loop is a single thread.
package final class SessionTools {
    /// Parses items with libxml2, for code that decides on their contents.
    package let parser = StanzaParser()
    /// Reads items for code that only describes them.
    var elements = ElementReader()
    /// The outline of the scanned items, which ``elements`` uses.
    let outline = ItemOutline()
    /// The buffer for summaries.
    var summary = LineBuffer(capacity: 256)
    /// Removes secrets from records.
    package let redactor: Redactor

    /// Creates the tools for the sessions of `run` on one event loop.
    package init(run: Run, redaction: RedactionPolicy) {
        redactor = Redactor(policy: redaction, registry: run.secrets)
    }
}
