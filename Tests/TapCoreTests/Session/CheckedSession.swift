import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// A session with invariants that are checked at every step, whatever the peers do.
///
/// - The forwarded bytes are the received bytes, in order. Only the stream error of a refusal is added.
/// - The session stores at most one item up to its size limit, and the data of one read.
/// - A leg that the session does not want to read is not read: its bytes wait outside the session, as in a socket.
struct CheckedSession: ~Copyable {
    private(set) var harness: SessionHarness
    /// The largest number of bytes that the session has stored in a direction.
    private(set) var peak = 0

    private let options: SessionOptions
    private var arrived: [Direction: [UInt8]] = [.send: [], .recv: []]
    private var outside: [Direction: [UInt8]] = [.send: [], .recv: []]
    private var ends: [Leg: LegEnd] = [:]
    private var largestRead = 0

    /// Creates a session, by default with a connected server and with all records.
    init(
        level: Level = .trace,
        redaction: RedactionPolicy = .none,
        limits: StreamLimits = .authenticated,
        connected: Bool = true
    ) {
        options = SessionOptions(level: level, redaction: redaction, limits: limits)
        harness = SessionHarness(options: options, connected: connected)
    }

    /// Whether the session has requested to close both legs.
    var isClosed: Bool { harness.closed != nil }

    /// Passes one read of a leg to the session, or stores the bytes outside if the leg is not read.
    mutating func receive(_ direction: Direction, _ bytes: [UInt8]) {
        guard !bytes.isEmpty, !isClosed, ends[direction.source] == nil else { return }
        guard outside[direction, default: []].isEmpty, !harness.unread.contains(direction.source) else {
            outside[direction, default: []] += bytes
            return
        }
        take(direction, bytes)
    }

    /// Passes a turn of a conversation to the session, in pieces of at most `piece` bytes.
    mutating func say(_ direction: Direction, _ bytes: [UInt8], piece: Int = .max) {
        var start = 0
        while start < bytes.count {
            let end = start + min(piece, bytes.count - start)
            receive(direction, Array(bytes[start..<end]))
            start = end
        }
    }

    /// Connects the session to the server.
    mutating func connect() {
        harness.connect()
        check()
        takeWhatWaits()
    }

    /// Ends the input of a leg, after all bytes that were received before.
    mutating func end(_ leg: Leg, _ end: LegEnd = .finished) {
        guard !isClosed, ends[leg] == nil else { return }
        ends[leg] = end
        if outside[leg.inbound, default: []].isEmpty || end == .reset { harness.end(leg, end) }
        check()
        takeWhatWaits()
    }

    private mutating func take(_ direction: Direction, _ bytes: [UInt8]) {
        arrived[direction, default: []] += bytes
        largestRead = max(largestRead, bytes.count)
        harness.receive(direction, bytes)
        check()
        takeWhatWaits()
    }

    private mutating func takeWhatWaits() {
        for direction in Direction.allCases {
            let leg = direction.source
            while !isClosed, let waiting = outside[direction], !waiting.isEmpty,
                !harness.unread.contains(leg), ends[leg] != .reset
            {
                let read = min(waiting.count, 65_536)
                outside[direction] = Array(waiting[read...])
                take(direction, Array(waiting[..<read]))
                if waiting.count == read, let end = ends[leg] { harness.end(leg, end) }
            }
        }
    }

    private mutating func check() {
        for direction in Direction.allCases {
            let waiting = harness.session.undecodedBytes(direction)
            peak = max(peak, waiting)
            let bound = max(options.limits.itemBytes, options.waitingBytes) + largestRead
            #expect(waiting <= bound, "\(direction): \(waiting) bytes wait")
        }
    }

    /// Ends both legs unless they have ended, and checks the session as a whole.
    ///
    /// - Parameter recordLimit: The largest allowed number of records, except those of single reads.
    mutating func finish(recordLimit: Int = .max) {
        end(.client)
        end(.server)
        #expect(isClosed, "both legs have ended, and the session goes on")
        harness.close()
        for direction in Direction.allCases { checkPassed(direction) }
        checkRecords()
        let records = harness.told.count { $0.record.kind != .chunk }
        #expect(records <= recordLimit)
    }

    /// Returns the data forwarded in a direction, without xmpptap's own output at the end.
    private func passed(_ direction: Direction) -> [UInt8] {
        let bytes = direction == .send ? harness.toServer : harness.toClient
        guard case .tap = harness.session.info.ending else { return bytes }
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasSuffix("</stream:stream>") else { return bytes }
        let error = text.ranges(of: "<stream:error>").last
        guard direction == .recv else {
            return error.map { Array(text[..<$0.lowerBound].utf8) } ?? bytes.dropLast("</stream:stream>".utf8.count)
        }
        // If the server has sent no header, the stream error follows a header of xmpptap.
        let header = "<?xml version='1.0'?><stream:stream xmlns='jabber:client'"
        let own =
            [text.ranges(of: header).last { text[$0.lowerBound...].contains("id='xmpptap-") }]
            + [error]
        guard let start = own.compactMap({ $0?.lowerBound }).first else { return bytes }
        return Array(text[..<start].utf8)
    }

    private func checkPassed(_ direction: Direction) {
        let (came, passed) = (arrived[direction, default: []], passed(direction))
        let isTrue = came.starts(with: passed)
        #expect(isTrue, "\(direction): \(passed.count) bytes passed are not the first that came")
        let isRefused = if case .tap = harness.session.info.ending { true } else { false }
        // A reset may overtake bytes that were sent before it, but an orderly end may not.
        if !isRefused, ends.values.allSatisfy({ $0 == .finished }) {
            #expect(passed.count == came.count, "\(direction): \(passed.count) of \(came.count) bytes passed")
        }
    }

    private static func text(of items: [SessionHarness.Told]) -> [UInt8] {
        items.flatMap { told in told.record.xml.map { told.content[$0.range] } ?? [] }
    }

    private func checkRecords() {
        let numbers = harness.told.map(\.record.sequence)
        if options.level == .trace { #expect(numbers.sorted() == (1...UInt64(numbers.count)).map { $0 }) }
        #expect(harness.told.count { $0.record.code == "session-ended" } == 1)
        for told in harness.told {
            let record = told.record
            let texts = [
                record.xml, record.name, record.from, record.to, record.type, record.id, record.payloadName,
                record.payloadURI,
            ]
            for range in texts.compactMap({ $0?.range }) {
                let isInside = range.lowerBound >= 0 && range.upperBound <= told.content.count
                #expect(isInside, "a text of \(record) lies outside its content of \(told.content.count) bytes")
            }
        }
        guard options.redaction == .none, options.level >= .verbose else { return }
        for direction in Direction.allCases {
            let items = harness.told.filter { $0.record.direction == direction && $0.record.kind.isItem }
            guard !items.contains(where: \.record.isTruncated) else { continue }
            let came = Self.text(of: items.filter { $0.record.origin == .peer })
            let isTrue = arrived[direction, default: []].starts(with: came)
            #expect(isTrue, "\(direction): the log is not what came")
            let said = Self.text(of: items.filter { $0.record.origin == .tap })
            let own = (direction == .send ? harness.toServer : harness.toClient).dropFirst(passed(direction).count)
            // A TLS alert is not recorded as an item.
            guard own.first != 0x15 else { continue }
            let isToldWhole = said.elementsEqual(own)
            #expect(isToldWhole, "\(direction): the log is not what the tap said")
        }
    }
}

extension Record.Kind {
    /// Whether the record describes a top-level item with its bytes.
    var isItem: Bool {
        switch self {
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose: true
        case .session, .tls, .bytes, .note, .error, .chunk, .frame: false
        }
    }
}
