/// Terminal colours.
struct Paint: Sendable {
    enum Colour: String {
        case green = "32"
        case yellow = "33"
        case red = "31"
        case dim = "2"
        case bold = "1"
    }

    let isOn: Bool

    /// For standard output: only on a terminal without `NO_COLOR`.
    static var forOutput: Paint {
        let surroundings = LogPlan.Surroundings.current
        return Paint(isOn: surroundings.isTerminal && surroundings.wantsColour)
    }

    /// The text in a colour; `text` must have its control characters escaped.
    func callAsFunction(_ text: String, _ colour: Colour?) -> String {
        guard isOn, let colour, !text.isEmpty else { return text }
        return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}
