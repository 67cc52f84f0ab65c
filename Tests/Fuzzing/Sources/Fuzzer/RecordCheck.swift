import TapCore
import TapRecord
import XMPPCore

/// Writes records in the forms of logs and captures, and reads them back.
struct RecordCheck: ~Copyable {
    private var json = JSONForm()
    private var text = TextForm()
    private var compact = CompactForm()
    private var line = LineBuffer()
    private let filter = try? LogFilter(LogSpec("trace"))

    /// Returns the contradiction in a record, if any: its line must be readable, and writing it again must give the
    /// same line.
    mutating func contradiction(_ record: RecordLine) -> String? {
        line.removeAll()
        json.append(record, [.content, .chunks], to: &line)
        let written = line.bytes
        let read: RecordLine
        do throws(RecordLineError) {
            read = try RecordLine(json: written.span.bytes)
        } catch {
            return "not read back, \(error): \(String(decoding: written, as: UTF8.self))"
        }
        line.removeAll()
        json.append(read, [.content, .chunks], to: &line)
        guard line.bytes == written else {
            return "read back is another: \(String(decoding: written + line.bytes, as: UTF8.self))"
        }
        if let filter {
            line.removeAll()
            text.append(record.record, content: record.content.span, filter.shown(of: record.record), to: &line)
            line.removeAll()
            // As on a terminal that is resized repeatedly.
            compact.style.width = Int(record.record.sequence % 160)
            compact.append(record.record, content: record.content.span, filter.shown(of: record.record), to: &line)
            if line.bytes.contains(where: { $0 < 0x20 && $0 != 0x0A || $0 == 0x7F }) {
                return "a row obeys the wire: \(String(decoding: line.bytes, as: UTF8.self).debugDescription)"
            }
        }
        return nil
    }
}
