internal import XMPPCore

/// The mark at the beginning of a row.
enum RowMark {
    case sent
    case received
    case neutral
    case done
    case warned
    case failed

    init(_ record: borrowing Record, _ content: Span<UInt8>) {
        let type = content.slice(record.type ?? .empty)
        if record.level == .error || record.kind == .stanza && type.equals("error")
            || record.code == Record.Code.loginFailed
        {
            self = .failed
        } else if record.level == .warn {
            self = .warned
        } else if record.code == Record.Code.sessionReady {
            self = .done
        } else if let direction = record.direction, record.kind != .note {
            self = direction == .send ? .sent : .received
        } else {
            self = .neutral
        }
    }

    var literal: StaticString {
        switch self {
        case .sent: "→"
        case .received: "←"
        case .neutral: "·"
        case .done: "✓"
        case .warned: "!"
        case .failed: "✗"
        }
    }

    var colour: Colour {
        switch self {
        case .sent: .cyan
        case .received, .done: .green
        case .neutral: .plain
        case .warned: .yellow
        case .failed: .red
        }
    }
}
