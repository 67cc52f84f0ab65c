import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapStreamManagement

/// Tests the translation of a receiver's count for the sender (XEP-0198).
@Suite struct StreamManagementLedgerTests {
    private typealias Mark = StreamManagementLedger.Mark

    private static func ledger(_ steps: String, startingAt count: UInt32 = 0) -> StreamManagementLedger {
        var ledger = StreamManagementLedger(startingAt: count)
        apply(steps, to: &ledger)
        return ledger
    }

    /// Applies steps: `.` passes a stanza, `-` drops one, `+` injects one.
    private static func apply(_ steps: String, to ledger: inout StreamManagementLedger) {
        for step in steps {
            switch step {
            case ".": ledger.pass()
            case "-": ledger.drop()
            default: ledger.inject()
            }
        }
    }

    /// Returns the counts for the sender that follow from each count of the receiver, from 0 on.
    private static func counts(_ steps: String) -> [UInt32] {
        let ledger = ledger(steps)
        return (0...UInt32(ledger.delivered)).map { count in
            var ledger = ledger
            return ledger.acknowledge(count).count
        }
    }

    @Test(arguments: [
        ("", [0]), ("...", [0, 1, 2, 3]), (".-.", [0, 2, 3]), ("-..", [1, 2, 3]), ("..-", [0, 1, 3]),
        (".+.", [0, 1, 1, 2]), ("+.", [0, 0, 1]), (".+", [0, 1, 1]), ("--", [2]), ("++", [0, 0, 0]),
        (".-+.", [0, 2, 2, 3]), (".+-.", [0, 2, 2, 3]), (".-+-.", [0, 3, 3, 4]), ("..+.", [0, 1, 2, 2, 3]),
    ])
    func `a translated count includes handled stanzas and the dropped ones that follow them`(
        steps: String,
        counts: [UInt32]
    ) {
        #expect(Self.counts(steps) == counts)
    }

    @Test func `counts are forwarded unchanged without drops, or after as many drops as injections`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number: UInt32 in 1...1000 {
            ledger.pass()
            #expect(ledger.acknowledge(number).count == number)
        }
        #expect(!ledger.hasDiverged)
        Self.apply("-+.", to: &ledger)
        #expect(ledger.acknowledge(1002).count == 1002)
        #expect(ledger.hasDiverged)
    }

    @Test func `translated counts exclude an injected ping and include its dropped answer`() {
        var send = Self.ledger("..+.")
        var recv = Self.ledger(".-.")
        #expect(send.acknowledge(4).count == 3)
        #expect(recv.acknowledge(2).count == 3)
    }

    @Test func `translated counts include a stanza that xmpptap answers, and exclude the answer`() {
        var send = Self.ledger("-")
        var recv = Self.ledger("+")
        #expect(send.acknowledge(0).count == 1)
        #expect(recv.acknowledge(1).count == 0)
    }

    @Test func `a resumption resets both counts to the last handled stanza`() {
        var send = Self.ledger(".+.+.-.")
        var recv = Self.ledger(".++..")
        #expect(recv.acknowledge(4, isAnswer: false).count == 2)
        #expect(send.acknowledge(5, isAnswer: false).count == 4)
        send.resume()
        recv.resume()
        #expect([send.sent, send.delivered, recv.sent, recv.delivered] == [4, 5, 2, 4])
        // The client's fifth stanza is retransmitted, and is the server's sixth.
        #expect(send.retransmission(0)?.number == 5)
        send.pass()
        #expect(send.acknowledge(6).count == 5)
        #expect(send.retransmission(0) == nil)
    }

    @Test func `each side's count wraps to 0 after 4294967295 at its own stanza`() {
        var ledger = Self.ledger(".+.", startingAt: 4_294_967_294)
        #expect(ledger.acknowledge(4_294_967_295).count == 4_294_967_295)
        #expect(ledger.acknowledge(0).count == 4_294_967_295)
        #expect(ledger.acknowledge(1).count == 0)
        #expect(ledger.handled == 4_294_967_297)
        ledger.drop()
        #expect(ledger.acknowledge(1).count == 1)
    }

    @Test func `a wrong count stays wrong by the same number after translation, and changes no state`() throws {
        var ledger = Self.ledger("..-.+")
        #expect(ledger.acknowledge(3).count == 4)
        let high = ledger.acknowledge(6)
        #expect(high.count == 6)
        #expect(high.finding?.fault == .tooHigh && high.finding?.difference == 2 && high.finding?.firstWrong == 4)
        let back = ledger.acknowledge(1)
        #expect(back.count == 2)
        #expect(back.finding?.fault == .backwards && back.finding?.difference == 2)
        #expect(ledger.handled == 3 && ledger.acknowledged == 4)
        #expect(ledger.acknowledge(4).count == 4)
    }

    @Test func `a retransmitted stanza keeps its number and the decision of the rules`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        ledger.pass()
        ledger.drop(Mark(fingerprint: 2, rule: 7))
        ledger.pass(Mark(fingerprint: 3, rule: 8))
        ledger.pass()
        #expect(ledger.acknowledge(0, isAnswer: false).count == 0)
        ledger.resume()
        var told: [String] = []
        for fingerprint: UInt16 in 1...5 {
            let again = ledger.retransmission(fingerprint)
            told.append(again.map { "\($0.number) \($0.outcome.map { "\($0)" } ?? "-") \($0.rule)" } ?? "new")
            ledger.pass()
        }
        #expect(told == ["1 - 0", "2 dropped 7", "3 passed 8", "4 - 0", "new"])
    }

    @Test func `a different stanza with the number of an unacknowledged one does not reuse its decision`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        ledger.drop(Mark(fingerprint: 1))
        ledger.pass()
        ledger.drop(Mark(fingerprint: 3))
        // The first stanza is acknowledged, because xmpptap has answered it.
        #expect(ledger.acknowledge(0, isAnswer: false).count == 1)
        ledger.resume()
        ledger.pass()
        #expect(ledger.retransmission(4)?.outcome == nil)
        #expect(ledger.retransmission(3)?.outcome == .dropped)
    }

    @Test func `the number of a lost injected stanza is above the handled count`() {
        var ledger = Self.ledger("..")
        let first = ledger.inject()
        ledger.pass()
        let second = ledger.inject()
        #expect(ledger.acknowledge(3, isAnswer: false).count == 2)
        ledger.resume()
        #expect(first <= ledger.handled && second > ledger.handled)
    }

    @Test func `a sender's count is translated to the receiver's count`() {
        let ledger = Self.ledger("..-.++.")
        #expect((0...7).map { ledger.receiverCount($0) } == [0, 1, 2, 2, 3, 6, 7, 8])
        #expect(Self.ledger(".+", startingAt: 4_294_967_295).receiverCount(0) == 0)
        #expect(Self.ledger(".+", startingAt: 4_294_967_295).receiverCount(1) == 2)
    }

    @Test func `without stream management the ledger stores nothing`() {
        var ledger = StreamManagementLedger()
        for _ in 0..<1000 {
            ledger.drop(Mark(fingerprint: 1))
            ledger.inject()
            ledger.pass()
        }
        #expect(!ledger.hasDiverged && !ledger.isCrowded)
        #expect(ledger.byteCount == MemoryLayout<StreamManagementLedger>.size)
    }

    // MARK: Memory

    @Test func `memory does not grow with acknowledged stanzas`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number in 1...100_000 {
            if number % 7 == 0 {
                ledger.drop(Mark(fingerprint: UInt16(truncatingIfNeeded: number)))
            } else {
                ledger.pass()
            }
            if number % 50 == 0 { ledger.inject() }
            if number % 10 == 0 { _ = ledger.acknowledge(UInt32(ledger.delivered)) }
        }
        #expect(ledger.byteCount < 512)
    }

    /// Without acknowledgements the oldest events are merged, which can only delay acknowledgements.
    @Test(arguments: 0..<20)
    func `memory is bounded without acknowledgements, and no unhandled stanza is acknowledged`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ledger = StreamManagementLedger(startingAt: 0)
        // The numbers of the passed stanzas, at the sender and at the receiver.
        var passed: [(sender: UInt64, receiver: UInt64)] = []
        for number: UInt16 in 0..<2000 {
            switch UInt8.random(in: 0..<4, using: &random) {
            case 0: ledger.drop(Mark(fingerprint: number))
            case 1: ledger.inject()
            default:
                ledger.pass()
                passed.append((ledger.sent, ledger.delivered))
            }
        }
        #expect(ledger.isCrowded)
        #expect(ledger.byteCount <= 2 << 10)
        var told: UInt64 = 0
        for count in stride(from: 0, to: ledger.delivered, by: 3) {
            let next = UInt64(ledger.acknowledge(UInt32(count)).count)
            let exact = passed.first { $0.receiver > count }.map { $0.sender - 1 } ?? ledger.sent
            #expect(next <= exact && next >= told)
            told = next
        }
        #expect(ledger.acknowledge(UInt32(ledger.delivered)).count == UInt32(ledger.sent))
        #expect(!ledger.isCrowded)
        #expect(ledger.byteCount == MemoryLayout<StreamManagementLedger>.size)
        // Later counts are exact again.
        Self.apply(".-+.", to: &ledger)
        #expect(ledger.acknowledge(UInt32(ledger.delivered - 2)).count == UInt32(ledger.sent - 1))
    }

    @Test(arguments: 0..<4)
    func `both ledgers of a session take at most 4 KiB without acknowledgements, despite resumptions`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ledgers = StreamManagementLedgers()
        ledgers.send = StreamManagementLedger(startingAt: 0)
        ledgers.recv = StreamManagementLedger(startingAt: 0)
        var most = 0
        for number in 0..<20_000 {
            let mark = Mark(fingerprint: UInt16(truncatingIfNeeded: number), rule: UInt32(1) << UInt32(number % 32))
            for direction in Direction.allCases {
                switch UInt8.random(in: 0..<8, using: &random) {
                case 0: ledgers[direction].pass()
                case 1, 2: ledgers[direction].pass(mark)
                case 3, 4: ledgers[direction].drop(mark)
                case 5: ledgers[direction].drop()
                default: ledgers[direction].inject()
                }
                if UInt16.random(in: 0..<1500, using: &random) == 0 { ledgers[direction].resume() }
            }
            most = max(most, ledgers.byteCount)
        }
        #expect(most <= 4 << 10)
    }

    @Test func `counts stay exact around a dropped stanza after older decisions are discarded`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number: UInt16 in 0..<300 { ledger.pass(Mark(fingerprint: number)) }
        ledger.drop()
        for number: UInt16 in 0..<3000 { ledger.pass(Mark(fingerprint: number)) }
        for count: UInt32 in 0...3300 {
            #expect(ledger.receiverCount(count < 300 ? count : count + 1) == count)
            #expect(ledger.acknowledge(count).count == (count < 300 ? count : count + 1))
        }
    }

    @Test func `decisions over the limit are discarded, the oldest first`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number: UInt16 in 1...5000 { ledger.drop(Mark(fingerprint: number, rule: UInt32(number % 7))) }
        ledger.resume()
        for number: UInt16 in 1...5000 {
            let again = ledger.retransmission(number)
            if number > 4700 { #expect(again?.outcome == .dropped && again?.rule == UInt32(number % 7)) }
            if number < 4500 { #expect(again?.number == UInt64(number) && again?.outcome == nil) }
            ledger.pass()
        }
    }

    @Test(arguments: 0..<40)
    func `no acknowledgement makes a count exceed the number of stanzas or the memory limit`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ledger = StreamManagementLedger(startingAt: UInt32(truncatingIfNeeded: random.next() % 3 &- 1))
        for _ in 0..<1000 {
            let mark = Mark(fingerprint: UInt16.random(in: 0..<8, using: &random))
            switch UInt8.random(in: 0..<13, using: &random) {
            case 0..<4: ledger.pass()
            case 4: ledger.pass(mark)
            case 5, 6: ledger.drop(mark)
            case 7: ledger.inject()
            case 8: ledger.request()
            case 9: if UInt8.random(in: 0..<8, using: &random) == 0 { ledger.resume() }
            case 10: _ = ledger.retransmission(mark.fingerprint)
            default:
                // Any number, or a number near the correct one.
                let count = UInt32.random(in: .min ... .max, using: &random)
                let near = UInt32(truncatingIfNeeded: ledger.delivered) &+ count % 16 &- 8
                _ = ledger.receiverCount(ledger.acknowledge(seed % 4 == 0 ? count : near).count)
            }
            #expect(ledger.handled <= ledger.delivered && ledger.acknowledged <= ledger.sent)
        }
        #expect(ledger.byteCount <= 2 << 10)
    }

    @Test func `the decisions on 384 unacknowledged stanzas are kept for their retransmission`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number: UInt16 in 1...384 {
            let mark = Mark(fingerprint: number, rule: UInt32(number % 5))
            if number % 3 == 0 { ledger.drop(mark) } else { ledger.pass(mark) }
        }
        for _ in 0..<2 {
            ledger.resume()
            for number: UInt16 in 1...384 {
                let again = ledger.retransmission(number)
                #expect(again?.outcome == (number % 3 == 0 ? .dropped : .passed) && again?.rule == UInt32(number % 5))
                let mark = Mark(fingerprint: number, rule: UInt32(number % 5))
                if number % 3 == 0 { ledger.drop(mark) } else { ledger.pass(mark) }
            }
        }
    }

    @Test func `memory for retransmitted stanzas is bounded if the connection is lost repeatedly`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        // Each time the sender retransmits fewer stanzas, and none is ever acknowledged.
        for count in stride(from: 2000, to: 0, by: -20) {
            for number in 0..<count { ledger.pass(Mark(fingerprint: UInt16(truncatingIfNeeded: number))) }
            ledger.resume()
        }
        #expect(ledger.byteCount <= 2 << 10)
    }

    @Test func `a retransmitted stanza is recognised by its head, not by its content`() {
        func fingerprint(_ xml: String) -> UInt16? {
            var decoder = StreamDecoder(limits: .authenticated)
            decoder.append(
                Array("<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'>\(xml)".utf8).span
            )
            _ = decoder.next()
            return decoder.next().map { StreamManagementLedger.fingerprint($0.head, decoder.bytes) }
        }
        let message = fingerprint("<message id='1' to='a@b' type='chat'><body>x</body></message>")
        #expect(message != nil)
        #expect(
            fingerprint("<message to='a@b' type='chat' id='1'><body>x</body><delay xmlns='urn:xmpp:delay'/></message>")
                == message
        )
        for other in [
            "<message id='2' to='a@b' type='chat'/>", "<message id='1' to='a@c' type='chat'/>", "<message id='1'/>",
            "<message id='1' from='a@b' type='chat'/>", "<presence id='1' to='a@b' type='chat'/>",
        ] {
            #expect(fingerprint(other) != message)
        }
    }
}
