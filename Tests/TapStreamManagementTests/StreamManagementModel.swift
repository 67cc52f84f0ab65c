import TapTestKit
import XMPPCore

import TapRecord
@testable import TapStreamManagement

/// Two correct endpoints with stream management (XEP-0198), xmpptap between them, and a network that loses connections.
/// Their actions are random; the model checks the invariants of stream management.
struct StreamManagementModel {
    /// The medium between the endpoints and the ledgers.
    enum Medium {
        /// Counts are passed as numbers.
        case counts
        /// Counts are passed in elements, which a translator edits.
        case elements
    }

    /// A violated invariant of stream management.
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    private enum Frame {
        case stanza(Int)
        case request
        case acknowledgement(UInt32)
    }

    /// A rule's decision on a stanza; equal for equal stanzas of one run.
    private enum Verdict: CaseIterable { case pass, edit, drop, bounce, duplicate }

    /// A client or a server that follows XEP-0198.
    private struct Endpoint {
        /// Number of received stanzas, which acknowledgements report.
        var handled: UInt64
        /// Number of its stanzas that were acknowledged.
        var acknowledged: UInt64
        /// The ids of its other stanzas.
        var unacknowledged: [Int] = []
        /// How often each stanza was received, by its id.
        var times: [Int: Int] = [:]
        /// The id of the last received stanza of the other endpoint.
        var last = 0

        init(_ start: UInt64) { (handled, acknowledged) = (start, start) }

        mutating func acknowledge(_ count: UInt32) throws(Violation) {
            let news = UInt64(count &- UInt32(truncatingIfNeeded: acknowledged))
            guard news <= UInt64(unacknowledged.count) else {
                throw Violation(
                    description:
                        "h=\(count) after h=\(acknowledged) with \(unacknowledged.count) unacknowledged stanzas"
                )
            }
            acknowledged += news
            unacknowledged.removeFirst(Int(news))
        }
    }

    /// One direction: the wire before xmpptap and the wire after it.
    private struct Path {
        var before: [Frame] = []
        var behind: [Frame] = []
        /// Injected stanzas that may be lost, with their numbers.
        var injected: [(number: UInt64, id: Int, isPing: Bool)] = []
        /// Whether the first frame before xmpptap waits, with all later ones.
        var isDelayed = false
    }

    private var random: SeededGenerator
    private let salt: UInt64
    private let medium: Medium
    private let translates: Bool
    /// Whether endpoints also acknowledge without a request.
    private let volunteers: Bool
    private var translator: StreamManagementTranslator
    private var endpoints: [Endpoint] = []
    private var paths = [Path(), Path()]
    /// The id of the next stanza; ids of xmpptap's stanzas are odd.
    private var nextID = 1
    private var messages: Set<Int> = []
    private var pings: Set<Int> = []
    private var dropped: Set<Int> = []
    private var sent: [[Int]] = [[], []]

    private init(_ seed: UInt64, _ medium: Medium, translates: Bool) {
        random = SeededGenerator(seed: seed)
        salt = random.next()
        self.medium = medium
        self.translates = translates
        translator = StreamManagementTranslator(translates: translates)
        volunteers = Bool.random(using: &random)
    }

    /// Plays one random session; throws the first violation.
    ///
    /// - Returns: Whether the counts of the endpoints have differed.
    @discardableResult
    static func play(seed: UInt64, _ medium: Medium, translates: Bool = true) throws(Violation) -> Bool {
        var model = StreamManagementModel(seed, medium, translates: translates)
        try model.begin()
        for _ in 0..<model.number(20...120) { try model.step() }
        try model.finish()
        return model.translator.hasDiverged
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func happens(_ percent: Int) -> Bool { number(1...100) <= percent }

    // MARK: Endpoints and network

    private mutating func begin() throws(Violation) {
        guard happens(50) else { return try beginAnew() }
        let starts = (0...1).map { _ -> UInt32 in
            switch number(0...2) {
            case 0: 0
            case 1: UInt32.max - UInt32(number(0...20))
            default: UInt32(truncatingIfNeeded: number(0...Int(UInt32.max)))
            }
        }
        // Each endpoint has handled everything that the other has sent.
        endpoints = [Endpoint(UInt64(starts[0])), Endpoint(UInt64(starts[1]))]
        endpoints[0].acknowledged = UInt64(starts[1])
        endpoints[1].acknowledged = UInt64(starts[0])
        // A session that began without xmpptap is resumed.
        _ = try element("<resume xmlns='urn:xmpp:sm:3' previd='a' h='\(starts[0])'/>", .send)
        _ = try element("<resumed xmlns='urn:xmpp:sm:3' previd='a' h='\(starts[1])'/>", .recv)
    }

    /// Begins a session with stream management. The client does not wait until it is enabled (XEP-0198 §3).
    private mutating func beginAnew() throws(Violation) {
        endpoints = [Endpoint(0), Endpoint(0)]
        _ = try element("<enable xmlns='urn:xmpp:sm:3' resume='true'/>", .send)
        for _ in 0..<number(0...3) {
            send(0)
            try relay(0)
        }
        for _ in 0..<number(0...2) { injectNew(0) }
        // The client does not count stanzas received before it reads that stream management is enabled.
        while !paths[1].behind.isEmpty { try deliver(1) }
        endpoints[0].handled = 0
        paths[1].injected = []
        _ = try element("<enabled xmlns='urn:xmpp:sm:3' resume='true' id='a'/>", .recv)
    }

    private mutating func step() throws(Violation) {
        let index = number(0...1)
        switch number(0...99) {
        case 0..<30:
            send(index)
        case 30..<36: paths[index].before.append(.request)
        case 36..<40: if volunteers { paths[index].before.append(acknowledgement(of: index)) }
        case 40..<64: try relay(index)
        case 64..<86: try deliver(index)
        case 86..<92: injectNew(index)
        case 92: paths[index].isDelayed.toggle()
        case 93..<95:
            if let direction = direction(index), translator.makeRequest(direction) != nil {
                paths[index].behind.append(.request)
            }
        case 95..<97:
            for _ in 0..<20 { try relay(index) }
        default:
            if happens(40) { try reconnect() }
        }
    }

    private func direction(_ index: Int) -> Direction? { Direction(rawValue: UInt8(index)) }

    private func acknowledgement(of index: Int) -> Frame {
        .acknowledgement(UInt32(truncatingIfNeeded: endpoints[index].handled))
    }

    private mutating func send(_ index: Int) {
        nextID += 2
        let id = nextID & ~1
        sent[index].append(id)
        endpoints[index].unacknowledged.append(id)
        paths[index].before.append(.stanza(id))
    }

    /// Delivers the next frame of a direction to the receiver.
    private mutating func deliver(_ index: Int) throws(Violation) {
        guard !paths[index].behind.isEmpty else { return }
        let receiver = 1 - index
        switch paths[index].behind.removeFirst() {
        case .request: paths[receiver].before.append(acknowledgement(of: receiver))
        case .acknowledgement(let count): try endpoints[receiver].acknowledge(count)
        case .stanza(let id):
            endpoints[receiver].handled += 1
            endpoints[receiver].times[id, default: 0] += 1
            guard id & 1 == 0 else { return }
            guard id > endpoints[receiver].last else {
                throw Violation(description: "stanza \(id) comes after \(endpoints[receiver].last)")
            }
            endpoints[receiver].last = id
        }
    }

    // MARK: xmpptap

    private func verdict(_ id: Int) -> Verdict {
        var hash = SeededGenerator(seed: salt &+ UInt64(id))
        switch hash.next() % 100 {
        case 0..<60: return .pass
        case 60..<65: return .edit
        case 65..<77: return .drop
        case 77..<85: return .bounce
        case 85..<92: return .duplicate
        default: return .pass
        }
    }

    /// Passes the next frame of a direction through xmpptap.
    private mutating func relay(_ index: Int) throws(Violation) {
        guard let direction = direction(index), !paths[index].before.isEmpty, !paths[index].isDelayed else { return }
        switch paths[index].before.removeFirst() {
        case .request:
            translator.ledgers[direction].request()
            paths[index].behind.append(.request)
        case .acknowledgement(let count):
            let told = try translate(count, direction)
            paths[index].behind.append(.acknowledgement(told))
            let handled = translator.ledgers[direction.opposite].handled
            paths[1 - index].injected.removeAll { $0.number <= handled }
        case .stanza(let id): judge(id, index, direction)
        }
    }

    private mutating func judge(_ id: Int, _ index: Int, _ direction: Direction) {
        let mark = StreamManagementLedger.Mark(fingerprint: UInt16(truncatingIfNeeded: id))
        let earlier = translator.ledgers[direction].retransmission(UInt16(truncatingIfNeeded: id))
        switch earlier?.outcome {
        case .dropped?: translator.ledgers[direction].drop(mark)
        case .passed?: pass(id, index, direction, mark)
        case nil:
            switch verdict(id) {
            case .pass: pass(id, index, direction, nil)
            case .edit: pass(id, index, direction, mark)
            case .drop:
                dropped.insert(id)
                translator.ledgers[direction].drop(mark)
            case .bounce:
                dropped.insert(id)
                translator.ledgers[direction].drop(mark)
                injectNew(1 - index, isPing: false)
            case .duplicate:
                pass(id, index, direction, mark)
                injectNew(index, isPing: false)
            }
        }
    }

    private mutating func pass(_ id: Int, _ index: Int, _ direction: Direction, _ mark: StreamManagementLedger.Mark?) {
        if let mark { translator.ledgers[direction].pass(mark) } else { translator.ledgers[direction].pass() }
        paths[index].behind.append(.stanza(id))
    }

    private mutating func injectNew(_ index: Int, isPing: Bool? = nil) {
        nextID += 2
        let id = nextID | 1
        let isPing = isPing ?? happens(50)
        if isPing { pings.insert(id) } else { messages.insert(id) }
        inject(id, index, isPing)
    }

    private mutating func inject(_ id: Int, _ index: Int, _ isPing: Bool) {
        guard let direction = direction(index) else { return }
        let number = translator.ledgers[direction].inject()
        paths[index].injected.append((number, id, isPing))
        paths[index].behind.append(.stanza(id))
    }

    // MARK: Elements

    private mutating func translate(_ count: UInt32, _ direction: Direction) throws(Violation) -> UInt32 {
        if case .elements = medium {
            return try element("<a xmlns='urn:xmpp:sm:3' h='\(count)'/>", direction) ?? count
        }
        let translated = translator.ledgers[direction.opposite].acknowledge(count)
        try check(translated.finding)
        return translates ? translated.count : count
    }

    private func check(_ finding: AcknowledgementFinding?) throws(Violation) {
        // If endpoints also acknowledge without a request, the answer to a request cannot be identified.
        guard let finding, !volunteers || finding.fault != .tooLow else { return }
        throw Violation(description: "an honest peer is accused: \(finding)")
    }

    /// Passes an element through the translator; returns its new count, nil if it is unchanged.
    private mutating func element(_ xml: String, _ direction: Direction) throws(Violation) -> UInt32? {
        try element(xml, direction, previous: .unknown)
    }

    private mutating func element(
        _ xml: String,
        _ direction: Direction,
        previous: StreamManagementTranslator.Previous
    ) throws(Violation) -> UInt32? {
        var decoder = StreamDecoder(limits: .authenticated)
        let header =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        decoder.append(Array((header + xml).utf8).span)
        _ = decoder.next()
        guard decoder.next() != nil else { throw Violation(description: "no element: \(xml)") }
        let translation = translator.translate(decoder, direction, previous: previous)
        try check(translation.finding)
        return translation.bytes.flatMap(Self.count)
    }

    private static func count(_ bytes: [UInt8]) -> UInt32? {
        String(decoding: bytes, as: UTF8.self).split(separator: "h='").last?.split(separator: "'").first
            .flatMap { UInt32($0) }
    }

    // MARK: Connections

    /// Loses the connection, or lets the client abandon it; the client resumes the session on a new connection, at the
    /// first attempt or a later one.
    private mutating func reconnect() throws(Violation) {
        if happens(30) { try linger() }
        repeat {
            cut()
        } while try !resume()
    }

    /// Lets xmpptap and the server use a connection from which the client no longer reads.
    private mutating func linger() throws(Violation) {
        for _ in 0..<number(1...20) {
            switch number(0...9) {
            case 0...1: send(1)
            case 2: injectNew(number(0...1))
            case 3...5: try relay(number(0...1))
            default: try deliver(0)
            }
        }
    }

    private mutating func cut() {
        for index in 0...1 {
            paths[index].before = []
            paths[index].isDelayed = false
            paths[index].behind = []
        }
    }

    /// Resumes the session; returns whether the connection lasts until both endpoints have resumed.
    private mutating func resume() throws(Violation) -> Bool {
        let client = UInt32(truncatingIfNeeded: endpoints[0].handled)
        let attempt = number(1...20)
        guard attempt != 1 else { return false }
        let told: UInt32
        switch medium {
        case .counts: told = try resumptionCount(client, .recv)
        case .elements:
            let previous = translator.legacy
            translator = StreamManagementTranslator(translates: translates)
            told =
                try element(
                    "<resume xmlns='urn:xmpp:sm:3' previd='a' h='\(client)'/>",
                    .send,
                    previous: previous.map { .known($0) } ?? .unknown
                ) ?? client
        }
        guard attempt != 2 else { return false }
        try endpoints[1].acknowledge(told)
        let server = UInt32(truncatingIfNeeded: endpoints[1].handled)
        guard attempt != 3 else { return false }
        let answer: UInt32
        switch medium {
        case .counts:
            answer = try resumptionCount(server, .send)
            translator.ledgers.send.resume()
            translator.ledgers.recv.resume()
        case .elements:
            answer = try element("<resumed xmlns='urn:xmpp:sm:3' previd='a' h='\(server)'/>", .recv) ?? server
        }
        for index in 0...1 {
            guard let direction = direction(index) else { continue }
            let lost = paths[index].injected.filter { $0.number > translator.ledgers[direction].handled }
            paths[index].injected = []
            for one in lost where !one.isPing { inject(one.id, index, false) }
        }
        paths[1].before += endpoints[1].unacknowledged.map { .stanza($0) }
        guard attempt != 4 else {
            for _ in 0..<number(0...5) { try relay(1) }
            return false
        }
        try endpoints[0].acknowledge(answer)
        paths[0].before += endpoints[0].unacknowledged.map { .stanza($0) }
        return true
    }

    private mutating func resumptionCount(_ count: UInt32, _ direction: Direction) throws(Violation) -> UInt32 {
        let translated = translator.ledgers[direction].acknowledge(count, isAnswer: false)
        try check(translated.finding)
        return translates ? translated.count : count
    }

    // MARK: The end

    /// Delivers all frames in transit, and lets both endpoints request acknowledgements.
    private mutating func finish() throws(Violation) {
        for round in 0..<3 {
            for index in 0...1 {
                paths[index].isDelayed = false
                if round > 0 { paths[index].before.append(.request) }
            }
            while paths.contains(where: { !$0.before.isEmpty || !$0.behind.isEmpty }) {
                for index in 0...1 {
                    while !paths[index].before.isEmpty { try relay(index) }
                    while !paths[index].behind.isEmpty { try deliver(index) }
                }
            }
        }
        for index in 0...1 {
            let times = endpoints[1 - index].times
            guard endpoints[index].unacknowledged.isEmpty else {
                throw Violation(description: "never acknowledged: \(endpoints[index].unacknowledged)")
            }
            for id in sent[index] {
                let count = times[id, default: 0]
                guard count == (dropped.contains(id) ? 0 : 1) else {
                    throw Violation(description: "stanza \(id) \(count == 0 ? "is lost" : "comes \(count) times")")
                }
            }
        }
        let times = endpoints[0].times.merging(endpoints[1].times) { $0 + $1 }
        for id in messages where times[id] != 1 {
            throw Violation(description: "injected message \(id) comes \(times[id] ?? 0) times")
        }
        for id in pings where times[id] ?? 0 > 1 { throw Violation(description: "ping \(id) comes twice") }
    }
}
