import XMPPCore
import Testing

@testable import TapRecord

/// Tests hostile text in each column of the compact form: no row is wider than the terminal, and no character controls
/// the terminal, is invisible or changes the direction of writing.
@Suite struct HostileColumnsTests {
    /// Text that a peer, or a forged file, can put into a name, a type, an address or a text.
    enum Hostile: String, CaseIterable, Sendable {
        case escapes = "\u{1B}[2J\u{1B}]0;title\u{7}\u{9B}31m\r\n\t\u{8}"
        case bidi = "a\u{202E}b\u{2066}c\u{2069}\u{200F}\u{61C}d\u{202C}"
        case invisible = "\u{200B}\u{2060}\u{FEFF}\u{E0041}\u{FFF9}x"
        case separators = "a\u{2028}b\u{2029}c\u{85}d\u{B}e\u{C}f"
        case wide = "漢字👨‍👩‍👧🇩🇪ｗｉｄｅ"
        case long, combining, wideLong

        var text: String {
            switch self {
            case .long: String(repeating: "x", count: 1 << 20)
            case .combining: "e" + String(repeating: "\u{301}", count: 1 << 19)
            case .wideLong: String(repeating: "漢", count: 1 << 18)
            default: rawValue
            }
        }
    }

    /// A field of a record, the text of which is shown in a column.
    enum Column: CaseIterable, Sendable {
        case name, type, to, from, id, jid, summary, condition, code, message, remote, mechanism

        func put(_ text: String, in sample: inout Sample) {
            switch self {
            case .name: sample.record.name = sample.put(text)
            case .type: sample.record.type = sample.put(text)
            case .to: sample.record.to = sample.put(text)
            case .from: sample.record.from = sample.put(text)
            case .id: sample.record.id = sample.put(text)
            case .jid: sample.record.jid = text
            case .summary: sample.record.summary = Prose(text)
            case .condition: sample.record.condition = text
            case .code: sample.record.code = text
            case .message: sample.record.message = Prose(text)
            case .remote: sample.record.remote = text
            case .mechanism: sample.record.sasl = ["mechanism": .string(text), "user": .string(text)]
            }
        }
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF,
            0xFFF9...0xFFFB, 0xE0000...0xE007F:
            true
        default: false
        }
    }

    /// Returns the rows of these records, and their XML if `spec` selects it.
    private static func rows(_ samples: [Sample], width: Int, spec: String = "trace") throws -> [Substring] {
        var style = CompactForm.Style()
        style.width = width
        var form = CompactForm(style: style)
        var line = LineBuffer()
        let filter = LogFilter(try LogSpec(spec))
        for sample in samples {
            form.append(sample.record, content: sample.content.span, filter.shown(of: sample.record), to: &line)
        }
        form.flush(to: &line)
        return line.text.split(separator: "\n")
    }

    @Test(arguments: Hostile.allCases, [20, 80]) func `hostile text is escaped`(hostile: Hostile, width: Int) throws {
        let text = hostile.text
        for column in Column.allCases {
            // A stanza, a note, a session record that changes the session's line, and a stream element.
            let kinds = [(Record.Kind.stanza, Level.info), (.note, .warn), (.session, .info), (.element, .info)]
            let samples = kinds.map { kind, level -> Sample in
                var sample = Sample.bound(kind, level)
                if kind == .stanza || kind == .element {
                    sample.item(.send, "<message/>", name: "message")
                    sample.record.xml = nil
                }
                if kind == .session { sample.record.code = Record.Code.sessionReady }
                column.put(text, in: &sample)
                return sample
            }
            let rows = try Self.rows(samples, width: width)
            #expect(!rows.isEmpty)
            for row in rows {
                let columns = Columns.count(Array(row.utf8).span)
                // The smallest tested width is 20, because narrower rows are not cut.
                #expect(columns <= width, "\(column): \(columns) columns: \(row.prefix(200))")
                #expect(!row.unicodeScalars.contains(where: Self.isHarmful), "\(column): \(row.prefix(200))")
                #expect(row.utf8.count < 16 << 10, "\(column): \(row.utf8.count) bytes")
            }
        }
    }

    @Test(arguments: Hostile.allCases) func `hostile text in XML is escaped, and long values are cut`(hostile: Hostile)
        throws
    {
        let text = hostile.text
        var sample = Sample.bound(.stanza, .info)
        sample.item(.send, "<message to='\(text)'><body>\(text)</body><x \(text)='1'/></message>", name: "message")
        let rows = try Self.rows([sample], width: 80, spec: "info,send")
        for row in rows { #expect(!row.unicodeScalars.contains(where: Self.isHarmful), "\(row.prefix(200))") }
        #expect(rows.reduce(0) { $0 + $1.utf8.count } < 64 << 10, "\(rows.count) rows")
    }
}
