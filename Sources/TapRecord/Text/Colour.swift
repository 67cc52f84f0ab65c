/// The colours of output for people, as SGR parameters (ECMA-48 §8.3.117). The theme of the terminal determines their
/// appearance.
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
