internal import TapDiagnosis
import TapStreamManagement

/// A request of a session about state that the sessions of a run share: resumable sessions, repeated reconnects, the
/// behaviour of servers with channel binding, and the software of clients.
///
/// A session cannot access that state itself. ``SharedState/perform(_:)`` performs its requests.
package struct SharedRequest: Sendable {
    enum Kind: Sendable {
        /// Store the software name of a client at this host.
        case software(String, host: String)
        /// Count a session of this client that dropped soon after login. The answer is
        /// ``SharedAnswer/Kind/loop(count:span:)`` or ``SharedAnswer/Kind/noLoop``.
        case dropped(ReconnectWatch.Key)
        /// Count a failed login of this client. The answer is ``SharedAnswer/Kind/loop(count:span:)`` or
        /// ``SharedAnswer/Kind/noLoop``.
        case loginFailed(ReconnectWatch.Key)
        /// Return whether servers of the domain have accepted logins that must fail because of channel binding. The
        /// answer is ``SharedAnswer/Kind/bindings(_:)``.
        case bindings(domain: String)
        /// Store whether a server of the domain has accepted a login that must fail for this cause.
        case bindingOutcome(domain: String, LoginCause, accepted: Bool)
        /// Add the session to the table of resumable sessions. If it was stored under the key `instead`, remove that
        /// entry.
        case enable(ResumptionTable.Key, ResumptionTable.Suspended, seconds: Int64?, instead: ResumptionTable.Key?)
        /// Mark the session as diverged: the stanza counts of its two ends differ. If the session is new in the
        /// journal, the answer is ``SharedAnswer/Kind/mark(_:)``.
        case diverge(ResumptionTable.Key)
        /// Return the counts of the session with one of these keys. The answer is ``SharedAnswer/Kind/claim(_:)``.
        case claim([ResumptionTable.Key])
        /// Transfer the session with one of these keys to this session. If there is none, it began elsewhere: add this
        /// session to the table under `new`, so that it can be resumed here. The answer is
        /// ``SharedAnswer/Kind/resumed(_:by:)``.
        case resume([ResumptionTable.Key], new: ResumptionTable.Key?, ResumptionTable.Suspended)
        /// Store the state of the ended session for a session that resumes it, unless its stream was closed.
        case end(ResumptionTable.Key, isClosed: Bool, StreamManagementLedgers?, TransferredState)
    }

    let kind: Kind
    /// The number of the session that sends the request.
    let session: UInt64
    /// The time of the request, in nanoseconds of the run.
    let monotonic: Int64
}

/// The answer to a ``SharedRequest``, for ``Session/handle(_:)-(SharedAnswer)``.
package struct SharedAnswer: Sendable {
    enum Kind: Sendable {
        /// The client's sessions have dropped, or its logins failed, this many times within this time in nanoseconds.
        case loop(count: Int, span: Int64)
        /// The client's sessions have dropped, or its logins failed, fewer times than a loop requires.
        case noLoop
        /// Whether logins that must fail for these causes were accepted; missing causes are unknown.
        case bindings([LoginCause: Bool])
        /// The mark to add to the journal.
        case mark([UInt8])
        case claim(ResumptionTable.Claim)
        /// The earlier session, nil if xmpptap does not know it, and the key of this session, nil if it cannot be resumed.
        case resumed(ResumptionTable.Suspended?, by: ResumptionTable.Key?)
        /// The state of the resumed session, which was still connected then, and has ended since.
        case transferred(TransferredState)
    }

    let kind: Kind
}

/// The access of one session to the state that the sessions of a run share. The owner performs each
/// ``Command/shared(_:)`` of the session with it, and passes the answer to the session at once.
package struct SharedState: ~Copyable {
    private let run: Run
    /// The place in which the resumed session will store its state; nil if there is none, or the state was taken
    /// already.
    private var transfer: StateTransfer?

    /// Creates the access for one session of `run`.
    package init(_ run: Run) { self.run = run }

    /// Performs a request; returns nil if the request has no answer.
    package mutating func perform(_ request: SharedRequest) -> SharedAnswer? {
        let (table, now) = (run.resumptions, request.monotonic)
        switch request.kind {
        case .software(let name, let host): run.software.store(name, at: host)
        case .dropped(let client): return Self.answer(run.reconnects.recordDrop(of: client, at: now))
        case .loginFailed(let client): return Self.answer(run.failedLogins.recordDrop(of: client, at: now))
        case .bindings(let domain):
            return SharedAnswer(kind: .bindings(run.bindings.outcomes(domain)))
        case .bindingOutcome(let domain, let cause, let accepted): run.bindings.store(domain, cause, accepted: accepted)
        case .enable(let key, let content, let seconds, let earlier):
            if let earlier { table.end(earlier, of: request.session) }
            table.enable(key, content, seconds: seconds)
        case .diverge(let key): return table.diverge(key, of: request.session).map { SharedAnswer(kind: .mark($0)) }
        case .claim(let keys): return SharedAnswer(kind: .claim(table.claim(keys, by: request.session, at: now)))
        case .resume(let keys, let new, let content):
            for key in keys {
                guard let earlier = table.resume(key, by: request.session, at: now) else { continue }
                transfer = earlier.transfer
                return SharedAnswer(kind: .resumed(earlier, by: key))
            }
            // The server has told only the earlier connection how long it keeps the session.
            if let new { table.enable(new, content, seconds: nil) }
            return SharedAnswer(kind: .resumed(nil, by: new))
        case .end(let key, let isClosed, let ledgers, let legacy):
            if let transfer = table.transfer(key, of: request.session) {
                var (left, unsent) = (legacy, ledgers)
                left.unsent = unsent?.takeLostInjections() ?? []
                transfer.store(left)
            } else if isClosed {
                table.end(key, of: request.session)
            } else {
                table.suspend(key, of: request.session, at: now, leaving: ledgers, legacy: legacy)
            }
        }
        return nil
    }

    /// Returns the state of the resumed session, once, after that session has ended.
    package mutating func takeTransferred() -> SharedAnswer? {
        guard let transfer else { return nil }
        run.awaitTurn()
        guard let legacy = transfer.take() else { return nil }
        self.transfer = nil
        return SharedAnswer(kind: .transferred(legacy))
    }

    private static func answer(_ loop: (count: Int, span: Int64)?) -> SharedAnswer {
        SharedAnswer(kind: loop.map { .loop(count: $0.count, span: $0.span) } ?? .noLoop)
    }
}
