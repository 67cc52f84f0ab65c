/// Colours of a terminal, where they are wanted.
struct Paint: Sendable {
    /// A way to show a text.
    enum Colour: String {
        case green = "32"
        case yellow = "33"
        case red = "31"
        case dim = "2"
        case bold = "1"
    }

    /// Whether anything is painted.
    let isOn: Bool

    /// For standard output: only on a terminal, and not where `NO_COLOR` says no.
    static var forOutput: Paint {
        let surroundings = LogPlan.Surroundings.current
        return Paint(isOn: surroundings.isTerminal && surroundings.wantsColour)
    }

    /// The text in a colour; it holds nothing that could steer a terminal.
    func callAsFunction(_ text: String, _ colour: Colour?) -> String {
        guard isOn, let colour, !text.isEmpty else { return text }
        return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}
