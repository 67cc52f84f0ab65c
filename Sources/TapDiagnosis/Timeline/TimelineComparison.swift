public import TapRecord

/// Two timelines side by side, one that leads to the top and one that is held against it: where they part first.
///
/// How the server was found is left out, and so is what a recording could not see.
public struct TimelineComparison: Sendable, Hashable {
    /// A step of one of the two.
    public struct LoginStep: Sendable, Hashable {
        /// What was done, `mechanism SCRAM-SHA-256`.
        public let words: String
        /// `ok`, `failed` or `skipped`.
        public let outcome: String
        /// Why not, where it failed.
        public let reason: String?
        /// Tells whether two are the same step.
        fileprivate let key: String
        fileprivate let name: String
    }

    /// What stands on one height.
    public struct Row: Sendable, Hashable {
        /// Of the timeline that works.
        public let working: LoginStep?
        /// Of the other.
        public let other: LoginStep?
        /// The two part here; only once.
        public let isDifference: Bool
    }

    /// From the bottom to the top of the longer one.
    public let rows: [Row]
    /// Where and how they part, as a sentence without its end, about "the client"; nil where they do not.
    public let difference: String?

    /// Holds the steps that records tell of one session (``TapRecord/LoginStep``) against those of another.
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
        // The tap's own with its client is no step of the client's.
        case "tls" where detail("leg") == "client" && outcome == "ok": return nil
        case "tls" where detail("leg") == "client": label = "with xmpptap"
        case "mechanism": label = detail("mechanism")
        case "sasl", "sasl2": label = detail("phase")
        default: break
        }
        let words = label.map { "\(name) \($0)" } ?? name
        var reason = record.message ?? ""
        for prefix in ["\(name): ", "\(outcome), "] where reason.hasPrefix(prefix) { reason.removeFirst(prefix.count) }
        // A condition says it in a word; what was said besides is the diagnosis's.
        if let condition = record.condition { reason = condition }
        let isReason = outcome != "ok" && !reason.isEmpty && reason != outcome
        return LoginStep(words: words, outcome: outcome, reason: isReason ? reason : nil, key: words, name: name)
    }

    /// What sets two steps of one height apart; nil where nothing does.
    private static func difference(_ working: LoginStep?, _ other: LoginStep?, after last: LoginStep?) -> String? {
        guard let working else {
            return other.map { "the client goes on with \($0.words), where the probe was at the top" }
        }
        guard let other else {
            let place = last.map { "after \($0.words)" } ?? "at the foot"
            return "the client goes no further \(place); the path that works goes on with \(working.words)"
        }
        // What a log of what TLS carries cannot show is no difference.
        if working.key == other.key, other.outcome == "skipped", other.name == "tls" { return nil }
        let reason = other.reason.map { " (\($0))" } ?? ""
        if other.outcome == "failed", working.outcome != "failed" {
            let place = other.words.hasPrefix("sasl") ? other.name.uppercased() : other.words
            return "the client fails at \(place)\(reason), the path that works goes on with \(working.words)"
        }
        guard working.key == other.key else {
            if working.name == "mechanism", other.name == "mechanism" {
                return "the client takes \(other.words), the path that works \(working.words)"
            }
            return "the client goes on with \(other.words), the path that works with \(working.words)"
        }
        guard working.outcome != other.outcome else { return nil }
        return other.outcome == "skipped"
            ? "the client does not take \(other.words)\(reason)"
            : "at \(other.words) the client goes on, and the probe did not"
    }
}
