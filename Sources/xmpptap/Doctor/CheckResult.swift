internal import TapRecord

/// The result of one check of this machine.
struct CheckResult: Hashable {
    /// How severe the result is.
    enum Outcome: String, Hashable {
        case ok
        /// It works with a restriction.
        case note
        /// It stops the program from working.
        case stop
    }

    /// What was checked, in one word.
    let subject: String
    /// How severe it is.
    let outcome: Outcome
    /// What was found, and what to do.
    let text: String

    static func ok(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .ok, text: text)
    }

    static func note(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .note, text: text)
    }

    static func stop(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .stop, text: text)
    }

    /// The line for people.
    var line: String {
        "\(outcome.rawValue.padded(to: 5)) \(subject.padded(to: 12)) \(text)"
    }

    /// The line for programs.
    var json: String {
        LineBuffer.object {
            $0.field("check", subject)
            $0.field("outcome", outcome.rawValue)
            $0.field("text", text)
        }
    }
}
