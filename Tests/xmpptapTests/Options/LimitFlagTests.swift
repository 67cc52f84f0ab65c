import TapCore
import TapNetwork
import Testing
import XMPPCore

@testable import xmpptap

struct LimitFlagTests {
    @Test func `--limit sets every limit`() throws {
        var session = SessionOptions()
        var proxy = ProxyLimits()
        for text in [
            "item=2MiB", "login-item=1KiB", "tag=2000", "name=100", "waiting=1MiB", "depth=9", "attributes=8",
            "namespaces=7", "connections=6", "connections-per-address=5", "login=4", "idle=3",
            "authorities=2",
        ] { try LimitFlag(text).apply(to: &session, &proxy) }
        let same = StreamLimits(
            itemBytes: 2 << 20,
            tagBytes: 2000,
            depth: 9,
            attributes: 8,
            nameBytes: 100,
            namespaces: 7
        )
        #expect(session.limits == same)
        var before = same
        before.itemBytes = 1024
        #expect(session.unauthenticatedLimits == before)
        #expect(session.waitingBytes == 1 << 20)
        #expect(session.loginTime == 4_000_000_000 && session.idleTime == 3_000_000_000)
        var expected = ProxyLimits(connections: 6, connectionsPerAddress: 5)
        #expect(ProxyLimits().authorities == 64)
        expected.authorities = 2
        #expect(proxy == expected)
    }

    @Test func `Zero removes a limit that can be removed`() throws {
        var session = SessionOptions()
        session.idleTime = 1
        var proxy = ProxyLimits(connections: 1, connectionsPerAddress: 1)
        for name in ["connections", "connections-per-address", "login", "idle"] {
            try LimitFlag("\(name)=0").apply(to: &session, &proxy)
        }
        #expect(proxy == ProxyLimits())
        #expect(session.loginTime == nil && session.idleTime == nil)
    }

    @Test(
        arguments: [
            ("depth", "write NAME=VALUE, as in --limit depth=100; the names are item, tag, depth, "),
            ("deepness=1", "unknown limit 'deepness'; the names are item, tag, depth, "),
            ("depth=many", "write a whole number from 0 to 1000000000"),
            ("depth=0", "depth must be at least 1"),
            ("authorities=0", "authorities must be at least 1"),
            ("item=5GB", "item must be at most 1073741824"),
            ("item=large", "write a whole number with a unit, as in 100MB, 64KiB or 2GB"),
        ]
    )
    func `Other limits are refused with a remedy`(text: String, message: String) {
        #expect(refusal { try LimitFlag(text) }.hasPrefix(message))
    }

    @Test func `The session limit is half of the descriptors, minus a reserve`() {
        #expect(ProcessLimits.sessions(descriptors: 1024) == 480)
        #expect(ProcessLimits.sessions(descriptors: 10) == 1)
    }
}
