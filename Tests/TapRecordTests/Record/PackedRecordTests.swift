import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

@Suite struct PackedRecordTests {
    /// Returns the line of a record after it was packed; nil if it cannot be packed.
    private func line(_ sample: Sample) -> String? {
        let redacted = sample.record.shown
        guard let packed = PackedRecord(redacted, content: sample.content.span) else { return nil }
        var texts = LineBuffer()
        PackedRecord.appendTexts(of: redacted, content: sample.content.span, to: &texts)
        #expect(texts.bytes.count == packed.textCount)
        var form = JSONForm()
        var line = LineBuffer()
        packed.appendLine(texts: texts.bytes.span, &form, to: &line)
        return line.text
    }

    @Test func `a packed record has the line of the record`() {
        var random = SeededGenerator(seed: 12)
        for _ in 0..<5000 {
            var sample = Sample.random(&random)
            sample.record.remarks = []
            sample.record.chunks = []
            sample.record.tlsRecords = []
            sample.record.isInTLS = Bool.random(using: &random)
            #expect(line(sample) == sample.json([.content, .chunks]))
        }
        #expect(line(.roster) == Sample.roster.json(.content))
        #expect(line(Sample(.note)) == Sample(.note).json(.content))
    }

    @Test func `a record with annotations is not packed`() {
        var sample = Sample.roster
        sample.record.rule = "a.rules:1"
        #expect(line(sample) == nil)
    }

    @Test func `a record with borders of reads or TLS records is not packed`() {
        for field in [\Record.chunks, \.tlsRecords] {
            var sample = Sample.roster
            sample.record[keyPath: field] = [7]
            #expect(line(sample) == nil)
        }
    }

    @Test(arguments: [65_534, 65_535]) func `a record with a text of 64 KiB is not packed`(count: Int) {
        let text = String(repeating: "x", count: count)
        var large = Sample(.stanza)
        large.item(.send, text, name: "")
        #expect(line(large) == (count < 65_535 ? large.json(.content) : nil))
        for field in [\Record.jid, \.user, \.domain, \.remote] {
            var sample = Sample.roster
            sample.record[keyPath: field] = text
            #expect(line(sample) == (count < 65_535 ? sample.json(.content) : nil))
        }
    }

    @Test func `other texts than those of the record make no line`() {
        guard let packed = PackedRecord(Sample.roster.record.shown, content: Sample.roster.content.span) else {
            Issue.record("the record was not packed")
            return
        }
        var form = JSONForm()
        var line = LineBuffer()
        packed.appendLine(texts: [1, 2, 3].span, &form, to: &line)
        #expect(line.text == "")
    }
}
