public import TapRecord

/// How far a session has come on its way to be ready: the steps it has taken, and those it stands between.
///
/// It has no clock: times are nanoseconds of the run, given with each call. It keeps its steps until the session is
/// ready, since afterwards nobody asks why it is not.
public struct LoginTimeline: Sendable {
    /// Finished steps that are kept. A login has a dozen; a peer that tries again and again is not followed for ever.
    static let capacity = 64
    /// Steps that may be under way at once: of a stream that carries many pairs of domains, one for each of them. Each
    /// operation compares with all of them. Beyond the bound a new one is not followed.
    static let mostUnderWay = 16

    /// The finished steps in the order in which they ended.
    public private(set) var steps: [LoginStep] = []
    /// When the last step ended: what has no beginning of its own began there.
    private var reached: Int64
    private var underWay: [Step] = []

    /// A step that has begun.
    private struct Step {
        var name: LoginStep.Name
        /// Tells it from another of the same name that is under way.
        var key: String?
        var began: Int64
        var details: Attributes
        /// Who has to do what ends it.
        var awaits: Leg
    }

    /// A timeline at whose foot a session stands.
    init(at monotonic: Int64) { reached = monotonic }

    /// Whether a step has begun and not ended.
    func isUnderWay(_ name: LoginStep.Name, key: String? = nil) -> Bool {
        underWay.contains { $0.name == name && $0.key == key }
    }

    /// Whether a step of this name has ended.
    func has(_ name: LoginStep.Name) -> Bool { steps.contains { $0.name == name } }

    /// Whether any step has failed.
    var hasFailure: Bool {
        steps.contains { if case .failed = $0.outcome { true } else { false } }
    }

    /// A step begins; one of the same name that was under way is forgotten.
    mutating func begin(
        _ name: LoginStep.Name,
        key: String? = nil,
        awaits: Leg,
        details: Attributes = [:],
        at monotonic: Int64
    ) {
        cancel(name, key: key)
        guard underWay.count < Self.mostUnderWay else { return }
        underWay.append(Step(name: name, key: key, began: monotonic, details: details, awaits: awaits))
    }

    /// A step that is under way is not taken after all, and not missed.
    mutating func cancel(_ name: LoginStep.Name, key: String? = nil) {
        underWay.removeAll { $0.name == name && $0.key == key }
    }

    /// A step ends. One that has not begun here began at `since`, or where the last one ended.
    mutating func finish(
        _ name: LoginStep.Name,
        key: String? = nil,
        _ outcome: LoginStep.Outcome,
        since: Int64? = nil,
        details: Attributes = [:],
        at monotonic: Int64
    ) -> LoginStep {
        let position = underWay.firstIndex { $0.name == name && $0.key == key }
        let step = position.map { underWay.remove(at: $0) }
        var all = step?.details ?? [:]
        for entry in details.entries { all[entry.name] = entry.value }
        return add(name, outcome, from: since ?? step?.began ?? reached, details: all, at: monotonic)
    }

    /// The step that began last fails; nil where none is under way.
    mutating func failLast(_ outcome: LoginStep.Outcome, at monotonic: Int64) -> LoginStep? {
        guard let step = underWay.popLast() else { return nil }
        return add(step.name, outcome, from: step.began, details: step.details, at: monotonic)
    }

    /// The session is over: what is under way has failed, by the fault of the one who had to act, or by `outcome`.
    mutating func end(_ outcome: LoginStep.Outcome?, at monotonic: Int64) -> [LoginStep] {
        let steps = underWay
        underWay = []
        return steps.map { step in
            let silence =
                step.awaits == .server ? "the server did not answer" : "the client did not go on from here"
            return add(
                step.name,
                outcome ?? .failed(silence),
                from: step.began,
                details: step.details,
                awaited: step.awaits,
                at: monotonic
            )
        }
    }

    /// The session is ready; what led there is not asked for any more.
    mutating func forget() { steps = [] }

    private mutating func add(
        _ name: LoginStep.Name,
        _ outcome: LoginStep.Outcome,
        from began: Int64,
        details: Attributes,
        awaited: Leg? = nil,
        at monotonic: Int64
    ) -> LoginStep {
        reached = max(reached, monotonic)
        let loginStep = LoginStep(
            name: name,
            began: began,
            duration: max(0, monotonic - began),
            outcome: outcome,
            details: details,
            awaited: awaited
        )
        if steps.count < Self.capacity { steps.append(loginStep) }
        return loginStep
    }
}
