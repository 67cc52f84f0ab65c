/// A log for tests, with one item on each line: `MILLISECONDS SESSION DIRECTION XML`. The time is below 1000.
///
/// Instead of a direction, a line may contain an event: `ready` with a JID for a completed login, `resumed` with the
/// number of the resumed session and a JID, or `ended` for the end of the session. `DIRECTION:ACTION` adds the action
/// of the proxy: `injected`, `dropped`, or `edited` with `XML => XML`.
package struct RecordedLog {
    /// The records as lines of JSON, without line feeds.
    package private(set) var records: [String] = []

    /// Creates the records of a text.
    package init(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3).map(String.init)
            guard parts.count > 2, let at = Int64(parts[0]), let session = UInt64(parts[1]) else { continue }
            let fields = Self.fields(parts[2], parts.count > 3 ? parts[3] : "")
            records.append(
                #"{"sequence":\#(records.count + 1),"time":"2026-11-22T10:00:00Z","monotonic":0.\#(String(at + 1000).dropFirst()),"level":"info","session":\#(session),\#(fields)}"#
            )
        }
    }

    /// The text of a log file with the records.
    package var file: String { Self.header + records.map { $0 + "\n" }.joined() }

    /// The first line of a file.
    package static let header =
        #"{"xtap":1,"tool":"xmpptap 0.1.0","time":"2026-11-22T10:00:00.000000000Z","level":"verbose","filter":null,"#
        + #""complete":false,"redaction":"secrets","run":"r"}"# + "\n"

    private static func fields(_ word: String, _ rest: String) -> String {
        switch word {
        case "ready": return #""kind":"session","code":"session-ready","jid":"\#(rest)""#
        case "resumed":
            let parts = rest.split(separator: " ")
            return #""kind":"session","code":"session-ready","details":{"resumes":\#(parts[0])},"jid":"\#(parts[1])""#
        case "ended": return #""kind":"session","code":"session-ended""#
        default:
            let words = word.split(separator: ":").map(String.init)
            return item(words[0], words.count > 1 ? words[1] : nil, rest.split(separator: " => ").map(String.init))
        }
    }

    private static func item(_ direction: String, _ action: String?, _ forms: [String]) -> String {
        let xml = forms.first ?? ""
        let name = xml.dropFirst().prefix { $0.isLetter || $0 == ":" }
        let kind =
            ["iq", "message", "presence"].contains(name)
            ? "stanza"
            : xml.hasPrefix("</") ? "stream-close" : xml.hasPrefix("<stream:stream") ? "stream-open" : "element"
        var fields = #""kind":"\#(kind)","direction":"\#(direction)","name":"\#(name)""#
        let tag = xml.prefix { $0 != ">" }
        for key in ["id", "type", "from", "to"] {
            guard let start = tag.firstRange(of: " \(key)='") else { continue }
            fields += #","\#(key)":"\#(tag[start.upperBound...].prefix { $0 != "'" })""#
        }
        if let inner = xml.firstIndex(of: ">"), xml[inner...].hasPrefix("><"),
            let uri = xml[inner...].firstRange(of: "xmlns='")
        {
            let payload = xml[inner...].dropFirst(2).prefix { $0.isLetter || $0 == "-" }
            fields += #","payload":"{\#(xml[uri.upperBound...].prefix { $0 != "'" })}\#(payload)""#
        }
        if let action { fields += #","action":"\#(action)""# }
        if action == "injected" { fields += #","origin":"tap""# }
        fields += #","xml":"\#(quoted(xml))""#
        if forms.count > 1 { fields += #","edited":"\#(quoted(forms[1]))""# }
        return fields
    }

    private static func quoted(_ xml: String) -> String { xml.replacing("\"", with: "\\\"") }
}
