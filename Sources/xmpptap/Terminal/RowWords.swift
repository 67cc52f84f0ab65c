internal import TapCapture
internal import TapRecord

/// The words of the page for rows and sessions.
extension RecordRow {
    /// The name of the item or event.
    var item: String {
        switch kind {
        case Record.Kind.stanza.rawValue, Record.Kind.element.rawValue: type.isEmpty ? name : "\(name) \(type)"
        case Record.Kind.streamOpen.rawValue: "stream"
        case Record.Kind.streamClose.rawValue: "end of stream"
        case _ where code == LoginStep.code: "login step"
        case _ where !code.isEmpty && Self.named.contains(kind): code.replacing("-", with: " ")
        default: kind
        }
    }

    private static let named = [Record.Kind.session, .tls, .note, .error].map(\.rawValue)

    /// The text of the row: the text of a message, a summary, or the payload.
    var contents: String {
        if isBody { return "“\(text)”" }
        if !text.isEmpty { return text }
        let name = payload.split(separator: "}").last ?? ""
        return name.isEmpty ? "" : "<\(name)/>"
    }

    /// The other side of the stanza.
    var peer: String { direction == .send ? to : from }

    var isStep: Bool { code == LoginStep.code }

    /// Whether the row shows a failure.
    var isBad: Bool { level == .error || type == "error" || code == Record.Code.loginFailed }

    var style: Style {
        if isBad { return .bad }
        if level == .warn { return .warned }
        return level >= .verbose || [.gap, .header].contains(kind) ? .dim : .plain
    }

    /// A mark with the action of xmpptap on the item; empty if it was only relayed.
    var mark: String {
        if !action.isEmpty { return "[\(action)] " }
        return isOwn && code != "inferred" ? "[xmpptap] " : ""
    }
}

extension String {
    fileprivate static let gap = "gap"
    fileprivate static let header = "header"
}

extension InspectedSession {
    /// The owner.
    var who: String { jid.isEmpty ? "not logged in" : jid }

    /// The state in words.
    var stateWords: String {
        if let failure { return "login failed: \(failure.finding)" }
        guard state == .ended else { return state.rawValue }
        return closeReason.isEmpty || closeReason == "closed"
            ? "ended" : "ended: \(closeReason.replacing("-", with: " "))"
    }

    var style: Style {
        if failure != nil { return .bad }
        return state == .ended ? .dim : .plain
    }
}

/// Numbers and times as words.
enum Words {
    /// A count with thousands separated by narrow spaces, as on the page.
    static func count(_ number: some BinaryInteger) -> String {
        let digits = String(number)
        guard digits.count > 3 else { return digits }
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3), digit != "-" { text += "\u{202F}" }
            text.append(digit)
        }
        return text
    }

    /// A count with its noun.
    static func plural(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(count(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// A size in bytes.
    static func size(_ bytes: UInt64) -> String { LineBuffer.text { $0.append(size: bytes) } }

    /// A share in percent.
    static func percent(_ part: some BinaryInteger, of whole: some BinaryInteger) -> String {
        let share = whole > 0 ? min(100, Double(part) / Double(whole) * 100) : 100
        return "\(Int(share)) %"
    }
}

/// The times of rows in a zone.
struct Clock {
    private let zone: LocalZone

    init(zone: LocalZone) { self.zone = zone }

    /// The time of day, to the millisecond or the second; empty if it is unknown.
    func time(_ time: Timestamp?, isShort: Bool = false) -> String {
        guard let time else { return "" }
        let text = LineBuffer.text { line in
            var writer = TimestampWriter(zone: zone)
            writer.appendTimeOfDay(time, to: &line)
        }
        return isShort ? String(text.prefix(8)) : text
    }

    /// The day and the zone; empty if the time has no day.
    func day(_ time: Timestamp?) -> String {
        guard let time else { return "" }
        return LineBuffer.text { line in
            var writer = TimestampWriter(zone: zone)
            writer.appendDay(of: time, to: &line)
        }
    }

    /// The day and the time.
    func stamp(_ time: Timestamp?) -> String {
        time.map { $0.stamp(in: zone).replacing("T", with: " ") } ?? "no time"
    }

    /// Returns a note about the time since the previous row: a new day, and a long pause; empty if there is neither.
    ///
    /// - Parameter pause: The shortest pause that is mentioned, in nanoseconds.
    func pause(_ before: RecordRow?, _ row: RecordRow, from pause: Int64) -> String {
        guard let earlier = before?.time, let time = row.time else { return "" }
        let length = time.nanoseconds &- earlier.nanoseconds
        let isOtherDay = day(earlier).prefix(10) != day(time).prefix(10)
        return (isOtherDay ? "\(day(time).prefix(10)) · " : "")
            + (length >= pause ? "\(LineBuffer.duration(length)) later · " : "")
    }
}
