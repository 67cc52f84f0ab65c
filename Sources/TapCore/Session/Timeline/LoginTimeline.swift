package import TapRecord
import XMPPCore

/// The progress of a login: its finished and pending steps.
///
/// The timeline has no clock: each call passes the time in nanoseconds of the run. When the session is open, the
/// details of the steps are freed, because they take most of the memory.
package struct LoginTimeline: Sendable {
    /// The largest number of finished steps that are stored. A login has a dozen; endless retries are not stored.
    static let capacity = 64
    /// The largest number of pending steps; further ones are ignored. A server's stream may have one step for each pair
    /// of domains. Each operation compares with all pending steps.
    static let maximumUnderWay = 16

    /// The finished steps in the order in which they ended.
    package private(set) var steps: [LoginStep] = []
    /// The time at which the last step ended, which is the start of a step without a known start.
    private var reached: Int64
    private var underWay: [Step] = []
    /// The number of elements and stream headers of the login so far.
    private var items = (sent: 0, received: 0)

    /// A step that has begun.
    private struct Step {
        var name: LoginStep.Name
        /// A key that distinguishes the step from another pending step of the same name.
        var key: String?
        var began: Int64
        var details: Attributes
        /// The leg of the peer that has to act next.
        var awaits: Leg
        /// The number of items before the step.
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

    /// Returns whether a pending step awaits an action of this peer.
    func isUnderWay(_ name: LoginStep.Name, awaits side: Leg) -> Bool {
        underWay.contains { $0.name == name && $0.awaits == side }
    }

    func has(_ name: LoginStep.Name) -> Bool { steps.contains { $0.name == name } }

    var hasFailure: Bool { steps.contains { $0.outcome.result == .failed } }

    /// Begins a step; a pending step of the same name and key is discarded.
    mutating func begin(
        _ name: LoginStep.Name,
        key: String? = nil,
        awaits: Leg,
        details: Attributes = [:],
        at monotonic: Int64
    ) {
        cancel(name, key: key)
        guard underWay.count < Self.maximumUnderWay else { return }
        underWay.append(Step(name: name, key: key, began: monotonic, details: details, awaits: awaits, items: items))
    }

    /// Discards a pending step.
    mutating func cancel(_ name: LoginStep.Name, key: String? = nil) {
        underWay.removeAll { $0.name == name && $0.key == key }
    }

    /// Ends a step. If the start of the step is unknown, it is `since`, or the end of the previous step.
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

    /// Ends the step that began last as failed; returns nil if no step is pending.
    mutating func failLast(_ outcome: LoginStep.Outcome, at monotonic: Int64) -> LoginStep? {
        guard let step = underWay.popLast() else { return nil }
        return add(
            step.name,
            outcome,
            from: step.began,
            details: step.details,
            // If the server has to act, later items may belong to its answer, which a recording may lack.
            later: step.awaits == .client ? later(than: step) : (0, 0),
            at: monotonic
        )
    }

    /// Ends the pending steps with `outcome`; nil means that they failed because the awaited peer did not act.
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

    /// Frees the details of the steps, which are no longer needed when the session is open.
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
