internal import TapRecord

/// Terminal colours.
struct Paint: Sendable {
    let isOn: Bool

    /// Returns the colours for standard output.
    static func forOutput(_ choice: ColourChoice = .auto) -> Paint {
        Paint(isOn: choice.isColoured(in: .current))
    }

    /// Returns a text in a colour; control characters must already be escaped.
    func callAsFunction(_ text: String, _ colour: Colour?) -> String {
        guard isOn, let colour, !text.isEmpty else { return text }
        return "\(colour.sequence)\(text)\(Colour.end)"
    }
}

/// The style of a command's output for users: on a terminal with the marks, grid and colours of the compact form,
/// wrapped to its width; otherwise in unwrapped lines.
struct OutputStyle: Sendable {
    /// The width of the terminal in columns; nil without a terminal, and lines are not wrapped.
    var width: Int?
    var paint = Paint(isOn: false)
    /// Whether the terminal supports only ASCII.
    var isASCII = false

    /// The mark at the start of a row, which represents its outcome.
    enum Mark: String, Sendable {
        case done = "✓"
        case neutral = "·"
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
            case .neutral, .none: .plain
            }
        }
    }

    /// The width of a mark, including the spaces after it.
    static let markColumns = 3

    /// The style for output that is not a terminal: lines of any length, without colours.
    static let plain = OutputStyle()

    /// Returns the style for standard output.
    static func ofOutput(_ choice: ColourChoice) -> OutputStyle {
        OutputStyle(
            width: Console.isTerminal ? Console.width.map { max(20, $0) } : nil,
            paint: .forOutput(choice),
            isASCII: Console.isTerminal && !Console.hasUTF8
        )
    }

    /// Returns the title line of a section.
    func rule(_ title: String) -> String {
        let width = width ?? 80
        let line = Columns.cut("── \(Console.escaped(title)) ", to: width)
        return drawn(paint(line + String(repeating: "─", count: max(0, width - Columns.count(line))), .dim))
    }

    /// Returns the rows of a text, after a mark and, if given, a name in its own column.
    ///
    /// - Parameters:
    ///   - column: The width of the name, including the spaces after it.
    ///   - colour: The colour of the text.
    func rows(_ mark: Mark, _ text: String, name: String = "", column: Int = 0, colour: Colour? = nil) -> [String] {
        let escaped = Console.escaped(name)
        // A long name gets a separate row.
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

    /// Returns a text, wrapped to lines that fit after an indent; as one line if the width is unlimited.
    func wrapped(_ text: String, indent: Int = 0) -> [String] {
        guard let width else { return [text.replacing("\u{A0}", with: " ")] }
        return Columns.wrapped(text, to: max(10, width - indent))
    }

    /// Returns a line as the terminal can display it.
    func drawn(_ line: String) -> String { isASCII ? Columns.ascii(line) : line }
}

extension String {
    func padded(to width: Int) -> String { Columns.padded(self, to: width) }
}
