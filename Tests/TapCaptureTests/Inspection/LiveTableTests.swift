import Synchronization
import TapCore
import TapRecord
import TapRules
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

/// Records of a running proxy for pages.
struct LiveTableTests {
    /// A clock that tests set, and a dispatcher with the table as its only sink.
    private final class Scene: Sendable {
        private let seconds = Mutex<Int64>(0)
        let dispatcher = RecordDispatcher([])

        func table() -> LiveTable {
            let table = LiveTable { [self] in
                let seconds = seconds.withLock { $0 }
                return Run.Instant(
                    time: Timestamp(nanoseconds: (1_796_000_000 + seconds) * 1_000_000_000),
                    monotonic: seconds * 1_000_000_000
                )
            } onChange: { [dispatcher] in
                dispatcher.updateLevels()
            }
            dispatcher.add(table)
            return table
        }

        func advance(by more: Int64) { seconds.withLock { $0 += more } }
    }

    private let scene = Scene()

    private func write(
        _ count: Int,
        _ kind: Record.Kind = .note,
        _ level: Level = .verbose,
        to producer: RecordDispatcher.Producer
    ) {
        for number in 1...count {
            let record = Record(
                sequence: UInt64(number),
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: kind,
                level: level,
                part: .session
            )
            producer.write(record.shown, content: Span())
        }
    }

    @Test func `the borders of reads and TLS records are kept for a page`() {
        let live = scene.table()
        live.touch()
        let producer = RecordDispatcher.Producer(scene.dispatcher)
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .stanza,
            level: .info,
            part: .session
        )
        record.isInTLS = true
        producer.write(record.shown, content: Span())
        (record.chunks, record.tlsRecords) = ([7], [7, 9])
        producer.write(record.shown, content: Span())
        var lines: [String] = []
        live.table.read(live.table.range) { _, line in
            guard let line else { return }
            var buffer = LineBuffer()
            buffer.append(bytes: line)
            lines.append(buffer.text)
        }
        #expect(lines.suffix(2).first?.contains(#""tls_records":[]"#) == true, "\(lines)")
        #expect(lines.last?.contains(#""chunks":[7],"tls_records":[7,9]"#) == true, "\(lines)")
    }

    @Test func `without a page only sessions, errors and warnings are kept`() {
        let live = scene.table()
        #expect(live.level == .info)
        #expect(scene.dispatcher.level.current == .info)
        let producer = RecordDispatcher.Producer(scene.dispatcher)
        write(100, to: producer)
        write(100, .stanza, .info, to: producer)
        write(100, .element, .info, to: producer)
        #expect(live.table.range.isEmpty && live.table.byteCount == 0)
        #expect(live.since == nil)
        live.expire()
        #expect(live.level == .info)
        write(2, .stanza, .error, to: producer)
        write(1, .element, .warn, to: producer)
        write(1, .session, .info, to: producer)
        #expect(live.table.range == 0..<4)
    }

    @Test func `a request begins the recording, which ends 60 s after the last request`() throws {
        let live = scene.table()
        let producer = RecordDispatcher.Producer(scene.dispatcher)
        scene.advance(by: 100)
        live.touch()
        #expect(scene.dispatcher.level.current == .verbose)
        #expect(live.since == Timestamp(nanoseconds: 1_796_000_100_000_000_000))
        write(3, to: producer)
        #expect(live.table.range == 0..<4)
        // Another request does not begin it again.
        scene.advance(by: 50)
        live.touch()
        scene.advance(by: 60)
        live.expire()
        #expect(scene.dispatcher.level.current == .verbose)
        write(1, to: producer)
        #expect(live.table.range == 0..<5)
        scene.advance(by: 1)
        live.expire()
        #expect(live.level == .info && live.since == nil)
        #expect(scene.dispatcher.level.current == .info)
        write(10, to: producer)
        #expect(live.table.range == 0..<5)
        scene.advance(by: 10)
        live.touch()
        write(2, to: producer)
        let inspection = Inspection(RecordedLines.subject, run: "run", live)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 10))
        #expect(rows.texts("kind") == ["gap", "note", "note", "note", "note", "gap", "note", "note"])
        let remarks = rows.texts("text").filter { $0.hasPrefix("recording since 2026-") }
        #expect(remarks.count == 2)
        #expect(remarks.first?.hasSuffix("of the time before, only sessions, errors and warnings are shown") == true)
        #expect(remarks.last?.hasSuffix("so that only sessions, errors and warnings are kept") == true)
        #expect(rows.numbers("time").first == 1_796_000_100_000_000)
        let state = try InspectionAnswer(inspection.state(build: "b"))
        #expect(state.number("since") == 1_796_000_221_000_000)
    }

    @Test func `a filter shows that recording had stopped between two matches`()
        throws
    {
        let live = scene.table()
        let producer = RecordDispatcher.Producer(scene.dispatcher)
        let inspection = Inspection(RecordedLines.subject, run: "run", live)
        let filter = try RecordFilter("kind:note")
        // No page asks for more than a minute, before each of the three parts.
        for _ in 1...3 {
            live.touch()
            write(2, to: producer)
            scene.advance(by: 61)
            live.expire()
        }
        live.touch()
        let rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: 20))
        // Neither the first gap, before all records, nor the last one, after which nothing has matched yet.
        #expect(rows.texts("kind") == ["note", "note", "gap", "note", "note", "gap", "note", "note"])
        #expect(rows.numbers("at") == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(rows.number("gaps") == 2 && rows.number("end") == 8)
        write(1, to: producer)
        let more = try InspectionAnswer(inspection.rows(filter, .from(8), count: 20))
        #expect(more.texts("kind") == ["gap", "note"] && more.numbers("at") == [9, 10])
        #expect(inspection.nearest(filter, from: 2, backwards: false, patience: .seconds(1)).position == 4)
        #expect(inspection.nearest(filter, from: 7, backwards: true, patience: .seconds(1)).position == 5)
        #expect(inspection.nearest(filter, from: 10, backwards: false, patience: .seconds(1)).position == nil)
    }

    @Test func `records of several event loops are complete, and in the order of their loop`() async throws {
        let live = scene.table()
        live.touch()
        await withTaskGroup { tasks in
            for session in 1...4 {
                tasks.addTask { [dispatcher = scene.dispatcher] in
                    let producer = RecordDispatcher.Producer(dispatcher)
                    for number in 1...2000 {
                        var record = Record(
                            sequence: UInt64(number),
                            time: Timestamp(nanoseconds: 0),
                            monotonic: 0,
                            kind: .note,
                            level: .info,
                            part: .session
                        )
                        record.session = UInt64(session)
                        producer.write(record.shown, content: Span())
                    }
                }
            }
        }
        #expect(live.table.range == 0..<8001)
        var last: [UInt64: UInt64] = [:]
        let runs = live.table.runs
        live.table.read(1..<8001) { position, line in
            guard case .record(let line) = StoredLine(line, runs, at: position) else {
                Issue.record("no record at \(position)")
                return
            }
            #expect(line.record.sequence == last[line.record.session, default: 0] + 1)
            last[line.record.session] = line.record.sequence
        }
        #expect(last == [1: 2000, 2: 2000, 3: 2000, 4: 2000])
    }

    @Test func `records with annotations and long ones keep their places among the others`() throws {
        let live = scene.table()
        live.touch()
        let producer = RecordDispatcher.Producer(scene.dispatcher)
        for number in 1...3000 {
            let long = number % 500 == 0 ? String(repeating: "x", count: 70_000) : ""
            let content = Array("<message id='\(number)'>\(long)</message>".utf8)
            var record = Record(
                sequence: UInt64(number),
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: .stanza,
                level: .info,
                part: .session
            )
            record.jid = "romeo@montague.example/orchard"
            record.xml = ByteRange(0, content.count)
            if number % 7 == 0 { record.rule = "a.rules:\(number)" }
            producer.write(record.shown, content: content.span)
        }
        let runs = live.table.runs
        var next: UInt64 = 1
        live.table.read(1..<3001) { position, line in
            guard case .record(let line) = StoredLine(line, runs, at: position) else {
                Issue.record("no record at \(position)")
                return
            }
            #expect(line.record.sequence == next)
            #expect(line.record.rule == (next % 7 == 0 ? "a.rules:\(next)" : nil))
            #expect(line.record.jid == "romeo@montague.example/orchard")
            let text = String(decoding: line.content, as: UTF8.self)
            #expect(text.hasPrefix("<message id='\(next)'>") && (text.utf8.count > 70_000) == (next % 500 == 0))
            next += 1
        }
        #expect(next == 3001)
    }

    @Test func `a table in which old memory is used again has only the new records`() throws {
        let live = LiveTable(RecordTable.Limits(records: .max, bytes: 2 << 20)) {
            Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
        } onChange: {
        }
        live.touch()
        scene.dispatcher.add(live)
        scene.dispatcher.updateLevels()
        write(60_000, .stanza, .info, to: RecordDispatcher.Producer(scene.dispatcher))
        let range = live.table.range
        #expect(range.upperBound == 60_001)
        #expect(range.lowerBound > 30_000)
        #expect(live.table.byteCount <= 2 << 20)
        let runs = live.table.runs
        live.table.read(range) { position, line in
            guard case .record(let line) = StoredLine(line, runs, at: position) else {
                Issue.record("no record at \(position)")
                return
            }
            #expect(line.record.sequence == UInt64(position))
        }
    }

    @Test func `a record that is no longer kept is a row that says so`() throws {
        let live = LiveTable(RecordTable.Limits(records: 10, bytes: .max)) {
            Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
        } onChange: {
        }
        live.touch()
        scene.dispatcher.add(live)
        write(5000, to: RecordDispatcher.Producer(scene.dispatcher))
        let inspection = Inspection(RecordedLines.subject, run: "run", live)
        let first = live.table.range.lowerBound
        #expect(first > 1000)
        // Its row is gone, too.
        #expect(try InspectionAnswer(inspection.record(at: first - 1)).fields["row"] == nil)
        let kept = try InspectionAnswer(inspection.record(at: first))
        #expect((kept.fields["row"] as? [String: Any])?["kind"] as? [String] == ["note"])
    }
}
