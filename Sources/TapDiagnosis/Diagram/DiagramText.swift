internal import TapRecord

/// Text of diagrams, escaped for XML.
enum DiagramText {
    /// Escapes text from any source for XML; see ``HTMLText/escaped(_:)``.
    static func escaped(_ text: String) -> String { HTMLText.escaped(text) }

    /// Escapes text for XML after log escaping; see ``HTMLText/markup(_:)``.
    static func xml(_ text: String) -> String { HTMLText.markup(text) }

    /// Returns a label with long random words, such as ids and resources, cut in the middle. Bare JIDs are kept.
    static func short(_ label: String) -> String {
        label.split(separator: " ", omittingEmptySubsequences: false).map { word in
            guard word.count > maximumWordLength else { return String(word) }
            var kept = word.startIndex
            if word.hasPrefix("id=") {
                kept = word.index(kept, offsetBy: 3)
            } else if let slash = word.firstIndex(of: "/"), word[..<slash].contains("@") {
                kept = word.index(after: slash)
            }
            let rest = word[kept...]
            guard rest.count > 12 else { return String(word) }
            return "\(word[..<kept])\(rest.prefix(6))…\(rest.suffix(4))"
        }
        .joined(separator: " ")
    }

    private static let maximumWordLength = 24

    /// Returns the sign and the CSS class of a step's result.
    static func sign(_ result: LoginStep.Result?) -> (String, String) {
        switch result {
        case .ok: ("✓", "ok")
        case .skipped: ("–", "skip")
        case .failed, nil: ("✗", "bad")
        }
    }

    static func fold(_ count: Int) -> String { "\(count) acknowledgements and pings" }

    /// Returns the lines of a diagnosis: cause, side at fault, advice.
    static func lines(_ diagnosis: LoginDiagnosis) -> [String] {
        let rule = diagnosis.rule.map { " (\($0))" } ?? ""
        let blame =
            diagnosis.isProxyTheCause.map { $0 ? "; xmpptap itself is the cause" : "; xmpptap is not the cause" } ?? ""
        return [
            "failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)",
            "side: \(diagnosis.side.rawValue)\(blame)",
        ] + (diagnosis.advice.map { ["try: \($0)"] } ?? [])
    }
}
