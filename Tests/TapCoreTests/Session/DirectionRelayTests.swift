import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// The bytes that a direction sends, and their time, while its mode changes at any moment.
@Suite struct DirectionRelayTests {
    @Test(arguments: Direction.allCases)
    func `in any mode and with any reads, all bytes are sent once and in order, and stored items only whole`(
        direction: Direction
    ) {
        for seed in 0..<400 {
            var random = SeededGenerator(seed: UInt64(seed))
            var relay = CheckedRelay(direction, seed: seed)
            for _ in 0..<80 { relay.step(using: &random) }
            relay.finish()
        }
    }

    @Test func `an item that was passing continues as it arrives, and the next one is stored`() {
        var relay = CheckedRelay(.recv, seed: 0)
        relay.receive("<message><bo")
        relay.leave()
        relay.receive("dy>a")
        #expect(relay.out == "<message><body>a")
        relay.receive("</body></message><presence><sho")
        #expect(relay.out == "<message><body>a</body></message>")
        relay.receive("w/></presence>")
        #expect(relay.out == "<message><body>a</body></message><presence><show/></presence>")
    }

    @Test func `between two items the next one is stored at once`() {
        var relay = CheckedRelay(.send, seed: 0)
        relay.receive("<presence/>")
        relay.leave()
        relay.receive("<presence>")
        #expect(relay.out == "<presence/>")
        relay.enter()
        #expect(relay.out == "<presence/><presence>")
        relay.receive("</presence>")
        #expect(relay.out == "<presence/><presence></presence>")
    }

    @Test func `a direction that is to wait while an item is passing is released like any other`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.startTLS.prefix(3)))
        harness.session.sharedState.cutThrough(.send)
        harness.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><presence><sho")
        harness.session.sharedState.storeAndForward(.send)
        harness.session.sharedState.hold(.send)
        harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        let before = harness.toServer.count
        harness.send("w/></presence><presence/>")
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "w/></presence><presence/>")
    }

    @Test func `an item beyond the limit that was passing continues to its end`() {
        var relay = CheckedRelay(.recv, seed: 0)
        let item = "<message><body>\(String(repeating: "x", count: 2 * CheckedRelay.limit))</body></message>"
        relay.receive(String(item.prefix(40)))
        relay.leave()
        relay.receive(String(item.dropFirst(40).dropLast(3)))
        relay.receive(String(item.suffix(3)) + "<presence>")
        #expect(relay.out == item)
    }
}

/// One direction of an open session together with a simple model of the expected output.
private struct CheckedRelay: ~Copyable {
    /// The maximum size of a stored item in bytes.
    static let limit = 400

    private var session: Session
    private let direction: Direction
    private let seed: Int
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)

    /// Received and sent data.
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    /// Bytes of all items that were recorded.
    private var recorded: UInt64 = 0

    // What must be.
    private var passes = true
    private var isHeld = false
    /// The number of bytes that must have been sent.
    private var due = 0
    /// Offsets behind which another item can begin.
    private var boundaries: Set<Int> = [0]
    /// The rest of the generated items.
    private var coming: ArraySlice<UInt8> = []
    private var isBroken = false

    init(_ direction: Direction, seed: Int) {
        var options = SessionOptions(level: .verbose, redaction: .none)
        options.limits.itemBytes = Self.limit
        let run = Run()
        session = Session(
            run: run,
            options: options,
            tools: SessionTools(run: run, redaction: options.redaction),
            remote: nil,
            upstream: "127.0.0.1:5222",
            at: now
        )
        self.direction = direction
        self.seed = seed
        session.handle(.connected("127.0.0.1:5222"), at: now)
        for turn in Conversations.plainLogin.prefix(10) {
            _ = session.receive(turn.direction, Array(turn.text.utf8).span, at: now)
            perform()
        }
        output = []
        recorded = 0
    }

    var out: String { String(decoding: output, as: UTF8.self) }

    // MARK: What happens

    /// One thing at random.
    mutating func step(using random: inout SeededGenerator) {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: enter()
        case 1, 2: leave()
        case 3: session.sharedState.hold(direction); if !passes { isHeld = true }
        case 4, 5: release()
        default: read(using: &random)
        }
        // Received data may still wait to be processed at the next event.
        if Bool.random(using: &random) { check() }
    }

    mutating func receive(_ text: String) {
        coming = Array(text.utf8)[...]
        take(coming.count)
        check(compares: false)
    }

    /// Bytes pass as they come.
    mutating func enter() {
        perform()
        session.sharedState.cutThrough(direction)
        perform()
        (passes, isHeld, due) = (true, false, input.count)
    }

    /// Items are stored from the next one on.
    mutating func leave() {
        session.sharedState.storeAndForward(direction)
        passes = false
    }

    mutating func release() {
        session.sharedState.release(direction)
        perform()
        isHeld = false
        settle()
    }

    /// All items arrive completely, nothing waits any more, and everything has been sent.
    mutating func finish() {
        take(coming.count)
        check()
        release()
        check()
        if !isBroken { #expect(output.count == input.count, "seed \(seed), \(direction)") }
    }

    private mutating func read(using random: inout SeededGenerator) {
        if coming.isEmpty { make(using: &random) }
        take(Int.random(in: 1...max(1, min(coming.count, 60)), using: &random))
    }

    private mutating func take(_ count: Int) {
        let bytes = Array(coming.prefix(count))
        coming = coming.dropFirst(count)
        input += bytes
        if session.receive(direction, bytes.span, at: now) == .relay { output += bytes }
        if passes { due = input.count }
    }

    /// Makes one to four items. One beyond the limit comes where bytes pass, and begins to.
    private mutating func make(using random: inout SeededGenerator) {
        var bytes: [UInt8] = []
        func add(_ item: String) {
            bytes += Array(item.utf8)
            boundaries.insert(input.count + bytes.count)
        }
        if passes, Int.random(in: 0..<6, using: &random) == 0 {
            let length = Int.random(in: Self.limit..<(4 * Self.limit), using: &random)
            add("<message id='big'><body>\(String(repeating: "x", count: length))</body></message>")
        }
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            switch Int.random(in: 0..<6, using: &random) {
            // Of white space all that has come is an item.
            case 0: for character in [" ", "\n", "\t"].shuffled(using: &random) { add(character) }
            case 1: add("<r xmlns='urn:xmpp:sm:3'/>")
            case 2:
                add("<iq type='get' id='\(UInt16.random(in: 0...UInt16.max, using: &random))'><query xmlns='a'/></iq>")
            case 3: add("<x xmlns='urn:example:a'><y>&lt;/x></y></x>")
            case 4: add("<presence/>")
            default:
                add(
                    "<message><body>\(String(repeating: "é", count: .random(in: 0..<90, using: &random)))</body></message>"
                )
            }
        }
        coming = bytes[...]
    }

    private mutating func perform() {
        while let command = session.next() {
            switch command {
            case .forward(direction): output.append(session.content)
            case .send(direction.destination, let bytes): output += bytes
            case .record(let record):
                let record = record.record
                if record.direction == direction, record.kind.isItem { recorded += record.length }
            default: break
            }
        }
    }

    // MARK: What must be

    /// The first boundary at or behind an offset.
    private func boundary(from offset: Int) -> Int { (offset...).first { boundaries.contains($0) } ?? offset }

    /// Computes the number of bytes that must have been sent when all received data was processed.
    private mutating func settle() {
        guard !passes else { return }
        // The item that was passing, as far as it has come.
        due = max(due, min(boundary(from: due), input.count))
        guard !isHeld, boundaries.contains(due) else { return }
        due = (due...input.count).last { boundaries.contains($0) } ?? due
    }

    private mutating func check(compares: Bool = true) {
        perform()
        guard compares, !isBroken else { return }
        settle()
        let looked = (0...due).last { boundaries.contains($0) } ?? 0
        let isRight = output.count == due && input.starts(with: output) && recorded == UInt64(looked)
        #expect(
            isRight,
            """
            seed \(seed), \(direction): \(output.count) bytes of \(input.count) have gone out instead of \(due), items of \
            \(recorded) bytes were looked at instead of \(looked)
            """
        )
        isBroken = !isRight
    }
}
