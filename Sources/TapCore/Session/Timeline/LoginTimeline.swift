package import TapRecord
import XMPPCore

/// The progress of a login: its finished steps, and the pending ones.
///
/// It has no clock: times are nanoseconds of the run, passed with each call. Once the session is ready, it frees the
/// details of the steps, which take most of its memory.
package struct LoginTimeline: Sendable {
    /// The largest number of finished steps. A login has a dozen; endless retries are not stored.
    static let capacity = 64
    /// The largest number of pending steps: a stream with many pairs of domains has one for each pair. Each
    /// operation compares with all of them. Further ones are ignored.
    static let mostUnderWay = 16

    /// The finished steps in the order in which they ended.
    package private(set) var steps: [LoginStep] = []
    /// When the last step ended: the start of a step without a known start.
    private var reached: Int64
    private var underWay: [Step] = []
    /// Elements and stream headers of the login so far.
    private var items = (sent: 0, received: 0)

    /// A step that has begun.
    private struct Step {
        var name: LoginStep.Name
        /// Distinguishes it from another pending step of the same name.
        var key: String?
        var began: Int64
        var details: Attributes
        /// The leg of the side that has to act next.
        var awaits: Leg
        /// The items before it.
        var items: (sent: Int, received: Int)
    }

    init(at monotonic: Int64) { reached = monotonic }

    /// Counts an element or a stream header.
    mutating func count(_ direction: Direction) {
        switch direction {
        case .send: items.sent &+= 1
        case .recv: items.received &+= 1
        }
    }

    func isUnderWay(_ name: LoginStep.Name, key: String? = nil) -> Bool {
        underWay.contains { $0.name == name && $0.key == key }
    }

    /// Whether a step awaits an action of this side.
    func isUnderWay(_ name: LoginStep.Name, awaits side: Leg) -> Bool {
        underWay.contains { $0.name == name && $0.awaits == side }
    }

    func has(_ name: LoginStep.Name) -> Bool { steps.contains { $0.name == name } }

    var hasFailure: Bool { steps.contains { $0.outcome.result == .failed } }

    /// A step begins; a pending one of the same name is discarded.
    mutating func begin(
        _ name: LoginStep.Name,
        key: String? = nil,
        awaits: Leg,
        details: Attributes = [:],
        at monotonic: Int64
    ) {
        cancel(name, key: key)
        guard underWay.count < Self.mostUnderWay else { return }
        underWay.append(Step(name: name, key: key, began: monotonic, details: details, awaits: awaits, items: items))
    }

    /// Discards a pending step.
    mutating func cancel(_ name: LoginStep.Name, key: String? = nil) {
        underWay.removeAll { $0.name == name && $0.key == key }
    }

    /// A step ends. Without a known start it began at `since`, or when the last step ended.
    mutating func finish(
        _ name: LoginStep.Name,
        key: String? = nil,
        _ outcome: LoginStep.Outcome,
        since: Int64? = nil,
        details: Attributes = [:],
        at monotonic: Int64
    ) -> LoginStep {
        let position = underWay.firstIndex { $0.name == name && $0.key == key }
        var step = position.map { underWay.remove(at: $0) }
        var all = details
        if let earlier = step?.details, !earlier.isEmpty {
            all = earlier
            step?.details = [:]
            for entry in details.entries { all[entry.name] = entry.value }
        }
        return add(name, outcome, from: since ?? step?.began ?? reached, details: all, at: monotonic)
    }

    /// The step that began last fails; nil if none is pending.
    mutating func failLast(_ outcome: LoginStep.Outcome, at monotonic: Int64) -> LoginStep? {
        guard let step = underWay.popLast() else { return nil }
        return add(
            step.name,
            outcome,
            from: step.began,
            details: step.details,
            // After a request, items may belong to its answer, which a recording can lack.
            later: step.awaits == .client ? later(than: step) : (0, 0),
            at: monotonic
        )
    }

    /// The session has ended: pending steps have failed because of the side that had to act, or end with `outcome`.
    mutating func end(_ outcome: LoginStep.Outcome?, at monotonic: Int64) -> [LoginStep] {
        let steps = underWay
        underWay = []
        return steps.map { step in
            let silence: Prose =
                step.awaits == .server ? "the server did not answer" : "the client did not continue"
            return add(
                step.name,
                outcome ?? .failed(silence),
                from: step.began,
                details: step.details,
                awaited: step.awaits,
                later: later(than: step),
                at: monotonic
            )
        }
    }

    /// The session is ready: the details of its steps are no longer needed.
    mutating func forgetDetails() {
        for index in steps.indices { steps[index].details = [:] }
    }

    private func later(than step: Step) -> (sent: Int, received: Int) {
        (items.sent &- step.items.sent, items.received &- step.items.received)
    }

    private mutating func add(
        _ name: LoginStep.Name,
        _ outcome: LoginStep.Outcome,
        from began: Int64,
        details: Attributes,
        awaited: Leg? = nil,
        later: (sent: Int, received: Int) = (0, 0),
        at monotonic: Int64
    ) -> LoginStep {
        reached = max(reached, monotonic)
        var loginStep = LoginStep(
            name: name,
            began: began,
            duration: max(0, monotonic - began),
            outcome: outcome,
            details: details,
            awaited: awaited
        )
        loginStep.later = later
        if steps.count < Self.capacity { steps.append(loginStep) }
        return loginStep
    }
}
