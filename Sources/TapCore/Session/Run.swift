internal import Synchronization
package import TapDiagnosis
public import TapRecord
import TapRules
package import XMPPCore

/// The state shared by all sessions of one run of the program: its start, and the numbers of its records and sessions.
public final class Run: Sendable {
    /// A reading of both clocks, taken by the caller.
    public struct Instant: Sendable, Hashable {
        /// Wall clock.
        public var time: Timestamp
        /// Nanoseconds since the run began; never goes back.
        package var monotonic: Int64

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

    /// The state that sessions share.
    private final class Shared: Sendable {
        let reconnects = ReconnectWatch()
        let failedLogins = ReconnectWatch(span: 600_000_000_000)
        let bindings = BindingObservations()
        let software = ClientSoftwareTable()
        let resumptions: ResumptionTable

        init(_ journal: (any ResumptionJournal)?) { resumptions = ResumptionTable(journal: journal) }
    }

    /// Sessions of earlier runs that cannot be resumed; nil without a journal.
    package let journal: (any ResumptionJournal)?

    /// The secrets of this run, with their numbers.
    package let secrets: SecretRegistry

    private let shared: Shared
    private let turn: (@Sendable () -> Void)?

    /// Clients whose sessions repeatedly drop soon after login.
    var reconnects: ReconnectWatch {
        awaitTurn()
        return shared.reconnects
    }

    /// Clients whose logins repeatedly fail within ten minutes.
    var failedLogins: ReconnectWatch {
        awaitTurn()
        return shared.failedLogins
    }

    /// Servers' observed behaviour with channel binding.
    var bindings: BindingObservations {
        awaitTurn()
        return shared.bindings
    }

    /// The software names of clients.
    var software: ClientSoftwareTable {
        awaitTurn()
        return shared.software
    }

    /// Sessions that can be resumed.
    var resumptions: ResumptionTable {
        awaitTurn()
        return shared.resumptions
    }

    /// The prefix of the ids of injected stanzas: 96 random bits, so that no peer chooses the same.
    let idPrefix =
        "xt-" + String(UInt64.random(in: .min ... .max), radix: 36)
        + String(UInt32.random(in: .min ... .max), radix: 36)

    private let sequence = Atomic<UInt64>(0)
    private let session = Atomic<UInt64>(0)

    private let cryptography: (any Cryptography)?
    private let digestKey: [UInt8]

    /// Creates a run. Without `cryptography`, bytes that are not shown have no digest.
    ///
    /// - Parameter journal: Sessions of earlier runs that cannot be resumed; without it, unknown sessions count as
    ///   resumable.
    public init(cryptography: (any Cryptography)? = nil, journal: (any ResumptionJournal)? = nil) {
        self.cryptography = cryptography
        digestKey = (try? cryptography?.randomBytes(count: 32)) ?? []
        secrets = SecretRegistry()
        self.journal = journal
        shared = Shared(journal)
        turn = nil
    }

    /// Creates a part of a recorded run, which one of several threads re-creates: parts share the state of sessions, and not
    /// the numbers of records.
    ///
    /// - Parameter turn: Returns when the other parts have processed all earlier input.
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

    /// The software of a session's client, whose ClientHello was sent by `library`, as sessions from its address have
    /// shown it.
    package func clientSoftware(
        of session: borrowing Session,
        _ library: ClientSoftware.Library?
    ) -> ClientSoftware {
        let host = session.remote.map { RuleContext.host($0) }
        return ClientSoftware(names: host.map { software.names(at: $0) } ?? [], library: library)
    }

    /// Orders access to state shared between sessions.
    func awaitTurn() { turn?() }

    /// Returns a running HMAC-SHA-256 under the run's key, for recorded bytes that are not shown: equal bytes have
    /// equal digests within a run, and outsiders cannot test a guess. Nil without cryptography.
    func makeByteDigest() -> (any Digest)? {
        guard !digestKey.isEmpty, let cryptography else { return nil }
        return try? cryptography.makeHMAC(.sha256, key: digestKey)
    }

    /// The number of the next record.
    package func nextSequence() -> UInt64 { sequence.add(1, ordering: .relaxed).newValue }

    /// The number of the next session.
    package func nextSession() -> UInt64 { session.add(1, ordering: .relaxed).newValue }
}

/// The tools shared by the sessions of one event loop: parser and readers, the redactor, and memory for summaries.
///
/// Two sessions never use them at once, since a loop does one thing at a time.
package final class SessionTools {
    /// Parses items as libxml2 does, for code that decides on their contents.
    package let parser = StanzaParser()
    /// Reads items for code that only describes them.
    var elements = ElementReader()
    /// The outline of the scanned items, for that reader.
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
