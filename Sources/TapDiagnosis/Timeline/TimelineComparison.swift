public import TapRecord

/// Compares a login timeline with one that completed: where they first differ.
///
/// Ignores how the server was found, and what the recording could not see.
public struct TimelineComparison: Sendable, Hashable {
    /// A step of one of the two.
    public struct LoginStep: Sendable, Hashable {
        /// The step, `mechanism SCRAM-SHA-256`.
        public let words: String
        /// `ok`, `failed` or `skipped`.
        public let outcome: String
        /// The reason, if it failed.
        public let reason: String?
        /// Equal for the same step.
        fileprivate let key: String
        fileprivate let name: String
    }

    /// One row of the comparison.
    public struct Row: Sendable, Hashable {
        /// The step of the timeline that completed.
        public let working: LoginStep?
        /// The step of the other timeline.
        public let other: LoginStep?
        /// The first difference; true once.
        public let isDifference: Bool
    }

    /// The rows, first step first.
    public let rows: [Row]
    /// The first difference, as a clause about "the client"; nil if there is none.
    public let difference: String?

    /// Compares the step records of two sessions (see ``TapCore/LoginStep/code``).
    public init(working: [Record], other: [Record]) {
        let one = working.compactMap(Self.loginStep)
        let two = other.compactMap(Self.loginStep)
        var rows: [Row] = []
        var difference: String?
        for height in 0..<max(one.count, two.count) {
            let left = height < one.count ? one[height] : nil
            let right = height < two.count ? two[height] : nil
            let words = difference == nil ? Self.difference(left, right, after: rows.last?.other) : nil
            difference = difference ?? words
            rows.append(Row(working: left, other: right, isDifference: words != nil))
        }
        self.rows = rows
        self.difference = difference
    }

    private static func loginStep(_ record: Record) -> LoginStep? {
        guard record.code == TapRecord.LoginStep.code, let name = record.details?[TapRecord.LoginStep.code]?.text else {
            return nil
        }
        let outcome = record.details?[TapRecord.LoginStep.outcomeDetail]?.text ?? ""
        func detail(_ name: String) -> String? { record.details?[name]?.text }
        var label: String?
        switch name {
        case "name-lookup", "connect": return nil
        // TLS between xmpptap and its client is no step of the comparison.
        case "tls" where detail("leg") == "client" && outcome == "ok": return nil
        case "tls" where detail("leg") == "client": label = "with xmpptap"
        case "mechanism": label = detail("mechanism")
        case "sasl", "sasl2": label = detail("phase")
        default: break
        }
        let words = label.map { "\(name) \($0)" } ?? name
        // The condition is enough; the diagnosis has the text.
        let reason = outcome == "ok" ? nil : record.condition ?? detail(TapRecord.LoginStep.reasonDetail)
        return LoginStep(words: words, outcome: outcome, reason: reason, key: words, name: name)
    }

    /// The difference between two steps of one row; nil if there is none.
    private static func difference(_ working: LoginStep?, _ other: LoginStep?, after last: LoginStep?) -> String? {
        guard let working else {
            return other.map { "the client continued with \($0.words), where the probe's login was complete" }
        }
        guard let other else {
            let place = last.map { "after \($0.words)" } ?? "at the start"
            return "the client stopped \(place); the probe continued with \(working.words)"
        }
        // A client log shows only what TLS carries: its missing TLS step is no difference.
        if working.key == other.key, other.outcome == "skipped", other.name == "tls" { return nil }
        let reason = other.reason.map { " (\($0))" } ?? ""
        if other.outcome == "failed", working.outcome != "failed" {
            let place = other.name == "sasl" || other.name == "sasl2" ? other.name.uppercased() : other.words
            return "the client failed at \(place)\(reason); the probe continued with \(working.words)"
        }
        guard working.key == other.key else {
            if working.name == "mechanism", other.name == "mechanism" {
                return "the client chose \(other.words), the probe \(working.words)"
            }
            return "the client continued with \(other.words), the probe with \(working.words)"
        }
        guard working.outcome != other.outcome else { return nil }
        return other.outcome == "skipped"
            ? "the client skipped \(other.words)\(reason)"
            : "the client completed \(other.words), the probe did not"
    }
}
