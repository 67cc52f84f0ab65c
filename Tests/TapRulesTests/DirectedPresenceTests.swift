import TapTestKit
import Testing
import XMPPCore

@testable import TapRules

/// Tests of the addresses to which a client has sent directed presence.
@Suite struct DirectedPresenceTests {
    /// Returns the state of rules after these presences.
    private static func state(_ presences: [String]) -> DirectedPresence {
        var state = RuleState(seed: 1)
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(
            Array("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8).span
        )
        _ = decoder.next()
        for presence in presences {
            decoder.append(Array(presence.utf8).span)
            guard let event = decoder.next() else { continue }
            state.observePresence(event.head, decoder.bytes)
        }
        return state.directedPresence
    }

    private static func presence(_ to: String, type: String? = nil) -> String {
        "<presence to='\(to)'\(type.map { " type='\($0)'" } ?? "")/>"
    }

    @Test func `an address longer than a JID can be is not stored`() {
        let longest = "a@example.org/"
        let address = longest + String(repeating: "r", count: DirectedPresence.maximumAddressBytes - longest.utf8.count)
        #expect(Self.state([Self.presence(address)]).byteCount == address.utf8.count)
        #expect(Self.state([Self.presence(address + "r")]).count == 0)
    }

    @Test func `the number of addresses and their bytes are limited`() {
        let short = Self.state((0..<2000).map { Self.presence("a@example.org/\($0)") })
        #expect(short.count == RuleState.maximumMarks)
        let resource = String(repeating: "r", count: 1000)
        let long = Self.state((0..<1000).map { Self.presence("a@example.org/\(resource)\($0)") })
        #expect(long.byteCount <= DirectedPresence.maximumBytes && long.count > 200 && long.count < 300)
    }

    @Test func `unavailable presence frees the bytes of its address, and without an address those of all`() {
        let all = [Self.presence("a@example.org/1"), Self.presence("b@example.org"), Self.presence("b@example.org")]
        #expect(Self.state(all).byteCount == 15 + 13)
        #expect(Self.state(all + [Self.presence("a@example.org/1", type: "unavailable")]).byteCount == 13)
        #expect(Self.state(all + ["<presence type='unavailable'/>"]) == DirectedPresence())
    }
}
