internal import TapRecord

/// Terminal colours.
struct Paint: Sendable {
    let isOn: Bool

    /// For standard output.
    static func forOutput(_ choice: ColourChoice = .auto) -> Paint {
        Paint(isOn: choice.isColoured(in: .current))
    }

    /// The text in a colour; `text` must have its control characters escaped.
    func callAsFunction(_ text: String, _ colour: Colour?) -> String {
        guard isOn, let colour, !text.isEmpty else { return text }
        return "\(colour.sequence)\(text)\(Colour.end)"
    }
}

/// How a command prints to people: on a terminal in the marks, the grid and the colours of the compact form, to its width;
/// elsewhere in whole lines.
struct OutputStyle: Sendable {
    /// Columns of the terminal; nil without a terminal, and lines are not wrapped.
    var width: Int?
    var paint = Paint(isOn: false)
    /// The terminal supports only ASCII.
    var isASCII = false

    /// The mark at the beginning of a row, in place of a word.
    enum Mark: String, Sendable {
        case done = "✓"
        case told = "·"
        case warned = "!"
        case skipped = "–"
        case failed = "✗"
        case none = " "

        var colour: Colour {
            switch self {
            case .done: .green
            case .warned: .yellow
            case .failed: .red
            case .skipped: .dim
            case .told, .none: .plain
            }
        }
    }

    /// The columns of a mark and the spaces behind it.
    static let markColumns = 3

    /// Lines of any length without colours, as in a pipe.
    static let plain = OutputStyle()

    /// That of standard output now.
    static func ofOutput(_ choice: ColourChoice) -> OutputStyle {
        OutputStyle(
            width: Console.isTerminal ? Console.width.map { max(20, $0) } : nil,
            paint: .forOutput(choice),
            isASCII: Console.isTerminal && !Console.hasUTF8
        )
    }

    /// The line that what belongs together begins with.
    func rule(_ title: String) -> String {
        let width = width ?? 80
        let line = Columns.cut("── \(Console.escaped(title)) ", to: width)
        return drawn(paint(line + String(repeating: "─", count: max(0, width - Columns.count(line))), .dim))
    }

    /// Rows of a text after a mark, and after a name in its column, if it has one.
    ///
    /// - Parameters:
    ///   - column: The columns of the name and the spaces behind it.
    ///   - colour: That of the text.
    func rows(_ mark: Mark, _ text: String, name: String = "", column: Int = 0, colour: Colour? = nil) -> [String] {
        let escaped = Console.escaped(name)
        // A long name has a row for itself.
        let isLong = column > 0 && Columns.count(escaped) >= column
        let begin = "\(paint(mark.rawValue, mark.colour))  "
        let indent = Self.markColumns + column
        let lines = wrapped(Console.escaped(text), indent: indent).map { paint($0, colour) }
        let head = isLong ? [begin + paint(escaped, mark == .none ? .dim : nil)] : []
        let first =
            isLong
            ? String(repeating: " ", count: indent)
            : begin + paint(Columns.padded(escaped, to: column), mark == .none ? .dim : nil)
        let rest = String(repeating: " ", count: indent)
        return head + lines.enumerated().map { drawn(($0 == 0 ? first : rest) + $1) }
    }

    /// A text in lines that fit after an indent; one line if the width is unlimited.
    func wrapped(_ text: String, indent: Int = 0) -> [String] {
        guard let width else { return [text.replacing("\u{A0}", with: " ")] }
        return Columns.wrapped(text, to: max(10, width - indent))
    }

    /// A line as the terminal can show it.
    func drawn(_ line: String) -> String { isASCII ? Columns.ascii(line) : line }
}

extension String {
    func padded(to width: Int) -> String { Columns.padded(self, to: width) }
}
