import Testing

@testable import TapReplay

@Suite struct ValueBindingsTests {
    @Test func `a pair of values is bound once`() throws {
        var bindings = ValueBindings()
        try bindings.bind("1", to: "a", .stanzaID)
        try bindings.bind("1", to: "a", .stanzaID)
        #expect(bindings.count == 1)
        #expect(bindings.live(for: "1", .stanzaID) == "a")
        #expect(bindings.recorded(for: "a", .stanzaID) == "1")
        #expect(bindings.live(for: "1", .archiveID) == nil)
    }

    @Test func `one value bound to two values is a collision`() throws {
        var bindings = ValueBindings()
        try bindings.bind("1", to: "a", .stanzaID)
        let toTwo = #expect(throws: ValueBindings.Collision.self) { try bindings.bind("1", to: "b", .stanzaID) }
        #expect(toTwo?.boundLive == "a" && toTwo?.boundRecorded == nil)
        let fromTwo = #expect(throws: ValueBindings.Collision.self) { try bindings.bind("2", to: "a", .stanzaID) }
        #expect(fromTwo?.boundRecorded == "1")
        try bindings.bind("2", to: "a", .archiveID)
    }

    @Test func `a JID is replaced by its account, domain and resource`() throws {
        var bindings = ValueBindings()
        try bindings.bind("romeo@old.example", to: "user1@new.example", .account)
        try bindings.bind("romeo@old.example/a", to: "user1@new.example/b", .resource)
        #expect(bindings.jid("romeo@old.example/a", .toLive) == "user1@new.example/b")
        #expect(bindings.jid("romeo@old.example/c", .toLive) == "user1@new.example/c")
        #expect(bindings.jid("juliet@old.example/x", .toLive) == "juliet@new.example/x")
        #expect(bindings.jid("room@conference.old.example/n", .toLive) == "room@conference.new.example/n")
        #expect(bindings.jid("user1@new.example", .toRecorded) == "romeo@old.example")
        #expect(bindings.jid("a@other.example", .toLive) == "a@other.example")
        #expect(bindings.jid("bold.example", .toLive) == "bold.example")
    }

    @Test func `rolled back values are not bound`() throws {
        var bindings = ValueBindings()
        try bindings.bind("1", to: "a", .stanzaID)
        try bindings.bind("2", to: "b", .stanzaID)
        bindings.rollBack(to: 1)
        #expect(bindings.live(for: "1", .stanzaID) == "a")
        #expect(bindings.live(for: "2", .stanzaID) == nil && bindings.recorded(for: "b", .stanzaID) == nil)
    }

    @Test func `substitution keeps all other bytes`() throws {
        var bindings = ValueBindings()
        try bindings.bind("romeo@old.example", to: "o'neill@new.example", .account)
        try bindings.bind("romeo@old.example/r", to: "o'neill@new.example/x", .resource)
        try bindings.bind("1", to: "live-1", .stanzaID)
        try bindings.bind("verA", to: "verB", .version)
        let item = """
            <message  from="romeo@old.example/r" id='1' to='juliet@old.example'><priority>1</priority>\
            <body>&lt;romeo@old.example&gt; and  aromeo@old.examples</body>\
            <received xmlns='urn:xmpp:receipts' id = '1'/>\
            <query xmlns='http://jabber.org/protocol/disco#info' node='http://c#verA'/></message>
            """
        let live = String(decoding: bindings.substituted(Array(item.utf8), .toLive), as: UTF8.self)
        #expect(
            live == """
                <message  from="o&apos;neill@new.example/x" id='live-1' to='juliet@new.example'><priority>1</priority>\
                <body>&lt;o&apos;neill@new.example&gt; and  aromeo@old.examples</body>\
                <received xmlns='urn:xmpp:receipts' id = 'live-1'/>\
                <query xmlns='http://jabber.org/protocol/disco#info' node='http://c#verB'/></message>
                """
        )
        let back = bindings.substituted(Array(live.utf8), .toRecorded)
        #expect(try form(String(decoding: back, as: UTF8.self)) == form(item))
    }

    @Test func `text that is not an element is unchanged`() throws {
        var bindings = ValueBindings()
        try bindings.bind("1", to: "2", .stanzaID)
        for item in ["", "<iq", " ", "\u{0}"] {
            #expect(bindings.substituted(Array(item.utf8), .toLive) == Array(item.utf8))
        }
    }
}
