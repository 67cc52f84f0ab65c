internal import TapDiagnosis
import TapStreamManagement

/// A question or report of a session about state that the sessions of a run share: resumable sessions, repeated
/// reconnects, servers' behaviour with channel binding, and the software of clients.
///
/// A session has no access to that state. ``SharedState/perform(_:)`` carries out a request.
package struct SharedRequest: Sendable {
    enum Kind: Sendable {
        /// Store the software name of a client at this host.
        case software(String, host: String)
        /// Count a session of this client that dropped soon after login. The answer is ``SharedAnswer/Kind/loop(count:span:)``.
        case dropped(ReconnectWatch.Key)
        /// Count a failed login of this client. The answer is ``SharedAnswer/Kind/loop(count:span:)``.
        case loginFailed(ReconnectWatch.Key)
        /// Which logins with channel binding a server of the domain has accepted. The answer is
        /// ``SharedAnswer/Kind/bindings(_:)``.
        case bindings(domain: String)
        /// Store whether a server of the domain has accepted such a login.
        case bindingOutcome(domain: String, LoginCause, accepted: Bool)
        /// Add the session to the resumable ones, in place of an earlier key.
        case enable(ResumptionTable.Key, ResumptionTable.Suspended, seconds: Int64?, instead: ResumptionTable.Key?)
        /// The ends of the session count differently. The answer is ``SharedAnswer/Kind/mark(_:)``, if the journal lacks it.
        case diverge(ResumptionTable.Key)
        /// Return the counts of the session with one of these keys. The answer is ``SharedAnswer/Kind/claim(_:)``.
        case claim([ResumptionTable.Key])
        /// Transfer the session with one of these keys. The answer is ``SharedAnswer/Kind/resumed(_:by:)``.
        case resume([ResumptionTable.Key])
        /// The session has ended; another one may continue it with this state, unless its stream was closed.
        case end(ResumptionTable.Key, isClosed: Bool, StreamManagementLedgers?, SessionLegacy)
    }

    let kind: Kind
    /// Number of the session.
    let session: UInt64
    /// Nanoseconds of the run.
    let monotonic: Int64
}

/// The answer to a ``SharedRequest``, for ``SessionInput/shared(_:)``.
package struct SharedAnswer: Sendable {
    enum Kind: Sendable {
        /// The client has dropped or failed this often within these nanoseconds.
        case loop(count: Int, span: Int64)
        /// It has dropped or failed less often.
        case noLoop
        /// Whether logins with these faults were accepted; those that are missing are unknown.
        case bindings([LoginCause: Bool])
        /// The mark to add to the journal.
        case mark([UInt8])
        case claim(ResumptionTable.Claim)
        /// The earlier session and its key; nil if none is known.
        case resumed(ResumptionTable.Suspended?, by: ResumptionTable.Key?)
        /// A session that was resumed while it was connected has ended, and leaves this state.
        case inherited(SessionLegacy)
    }

    let kind: Kind
}

/// The access of one session to the state that the sessions of a run share. Its owner carries out the session's
/// ``Command/shared(_:)`` by it, and passes each answer to the session at once.
package struct SharedState: ~Copyable {
    private let run: Run
    /// The place for the state of the session that this one continues; nil if that is already taken.
    private var inheritance: Inheritance?

    /// Creates the access of one session of `run`.
    package init(_ run: Run) { self.run = run }

    /// Carries out a request; nil if it has no answer.
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
        case .resume(let keys):
            for key in keys {
                guard let earlier = table.resume(key, by: request.session, at: now) else { continue }
                inheritance = earlier.inheritance
                return SharedAnswer(kind: .resumed(earlier, by: key))
            }
            return SharedAnswer(kind: .resumed(nil, by: nil))
        case .end(let key, let isClosed, let ledgers, let legacy):
            if let inheritance = table.inheritance(key, of: request.session) {
                var (left, unsent) = (legacy, ledgers)
                left.unsent = unsent?.takeLostInjections() ?? []
                inheritance.leave(left)
            } else if isClosed {
                table.end(key, of: request.session)
            } else {
                table.suspend(key, of: request.session, at: now, leaving: ledgers, legacy: legacy)
            }
        }
        return nil
    }

    /// Returns the state of the session that this one continues, once, if it has been left since.
    package mutating func takeInheritance() -> SharedAnswer? {
        guard let inheritance else { return nil }
        run.awaitTurn()
        guard let legacy = inheritance.take() else { return nil }
        self.inheritance = nil
        return SharedAnswer(kind: .inherited(legacy))
    }

    private static func answer(_ loop: (count: Int, span: Int64)?) -> SharedAnswer {
        SharedAnswer(kind: loop.map { .loop(count: $0.count, span: $0.span) } ?? .noLoop)
    }
}
