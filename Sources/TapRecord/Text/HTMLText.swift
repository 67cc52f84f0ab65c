/// Text and style of HTML pages. All text from the wire is escaped.
package enum HTMLText {
    /// Escapes text from any source; invisible characters and bidirectional controls are named as in text logs.
    package static func escaped(_ text: String) -> String { markup(LineBuffer.escaped(text)) }

    /// Escapes text for HTML and XML after log escaping; characters that XML does not allow become U+FFFD.
    package static func markup(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars { append(scalar, to: &escaped) }
        return escaped
    }

    /// Escapes text of several lines; a control character or an invisible one is shown by its number, in an element of the
    /// class `c`, and no other character is changed.
    package static func lines(of text: String) -> String {
        var escaped = ""
        var previous: Unicode.Scalar?
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n" where previous == "\r": break
            case "\n", "\r": escaped += "<br/>"
            case "\t", "\\": escaped.unicodeScalars.append(scalar)
            case _ where Escape.isEscaped(scalar.value, .log):
                let number = String(scalar.value, radix: 16, uppercase: true)
                escaped +=
                    "<span class=\"c\">U+\(String(repeating: "0", count: max(0, 4 - number.count)))\(number)</span>"
            default: append(scalar, to: &escaped)
            }
            previous = scalar
        }
        return escaped
    }

    private static func append(_ scalar: Unicode.Scalar, to escaped: inout String) {
        switch scalar {
        case "&": escaped += "&amp;"
        case "<": escaped += "&lt;"
        case ">": escaped += "&gt;"
        case "\"": escaped += "&quot;"
        case "\u{FFFE}", "\u{FFFF}": escaped += "\u{FFFD}"
        default: escaped.unicodeScalars.append(scalar)
        }
    }

    /// The colours of all pages, light and dark.
    package static let palette = """
        :root { color-scheme: light dark; --paper: #fff; --ink: #1d2733; --faint: #6b7785; --lane: #c3ccd6; --item: #2f6db5;
        --tap: #a85f00; --bad: #b91f1f; --good: #23783e; --box: #fbecec }
        @media (prefers-color-scheme: dark) { :root { --paper: #14191f; --ink: #d7dee6; --faint: #8b97a5; --lane: #3b4652;
        --item: #6aa5e8; --tap: #ffbf5e; --bad: #ff8b8b; --good: #6fce8d; --box: #3a1d1f } }
        """
}
