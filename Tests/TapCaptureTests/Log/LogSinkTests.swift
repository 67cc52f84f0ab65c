import Foundation
import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

struct LogSinkTests {
    private let folder = try? TemporaryFolder()
    private static let content = Array("<presence id='1'>é</presence>".utf8)

    private func run(redaction: RedactionPolicy = .secrets) -> LoggedRun {
        let instant = Run.Instant(time: Timestamp(nanoseconds: 1_795_281_762_102_000_000), monotonic: 5)
        return LoggedRun(tool: "xmpptap 1.2.3", word: "w0", redaction: redaction, run: Run(), now: { instant })
    }

    private func stanza(_ sequence: UInt64 = 1, level: Level = .info) -> Record {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: 1_795_281_762_102_000_000),
            monotonic: 1,
            kind: .stanza,
            level: level,
            part: .session
        )
        record.session = 3
        record.direction = .send
        record.xml = ByteRange(0, Self.content.count)
        record.name = ByteRange(1, 9)
        record.id = ByteRange(14, 15)
        record.length = UInt64(Self.content.count)
        record.chunks = [7]
        return record
    }

    /// The lines of a log after these records.
    private func lines(
        _ form: LogSink.Form,
        _ spec: LogSpec,
        isCapture: Bool = false,
        redaction: RedactionPolicy = .secrets,
        _ records: [Record]
    ) throws -> [String] {
        let folder = try #require(folder)
        // The thread of an earlier log may hold its file a moment longer than its records need.
        let name = UUID().uuidString
        let sink = try LogSink(
            LogSink.Configuration(.path(folder.path(of: name)), form: form, spec: spec, isCapture: isCapture),
            run: run(redaction: redaction)
        )
        for record in records where record.level <= sink.level { sink.write(record.shown, content: Self.content.span) }
        #expect(sink.close() == RecordWriter.Loss())
        return folder.read(name).split(separator: "\n").map(String.init)
    }

    @Test func `A text log begins with its date, and has the records that its level selects`() throws {
        let told = try lines(
            .text(TextForm.Style()),
            LogSpec(level: .info, send: true),
            [stanza(), stanza(2, level: .verbose)]
        )
        #expect(
            told == [
                "# 2026-11-21T17:22:42.102Z xmpptap 1.2.3 log info,send",
                "2026-11-21T17:22:42.102Z [3] SEND: <presence id='1'>é</presence>",
                "2026-11-21T17:22:42.102Z info [3] SEND presence id=1 30 B",
                "2026-11-21T17:22:42.102Z [3] SEND: <presence id='1'>é</presence>",
            ]
        )
        let silent = try lines(.text(TextForm.Style()), LogSpec(level: .warn), redaction: .none, [stanza()])
        #expect(silent.last == "# 2026-11-21T17:22:42.102Z xmpptap 1.2.3 log warn, SECRETS SHOWN")
    }

    @Test func `A JSON log at info has no XML, and a capture has XML and the ends of reads`() throws {
        let info = try lines(.json, LogSpec(level: .info), [stanza()])
        #expect(info.count == 2)
        #expect(info.first?.contains(#""complete":false"#) == true)
        #expect(info.last?.contains("xml") == false)
        #expect(info.last?.contains("chunks") == false)
        let capture = try lines(.json, LogSpec(level: .verbose), isCapture: true, redaction: .none, [stanza()])
        #expect(capture.count == 2)
        #expect(
            capture.first
                == #"{"xtap":1,"tool":"xmpptap 1.2.3","time":"2026-11-21T17:22:42.102000000Z","level":"verbose","#
                + #""filter":null,"complete":true,"redaction":"none","run":"w0","records_before":0}"#
        )
        #expect(capture.last?.contains(#""chunks":[7]"#) == true)
        #expect(capture.last?.contains(#""xml":"<presence id='1'>é</presence>""#) == true)
    }

    @Test func `Binary content is logged with its record at any level`() throws {
        var fault = stanza(level: .error)
        fault.kind = .error
        fault.xml = nil
        fault.bytes = [0xFF, 0x00]
        let told = try lines(.json, LogSpec(level: .error), [fault])
        #expect(told.last?.contains(#""base64":"/wA=""#) == true)
    }

    @Test func `A stored record is written unchanged, with its unknown fields`() throws {
        let folder = try #require(folder)
        let line =
            #"{"sequence":9,"time":"2026-11-21T17:22:42.102000000Z","monotonic":0.000000001,"level":"info","#
            + #""part":"session","kind":"note","message":"hi","later":{"a":[1]}}"#
        let stored = try RecordLine(json: line.utf8Span.span.bytes)
        for (form, expected) in [
            (LogSink.Form.json, line), (.text(TextForm.Style()), "2026-11-21T17:22:42.102Z info session: hi"),
        ] {
            let sink = try LogSink(
                LogSink.Configuration(.path(folder.path(of: "\(expected.count)")), form: form, spec: LogSpec()),
                run: run()
            )
            sink.write(stored)
            sink.close()
            #expect(folder.read("\(expected.count)").split(separator: "\n").last.map(String.init) == expected)
        }
    }

    @Test func `Lines written by several threads stay whole`() async throws {
        let folder = try #require(folder)
        let sink = try LogSink(
            LogSink.Configuration(.path(folder.path(of: "log")), form: .json, spec: LogSpec(level: .verbose)),
            run: run()
        )
        let count: UInt64 = 500
        await withTaskGroup { group in
            for thread in 0..<8 as Range<UInt64> {
                group.addTask {
                    for number in 1...count {
                        sink.write(stanza(thread * count + number).shown, content: Self.content.span)
                    }
                }
            }
        }
        sink.close()
        var seen: Set<UInt64> = []
        for line in folder.read("log").split(separator: "\n").dropFirst() {
            let stored = try RecordLine(json: String(line).utf8Span.span.bytes)
            seen.insert(stored.record.sequence)
            guard stored.content.suffix(Self.content.count) == Self.content[...] else {
                Issue.record("torn: \(line)")
                break
            }
        }
        #expect(seen.count == 8 * Int(count))
    }

    @Test func `Dropped records cause a note and an incomplete header`() {
        var loss = RecordWriter.Loss()
        loss.add(records: 7, bytes: 900)
        let opening = RecordWriter.Opening(reason: .loss, records: 0, dropped: loss)
        func told(_ form: LogSink.Form) -> [String] {
            let configuration = LogSink.Configuration(
                .path("x"),
                form: form,
                spec: LogSpec(level: .verbose),
                isCapture: true
            )
            let lines = LogLines(configuration, run: run())
            return (lines.loss(loss) + lines.header(opening)).split(separator: 0x0A)
                .map { String(decoding: $0, as: UTF8.self) }
        }
        let text = told(.text(TextForm.Style()))
        #expect(text.count == 2)
        #expect(
            text.first?.hasPrefix(
                "2026-11-21T17:22:42.102Z warn capture: 7 records (900 bytes) lost here: they could not be written"
            ) == true
        )
        #expect(text.last == "# 2026-11-21T17:22:42.102Z xmpptap 1.2.3 log verbose, incomplete")
        let json = told(.json)
        #expect(json.first?.contains(#""code":"records-dropped""#) == true)
        #expect(json.first?.contains(#""details":{"records":7,"bytes":900}"#) == true)
        #expect(json.last?.contains(#""complete":false"#) == true)
    }

    @Test func `Standard output has a header in JSON, but not in text`() {
        func header(_ form: LogSink.Form) -> [UInt8] {
            let configuration = LogSink.Configuration(.standardOutput, form: form, spec: LogSpec())
            return LogLines(configuration, run: run())
                .header(RecordWriter.Opening(reason: .start, records: 0, dropped: RecordWriter.Loss()))
        }
        #expect(header(.text(TextForm.Style())).isEmpty)
        #expect(header(.json).starts(with: Array("{\"xtap\":1,".utf8)))
    }

    @Test func `A log that cannot be opened is refused with the reason`() {
        #expect {
            try LogSink(LogSink.Configuration(.path("/nowhere/log"), form: .json, spec: LogSpec()), run: run())
        } throws: {
            "\($0)" == "cannot open /nowhere/log for writing: the folder /nowhere/ does not exist; create it first"
        }
        #expect {
            try LogSink(LogSink.Configuration(.path("/dev/full"), form: .json, spec: LogSpec()), run: run())
        } throws: {
            ($0 as? WriterFault)?.code == .diskFull
        }
    }
}
