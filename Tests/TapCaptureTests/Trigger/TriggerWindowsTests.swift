import TapRecord
import TapRules
import TapTestKit
import Testing

@testable import TapCapture

/// A capture around matches, as lines that name their records and notes that say what is missing.
struct TriggerWindowsTests {
    /// A record of a test.
    private struct Event {
        enum Kind { case stanza, session, ready, end }
        var session: UInt64
        var kind = Kind.stanza
        var isMatch = false
        var length = 10
        /// Nanoseconds of the run.
        var time: Int64 = 0
    }

    private enum Written: Hashable {
        case record(UInt64)
        case note(TriggerNote)
    }

    private static func record(_ event: Event, _ sequence: UInt64) -> Record {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: event.time),
            monotonic: event.time,
            kind: event.kind == .stanza ? .stanza : .session,
            level: .info,
            part: .session,
            session: event.session
        )
        switch event.kind {
        case .ready: record.code = Record.Code.sessionReady
        case .end: record.code = Record.Code.sessionEnded
        case .stanza, .session: break
        }
        return record
    }

    private static func trigger(_ before: Int, _ after: Int) throws -> CaptureTrigger {
        var trigger = CaptureTrigger(try RecordFilter("message"))
        trigger.before = before
        trigger.after = after
        return trigger
    }

    /// Returns the numbers of the written records, which are numbered from 1.
    private static func written(
        _ events: [Event],
        _ trigger: CaptureTrigger,
        _ bounds: CaptureTrigger.Bounds = CaptureTrigger.Bounds(),
        closes: Bool = true,
        _ look: (TriggerWindows) -> Void = { _ in }
    ) -> [Written] {
        var written: [Written] = []
        var windows = TriggerWindows(trigger, from: 0, bounds: bounds)
        let output = TriggerWindow.Output(
            line: { line in
                let text = line.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
                written.append(.record(UInt64(text.prefix { $0 != " " }) ?? 0))
            },
            note: { written.append(.note($0)) }
        )
        for (index, event) in events.enumerated() {
            let record = Self.record(event, UInt64(index + 1))
            let line = "\(index + 1) ".padded(to: event.length)
            windows.process(record, line.span.bytes, isMatch: event.isMatch, to: output)
            look(windows)
        }
        if closes { windows.close(to: output) }
        return written
    }

    private static func place(_ number: Int, _ events: [Event]) -> RecordPlace {
        RecordPlace(record(events[number - 1], UInt64(number)))
    }

    // MARK: - Against a naive model

    /// The same by looking at all records at once.
    private static func expected(
        _ events: [Event],
        _ trigger: CaptureTrigger,
        _ bounds: CaptureTrigger.Bounds
    ) -> (sessions: [UInt64: [Written]], rest: [Written]) {
        // The capture ends after the last match and the records after it, of every session.
        var open: [UInt64: Int] = [:]
        var accepted: Set<Int> = []
        var end = events.count
        for (index, event) in events.enumerated() {
            let isFull = accepted.count == trigger.matches
            if isFull, open.values.allSatisfy({ $0 == 0 }) {
                end = index
                break
            }
            if event.isMatch, !isFull {
                accepted.insert(index)
                open[event.session] = trigger.after
            } else if let left = open[event.session], left > 0 {
                open[event.session] = left - 1
            }
            if event.kind == .end { open[event.session] = 0 }
        }
        var sessions: [UInt64: [Written]] = [:]
        var unmatched: [Int] = []
        var unmatchedSessions: UInt64 = 0
        for session in Set(events[..<end].map(\.session)) {
            let own = (0..<end).filter { events[$0].session == session }
            let matches = own.indices.filter { accepted.contains(own[$0]) }
            guard !matches.isEmpty else {
                unmatched += own
                unmatchedSessions += session > 0 ? 1 : 0
                continue
            }
            var kept: Set<Int> = []
            let ready = own.firstIndex { events[$0].kind == .ready } ?? own.count
            for index in own.indices where events[own[index]].kind != .stanza || index < ready && session > 0 {
                kept.insert(index)
            }
            for match in matches {
                kept.formUnion(match...min(own.count - 1, match + trigger.after))
                var bytes = 0
                for index in stride(from: match - 1, to: max(-1, match - 1 - trigger.before), by: -1) {
                    bytes += events[own[index]].length
                    // Data that a window has written is not held.
                    let isWritten = matches.contains { $0 < match && ($0...$0 + trigger.after).contains(index) }
                    guard bytes <= bounds.session, !isWritten else { break }
                    kept.insert(index)
                }
            }
            var lines: [Written] = []
            var gap = 0
            func tellGap(before index: Int) {
                guard gap > 0 else { return }
                let last = place(own[index - 1] + 1, events)
                lines.append(.note(.omitted(session: session, records: UInt64(gap), last: last)))
                gap = 0
            }
            for index in own.indices {
                guard kept.contains(index) else {
                    gap += 1
                    continue
                }
                tellGap(before: index)
                lines.append(.record(UInt64(own[index] + 1)))
            }
            tellGap(before: own.count)
            sessions[session] = lines
        }
        var rest: [Written] = []
        if let last = unmatched.max() {
            let last = place(last + 1, events)
            let records = UInt64(unmatched.count)
            rest.append(.note(.unmatched(sessions: unmatchedSessions, records: records, last: last)))
        }
        if end < events.count { rest.append(.note(.ended(matches: accepted.count, place(end + 1, events)))) }
        return (sessions, rest)
    }

    @Test(arguments: 0..<400 as Range<UInt64>)
    func `a trigger writes the same records as an evaluation of all records at once`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var trigger = try Self.trigger(Int.random(in: 0...6, using: &random), Int.random(in: 0...6, using: &random))
        if Bool.random(using: &random) { trigger.matches = Int.random(in: 1...4, using: &random) }
        var bounds = CaptureTrigger.Bounds()
        if Bool.random(using: &random) { bounds.session = Int.random(in: 20...120, using: &random) }
        var live: [UInt64] = [0]
        var ready: Set<UInt64> = []
        var next: UInt64 = 1
        let odds = Int.random(in: 2...30, using: &random)
        var events: [Event] = []
        for _ in 0..<300 {
            if live.count < 4, Int.random(in: 0..<8, using: &random) == 0 {
                live.append(next)
                next += 1
            }
            let session = live.randomElement(using: &random) ?? 0
            var event = Event(session: session, length: Int.random(in: 8...40, using: &random))
            if session > 0 {
                switch Int.random(in: 0..<40, using: &random) {
                case 0: event.kind = .session
                case 1...4 where !ready.contains(session): event.kind = .ready
                case 5: event.kind = .end
                default: break
                }
            }
            event.isMatch = Int.random(in: 0..<odds, using: &random) == 0
            if event.kind == .ready { ready.insert(session) }
            if event.kind == .end { live.removeAll { $0 == session } }
            events.append(event)
        }
        let written = Self.written(events, trigger, bounds)
        let (sessions, rest) = Self.expected(events, trigger, bounds)
        #expect(Set(written).count == written.count, "nothing is written twice")
        var found: [UInt64: [Written]] = [:]
        var others: [Written] = []
        for entry in written {
            switch entry {
            case .record(let number): found[events[Int(number) - 1].session, default: []].append(entry)
            case .note(.omitted(let session, _, _)): found[session, default: []].append(entry)
            case .note: others.append(entry)
            }
        }
        #expect(found == sessions)
        #expect(others == rest)
    }

    // MARK: - By hand

    @Test func `Overlapping windows are joined, and session records are written across gaps`() throws {
        var events = [Event(session: 1, kind: .session), Event(session: 1, kind: .ready)]
        events += (3...20).map { Event(session: 1, isMatch: $0 == 10 || $0 == 12) }
        events.append(Event(session: 1, kind: .end))
        let written = Self.written(events, try Self.trigger(2, 3))
        func omitted(_ count: UInt64, _ last: Int) -> Written {
            .note(.omitted(session: 1, records: count, last: Self.place(last, events)))
        }
        #expect(
            written == [.record(1), .record(2), omitted(5, 7)] + (8...15).map { .record($0) }
                + [omitted(5, 20), .record(21)]
        )
    }

    @Test func `If the program is killed, matched sessions keep their window, and others have nothing`() throws {
        let events = [Event(session: 1, isMatch: true), Event(session: 2), Event(session: 1)]
        #expect(Self.written(events, try Self.trigger(1, 1), closes: false) == [.record(1), .record(3)])
    }

    @Test func `A capture with a duration ends then, even if windows are open`() throws {
        var trigger = try Self.trigger(1, 100)
        trigger.duration = .nanoseconds(10)
        let events = (0..<20).map { Event(session: 1, kind: .ready, isMatch: $0 == 3, time: Int64($0)) }
        let written = Self.written(events, trigger)
        #expect(written == (1...10).map { .record($0) } + [.note(.ended(matches: 1, Self.place(11, events)))])
    }

    @Test func `A long login and a flood of sessions stay within their limits`() throws {
        var bounds = CaptureTrigger.Bounds()
        bounds.login = 50
        bounds.total = 2000
        // Ten records of a login, of which five have room; then it is ready.
        var events = (0..<10).map { _ in Event(session: 1) }
        events += [
            Event(session: 1, kind: .ready), Event(session: 1), Event(session: 1), Event(session: 1, isMatch: true),
        ]
        let written = Self.written(events, try Self.trigger(1, 0), bounds)
        func omitted(_ count: UInt64, _ last: Int) -> Written {
            .note(.omitted(session: 1, records: count, last: Self.place(last, events)))
        }
        #expect(
            written == (1...5).map { .record($0) }
                + [omitted(5, 10), .record(11), omitted(1, 12), .record(13), .record(14)]
        )
        // A thousand sessions with a login of five records, and then as many as ten of each wait.
        var flood: [Event] = []
        for _ in 0..<30 { for session in 1...50 as ClosedRange<UInt64> { flood.append(Event(session: session)) } }
        flood += (1...50).map { Event(session: $0, isMatch: true) }
        var most = 0
        let kept = Self.written(flood, try Self.trigger(20, 0), bounds) { most = max(most, $0.waiting) }
        #expect(most <= 2000 + 10)
        var lines: [UInt64: Int] = [:]
        var gaps: [UInt64: UInt64] = [:]
        for entry in kept {
            switch entry {
            case .record(let number): lines[flood[Int(number) - 1].session, default: 0] += 1
            case .note(.omitted(let session, let records, _)): gaps[session, default: 0] += records
            case .note: Issue.record("\(entry)")
            }
        }
        #expect(lines.count == 50)
        for session in lines.keys {
            #expect(lines[session].map { UInt64($0) + (gaps[session] ?? 0) } == 31, "each record is written or counted")
        }
    }
}

extension String {
    fileprivate func padded(to length: Int) -> [UInt8] {
        Array(utf8) + [UInt8](repeating: 0x78, count: max(0, length - utf8.count))
    }
}
