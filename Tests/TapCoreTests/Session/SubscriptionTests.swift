import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapDiagnosis
import TapRecord
@testable import TapRules

@Suite struct SubscriptionTests {
    /// The nine subscription states of RFC 6121 appendix A.1.
    private static let states: [SubscriptionState] = [
        ("none", false, false), ("none", true, false), ("none", false, true), ("none", true, true),
        ("to", false, false), ("to", false, true), ("from", false, false), ("from", true, false),
        ("both", false, false),
    ].map { subscription, out, into in
        var state = SubscriptionState(subscription: subscription, ask: out ? "subscribe" : nil)
        state.isPendingIn = into
        return state
    }

    /// RFC 6121 appendix A.2 and A.3: for each state in the order of `states`, the index of its successor.
    @Test(
        arguments: [
            (true, SubscriptionState.PresenceType.subscribe, [1, 1, 3, 3, 4, 5, 7, 7, 8]),
            (true, .unsubscribe, [0, 0, 2, 2, 0, 2, 6, 6, 6]),
            (true, .subscribed, [0, 1, 6, 7, 4, 8, 6, 7, 8]),
            (true, .unsubscribed, [0, 1, 0, 1, 4, 4, 0, 1, 4]),
            (false, .subscribe, [2, 3, 2, 3, 5, 5, 6, 7, 8]),
            (false, .unsubscribe, [0, 1, 0, 1, 4, 4, 0, 1, 4]),
            (false, .subscribed, [0, 4, 2, 5, 4, 5, 6, 8, 8]),
            (false, .unsubscribed, [0, 0, 2, 2, 0, 2, 6, 6, 6]),
        ]
    ) func `subscription states follow the table of RFC 6121`(
        isSent: Bool,
        kind: SubscriptionState.PresenceType,
        successors: [Int]
    ) {
        for (state, successor) in zip(Self.states, successors) {
            var after = state
            if isSent { after.apply(sent: kind) } else { after.apply(received: kind) }
            #expect(after == Self.states[successor], "\(state), \(isSent ? "sent" : "received") \(kind)")
        }
    }

    @Test func `each subscription state has a distinct description`() {
        let words = Self.states.map(\.description)
        let expected = [
            "none", "pending out", "pending in", "pending out and in", "to", "to, pending in", "from",
            "from, pending out", "both",
        ]
        #expect(words == expected)
        #expect(
            Self.states.map(\.subscription) == ["none", "none", "none", "none", "to", "to", "from", "from", "both"]
        )
    }

    @Test func `a change of a subscription is read back from its details`() {
        for before in Self.states {
            for after in Self.states.map(Optional.some) + [nil] {
                let change = SubscriptionChange(contact: "juliet@example.net", from: before, to: after)
                #expect(SubscriptionChange(change.details) == change)
            }
        }
        #expect(SubscriptionChange(["because": "an older program"]) == nil)
    }

    // MARK: In a session

    /// Returns the messages of the subscription records.
    private static func changes(_ harness: borrowing SessionHarness) -> [String] {
        harness.told(code: Record.Code.subscription).compactMap(\.record.messageText)
    }

    private static func open() -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    private static func push(_ id: Int, _ attributes: String) -> String {
        "<iq type='set' id='\(id)'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' \(attributes)/>"
            + "</query></iq>"
    }

    @Test func `changes are recorded while two users subscribe to each other`() {
        var harness = Self.open()
        harness.send("<presence to='romeo@example.net/orchard' type='subscribe'/>")
        harness.recv(Self.push(1, "subscription='none' ask='subscribe'"))
        harness.recv("<presence from='Romeo@example.net' type='subscribe'/>")
        harness.recv("<presence from='romeo@example.net' type='subscribed'/>")
        harness.recv(Self.push(2, "subscription='to'"))
        harness.send("<presence to='romeo@example.net' type='subscribed'/>")
        harness.recv(Self.push(3, "subscription='both'"))
        harness.recv(Self.push(4, "subscription='remove'"))
        #expect(
            Self.changes(harness) == [
                "romeo@example.net: unknown → pending out (from unknown)",
                "romeo@example.net: pending out (from unknown) → pending out",
                "romeo@example.net: pending out → pending out and in",
                "romeo@example.net: pending out and in → to, pending in",
                "romeo@example.net: to, pending in as before",
                "romeo@example.net: to, pending in → both",
                "romeo@example.net: both as before",
                "romeo@example.net: both → removed",
            ]
        )
        let first = harness.told(code: Record.Code.subscription).first?.record
        #expect(
            first?.details == [
                "contact": "romeo@example.net", "before": "unknown", "after": "pending out (from unknown)",
                "because": "this account requests their presence",
            ]
        )
        #expect(first?.level == .info)
    }

    /// At level info, a whole roster is parsed when its contents are needed; at level verbose, on arrival.
    @Test(arguments: [false, true])
    func `subscription changes are the same whether a roster is read at once or later`(hasStranger: Bool) {
        func roster(_ id: String, _ items: String) -> [Conversations.Turn] {
            [
                (.send, "<iq type='get' id='\(id)'><query xmlns='jabber:iq:roster'/></iq>"),
                (.recv, "<iq type='result' id='\(id)'><query xmlns='jabber:iq:roster'>\(items)</query></iq>"),
            ]
        }
        var lines: [Conversations.Turn] = []
        if hasStranger { lines.append((.recv, "<presence from='tybalt@example.net' type='subscribe'/>")) }
        lines += roster("1", "<item jid='tybalt@example.net' subscription='from'/><item jid='paris@example.net'/>")
        lines += roster("2", "<item jid='romeo@example.net' subscription='both'/><item jid='nurse@example.net'/>")
        lines.append((.recv, Self.push(3, "subscription='from'")))
        lines += roster("4", "<item jid='romeo@example.net' subscription='to'/>")
        lines.append((.recv, "<presence from='romeo@example.net' type='subscribe'/>"))
        lines += roster("5", "<item jid='nurse@example.net' subscription='to'/>")
        var seen: [[String]] = []
        for level in [Level.info, .verbose] {
            var harness = SessionHarness(options: SessionOptions(level: level))
            harness.say(Array(Conversations.plainLogin.prefix(10)))
            var known: [String] = []
            for line in lines {
                harness.say([line])
                known.append(harness.session.contacts(limit: 10).map { "\($0.contact) \($0.state)" }.sorted().joined())
            }
            // The contacts are read after each line in one session, and only at the end in the other.
            seen.append(known + Self.changes(harness))
            var other = SessionHarness(options: SessionOptions(level: level))
            other.say(Array(Conversations.plainLogin.prefix(10)) + lines)
            #expect(other.session.hasUnreadRoster == (level == .info))
            #expect(Self.changes(other) == Self.changes(harness))
            #expect(
                other.session.contacts(limit: 10).map { "\($0.contact) \($0.state)" }.sorted().joined() == known.last
            )
        }
        #expect(seen[0] == seen[1] && seen[0].contains("romeo@example.net: both → from"))
    }

    @Test func `changes start from the states in the roster`() throws {
        var harness = Self.open()
        harness.send("<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>")
        harness.recv(
            "<iq type='result' id='r'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' subscription='both'/>"
                + "<item jid='nurse@example.net' subscription='none' ask='subscribe'/></query></iq>"
        )
        #expect(Self.changes(harness).isEmpty)
        let roster = try #require(harness.told(code: "roster").first?.record)
        #expect(roster.details?["contacts"] == .strings(["romeo@example.net both", "nurse@example.net pending out"]))
        harness.recv("<presence from='nurse@example.net' type='unsubscribed'/>")
        harness.recv("<presence from='romeo@example.net/x' type='unsubscribe'/>")
        #expect(
            Self.changes(harness) == ["nurse@example.net: pending out → none", "romeo@example.net: both → to"]
        )
    }

    @Test func `the state of a contact is unknown until a roster has shown it`() throws {
        func change(_ kind: String, isSent: Bool, roster: String? = nil) -> String? {
            var harness = Self.open()
            if let roster {
                harness.send("<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>")
                harness.recv("<iq type='result' id='r'>\(roster)</iq>")
            }
            let contact = "='romeo@example.net' type='\(kind)'/>"
            if isSent { harness.send("<presence to\(contact)") } else { harness.recv("<presence from\(contact)") }
            return Self.changes(harness).first
        }
        for (kind, isSent, after) in [
            ("subscribe", true, "pending out (from unknown)"), ("unsubscribe", true, "not to (from unknown)"),
            ("unsubscribed", true, "not from (to unknown)"), ("subscribe", false, "pending in (to unknown)"),
            ("unsubscribe", false, "not from (to unknown)"), ("subscribed", false, "to (from unknown)"),
            ("unsubscribed", false, "not to (from unknown)"),
        ] {
            #expect(change(kind, isSent: isSent) == "romeo@example.net: unknown → \(after)")
        }
        // An approval before any request changes nothing (RFC 6121 §3.4).
        #expect(change("subscribed", isSent: true) == "romeo@example.net: unknown as before")
        // A whole roster shows that a contact is not in it. An unchanged versioned roster is sent without its contents
        // (RFC 6121 §2.6).
        let others = "<query xmlns='jabber:iq:roster'><item jid='nurse@example.net' subscription='both'/></query>"
        #expect(change("subscribe", isSent: true, roster: others) == "romeo@example.net: none → pending out")
        #expect(
            change("subscribe", isSent: true, roster: "") == "romeo@example.net: unknown → pending out (from unknown)"
        )
    }

    @Test func `a roster from another address is ignored`() {
        var harness = Self.open()
        harness.send("<iq type='get' id='r' to='gateway.example.net'><query xmlns='jabber:iq:roster'/></iq>")
        harness.recv("<iq type='result' id='r' from='gateway.example.net'><query xmlns='jabber:iq:roster'/></iq>")
        harness.recv(Self.push(1, "subscription='both'").replacing("<iq ", with: "<iq from='mallory@example.com' "))
        harness.send("<presence to='romeo@example.net' type='subscribe'/>")
        #expect(Self.changes(harness) == ["romeo@example.net: unknown → pending out (from unknown)"])
        harness.recv(
            Self.push(2, "subscription='both'").replacing("<iq ", with: "<iq from='juliet@example.org' ")
        )
        #expect(Self.changes(harness).last == "romeo@example.net: pending out (from unknown) → both")
    }

    @Test func `other presence and roster requests are not recorded as changes`() {
        var harness = Self.open()
        for type in ["unavailable", "probe", "error", "nonsense"] {
            harness.recv("<presence from='romeo@example.net' type='\(type)'/>")
        }
        harness.send("<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='a@b'/></query></iq>")
        harness.send("<presence type='subscribe'/>")
        #expect(Self.changes(harness).isEmpty)
    }

    @Test func `a complete roster reports changes and makes the states of other contacts known`() throws {
        func query(_ items: String) throws -> Element {
            let text = "<query xmlns='jabber:iq:roster'>\(items)</query>"
            return try StanzaParser().parse(Array(text.utf8).span, root: [])
        }
        var roster = Roster()
        #expect(roster.observe(.subscribe, .send, contact: "a@b").before == .unknown)
        let shown = try roster.observe(query("<item jid='c@d' subscription='both'/><item/>"), isPush: false)
        #expect(shown.map(\.contact) == ["c@d"])
        #expect(roster.observe(.subscribe, .send, contact: "e@f").before == SubscriptionState())
        let removed = try roster.observe(query("<item jid='c@d' subscription='remove'/>"), isPush: true)
        #expect(removed.count == 1 && removed[0].after == nil)
    }

    @Test func `the size of a roster is limited`() {
        var roster = Roster()
        for number in 0..<(Roster.capacity + 5) {
            _ = roster.observe(.subscribe, .recv, contact: "\(number)@example.net")
        }
        #expect(roster.observe(.subscribe, .recv, contact: "1@example.net").before.isPendingIn)
        #expect(!roster.observe(.subscribe, .recv, contact: "\(Roster.capacity + 1)@example.net").before.isPendingIn)
    }

    private static func roster(_ items: String) throws -> Element {
        let text = "<query xmlns='jabber:iq:roster'>\(items)</query>"
        return try StanzaParser().parse(Array(text.utf8).span, root: [])
    }

    @Test func `presence from strangers does not make the roster incomplete`() throws {
        var roster = Roster()
        _ = try roster.observe(Self.roster("<item jid='c@d' subscription='both'/>"), isPush: false)
        for number in 0..<(Roster.capacity + 5) {
            _ = roster.observe(.unsubscribe, .recv, contact: "\(number)@example.net")
        }
        #expect(roster.contacts.count == 1)
        for number in 0..<(Roster.capacity + 5) {
            _ = roster.observe(.subscribe, .recv, contact: "\(number)@example.net")
        }
        #expect(roster.observe(.subscribe, .send, contact: "e@f").before == SubscriptionState())
    }

    @Test func `a contact is kept without its groups if they exceed the limit`() throws {
        var roster = Roster()
        func item(_ group: String) -> String {
            "<item jid='c@d' subscription='both'><group>\(group)</group></item>"
        }
        _ = try roster.observe(Self.roster(item("Friends")), isPush: false, keepsGroups: true)
        #expect(roster.groups(of: "c@d") == ["Friends"])
        let long = String(repeating: "x", count: Roster.byteCapacity)
        _ = try roster.observe(Self.roster(item(long)), isPush: true, keepsGroups: true)
        #expect(roster.contacts["c@d"]?.state == .both && roster.groups(of: "c@d").isEmpty)
        #expect(roster.byteCount == 3)
    }

    @Test func `the bytes of a roster are limited, also for long addresses`() throws {
        var roster = Roster()
        let long = String(repeating: "x", count: 60_000)
        for number in 0..<100 { _ = roster.observe(.subscribe, .send, contact: "\(number)@\(long)") }
        #expect(roster.byteCount > Roster.byteCapacity / 2 && roster.byteCount <= Roster.byteCapacity)
        #expect(roster.observe(.subscribe, .send, contact: "1@\(long)").before.isPendingOut)
        #expect(!roster.observe(.subscribe, .send, contact: "99@\(long)").before.isPendingOut)

        // Removed contacts free their space.
        let before = roster.byteCount
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(
            Array(
                ("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
                    + "<query xmlns='jabber:iq:roster'><item jid='1@\(long)' subscription='remove'/></query>").utf8
            ).span
        )
        _ = decoder.next()
        _ = decoder.next()
        #expect(roster.observe(try StanzaParser().parse(decoder), isPush: true).count == 1)
        #expect(roster.byteCount == before - long.utf8.count - 2)
    }

    @Test func `A roster push with too many items causes a limited number of records`() {
        var harness = SessionHarness(options: SessionOptions(level: .info))
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let records = harness.told.count
        let items = (0..<1000).map { "<item jid='\($0)@example.net' subscription='both'/>" }.joined()
        harness.recv("<iq type='set' id='p'><query xmlns='jabber:iq:roster'>\(items)</query></iq>")
        #expect(harness.told(code: Record.Code.subscription).count == RosterObserver.maximumPushedChanges)
        #expect(harness.told(code: "roster-push-items").count == 1)
        #expect(harness.told.count == records + RosterObserver.maximumPushedChanges + 2)
        // All contacts are known, including those whose changes were not logged.
        harness.send("<presence type='unsubscribed' to='999@example.net'/>")
        #expect(harness.told.last?.record.messageText == "999@example.net: both → to")
    }
}
