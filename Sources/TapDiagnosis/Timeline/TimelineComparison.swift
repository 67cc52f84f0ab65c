package import TapRecord

/// Compares a login timeline with one of a completed login, and finds the first difference.
///
/// Name lookup and connecting are ignored, and so is TLS that a client log cannot show.
package struct TimelineComparison: Sendable {
    /// A step of a timeline.
    package struct Step: Sendable {
        /// The result of the step.
        package let result: LoginStep.Result
        /// The reason, if the step did not succeed.
        fileprivate let reason: Prose?
        fileprivate let name: LoginStep.Name
        /// The detail that distinguishes the step from other steps of the same kind.
        fileprivate let label: String?

        /// The step as text, such as `mechanism SCRAM-SHA-256`.
        package var title: String { label.map { "\(name.rawValue) \($0)" } ?? name.rawValue }

        fileprivate func isSame(as other: Step) -> Bool { name == other.name && label == other.label }
    }

    /// A row of the comparison.
    package struct Row: Sendable {
        /// The step of the completed login.
        package let working: Step?
        /// The step of the other timeline.
        package let other: Step?
        /// Whether this row contains the first difference.
        package let isDifference: Bool
    }

    /// The rows in order.
    package let rows: [Row]
    /// The first difference as a clause about "the client"; nil if there is none.
    package let difference: String?

    /// Compares the step records of two sessions (see ``TapRecord/LoginStep/code``).
    package init(working: [Record], other: [Record]) {
        let one = working.compactMap(Self.step)
        let two = other.compactMap(Self.step)
        var rows: [Row] = []
        var difference: String?
        for height in 0..<max(one.count, two.count) {
            let left = height < one.count ? one[height] : nil
            let right = height < two.count ? two[height] : nil
            let text = difference == nil ? Self.difference(left, right, after: rows.last?.other) : nil
            difference = difference ?? text
            rows.append(Row(working: left, other: right, isDifference: text != nil))
        }
        self.rows = rows
        self.difference = difference
    }

    private static func step(_ record: Record) -> Step? {
        guard record.code == LoginStep.code, let details = record.details, let name = LoginStep.Name(details),
            let result = LoginStep.Result(details)
        else { return nil }
        let isOfClient = details["leg"] == "client"
        var label: String?
        switch name {
        case .nameLookup, .connect: return nil
        // TLS between xmpptap and its client is not compared.
        case .tls where isOfClient && result == .ok: return nil
        case .tls where isOfClient: label = "with xmpptap"
        case .mechanism: label = details["mechanism"]?.text
        case .sasl, .sasl2: label = details["phase"]?.text
        default: break
        }
        // The condition suffices here; the diagnosis contains the text.
        let reason = result == .ok ? nil : record.condition ?? details[LoginStep.reasonDetail]?.text
        return Step(result: result, reason: reason.map { Prose($0) }, name: name, label: label)
    }

    /// Returns the difference between two steps of a row; nil if there is none.
    private static func difference(_ working: Step?, _ other: Step?, after last: Step?) -> String? {
        guard let working else {
            return other.map { "the client continued with \($0.title), where the probe's login was complete" }
        }
        guard let other else {
            let place = last.map { "after \($0.title)" } ?? "at the start"
            return "the client stopped \(place); the probe continued with \(working.title)"
        }
        // A client log records only the content of TLS, so a missing TLS step is ignored.
        if working.isSame(as: other), other.result == .skipped, other.name == .tls { return nil }
        let reason = other.reason.map { " (\($0))" } ?? ""
        if other.result == .failed, working.result != .failed {
            let place = other.name == .sasl || other.name == .sasl2 ? other.name.rawValue.uppercased() : other.title
            return "the client failed at \(place)\(reason); the probe continued with \(working.title)"
        }
        guard working.isSame(as: other) else {
            if working.name == .mechanism, other.name == .mechanism {
                return "the client chose \(other.title), the probe \(working.title)"
            }
            return "the client continued with \(other.title), the probe with \(working.title)"
        }
        guard working.result != other.result else { return nil }
        return other.result == .skipped
            ? "the client skipped \(other.title)\(reason)"
            : "the client completed \(other.title), the probe did not"
    }
}
