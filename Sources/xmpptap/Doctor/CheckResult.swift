internal import TapRecord

/// What one look at this machine came to.
struct CheckResult: Hashable {
    /// What it means for the program.
    enum Outcome: String, Hashable {
        /// All well.
        case ok
        /// It works, but something may be missed.
        case note
        /// It stops the program from working until something is done.
        case stop
    }

    /// What was looked at, in a word.
    let subject: String
    /// What it means.
    let outcome: Outcome
    /// What was found, and what to do where it is not well.
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
        let mark = outcome.rawValue.padded(to: 5)
        return "\(mark) \(subject.padded(to: 12)) \(text)"
    }

    /// The line for programs.
    var json: String {
        var line = LineBuffer()
        line.openObject()
        line.field("check", subject)
        line.field("outcome", outcome.rawValue)
        line.field("text", text)
        line.closeObject()
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
