/// The colours of output for people, by the numbers of SGR (ECMA-48 §8.3.117), which a terminal's theme resolves.
package enum Colour: Sendable {
    case plain, dim, bold, red, green, yellow, cyan

    /// The sequence that begins the colour; empty for ``plain``.
    package var sequence: StaticString {
        switch self {
        case .plain: ""
        case .dim: "\u{1B}[2m"
        case .bold: "\u{1B}[1m"
        case .red: "\u{1B}[1;31m"
        case .green: "\u{1B}[32m"
        case .yellow: "\u{1B}[33m"
        case .cyan: "\u{1B}[36m"
        }
    }

    /// The sequence that ends any colour.
    package static let end: StaticString = "\u{1B}[0m"
}
