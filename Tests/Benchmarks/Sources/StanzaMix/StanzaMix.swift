/// The stanzas of all measurements: generated, equal in each run, with the shares that a busy client exchanges.
public struct StanzaMix: Sendable {
    /// A stream header, followed by the stanzas.
    public private(set) var stream = Array(
        ("<?xml version='1.0'?><stream:stream xmlns='jabber:client' "
            + "xmlns:stream='http://etherx.jabber.org/streams' from='garden.example' id='s1' version='1.0'>").utf8
    )
    /// The range of each stanza in the stream.
    public private(set) var stanzas: [Range<Int>] = []
    /// Number of bytes of the header.
    public let headerCount: Int

    private var random = Random(state: 0x5EED)

    /// Creates the ordinary mix, or stanzas that each contain a secret; `withSender: false` omits the senders, as
    /// clients do.
    public init(count: Int, ofSecrets: Bool = false, withSender: Bool = true) {
        headerCount = stream.count
        for index in 0..<count {
            let start = stream.count
            var stanza = ofSecrets ? secret(index) : ordinary(index)
            if !withSender, let sender = stanza.firstRange(of: " from='"),
                let end = stanza[sender.upperBound...].firstIndex(of: "'")
            {
                stanza.removeSubrange(sender.lowerBound...end)
            }
            stream += stanza.utf8
            stanzas.append(start..<stream.count)
        }
    }

    // MARK: What there is

    private mutating func ordinary(_ index: Int) -> String {
        switch index % 25 {
        case 0, 2, 4, 7, 9, 11, 13, 16, 18, 20, 22: chat(index)
        case 1, 8, 14, 21: presence()
        case 3, 10, 17: roomMessage(index)
        case 5: "<iq from='\(full())' to='garden.example' type='get' id='p\(index)'><ping xmlns='urn:xmpp:ping'/></iq>"
        case 6: "<iq from='garden.example' to='\(full())' type='result' id='r\(index)'/>"
        case 12: chatState()
        case 15: receipt(index)
        case 19: roomPresence()
        case 23: index % 50 < 25 ? roster(index) : discovery(index)
        default: index % 100 < 25 ? avatar(index) : chat(index)
        }
    }

    private mutating func chat(_ index: Int) -> String {
        let id = token(32)
        return
            "<message from='\(full())' to='\(full())' type='chat' id='\(id)' xml:lang='en'><body>\(text(6 + index % 9))"
            + "</body><active xmlns='http://jabber.org/protocol/chatstates'/><request xmlns='urn:xmpp:receipts'/>"
            + "<origin-id xmlns='urn:xmpp:sid:0' id='\(id)'/></message>"
    }

    private mutating func chatState() -> String {
        "<message from='\(full())' to='\(full())' type='chat' id='\(token(16))'>"
            + "<composing xmlns='http://jabber.org/protocol/chatstates'/></message>"
    }

    private mutating func receipt(_ index: Int) -> String {
        "<message from='\(full())' to='\(full())' id='m\(index)'><received xmlns='urn:xmpp:receipts' id='\(token(32))'/>"
            + "</message>"
    }

    private mutating func presence() -> String {
        "<presence from='\(full())' to='\(bare())'><show>away</show><status>\(text(2))</status><priority>5</priority>"
            + "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='https://client.example' ver='\(token(27))='/>"
            + "<x xmlns='vcard-temp:x:update'><photo>\(token(40))</photo></x></presence>"
    }

    private mutating func roomMessage(_ index: Int) -> String {
        "<message from='roses@rooms.garden.example/\(name())' to='\(full())' type='groupchat' id='\(token(32))'>"
            + "<body>\(text(8 + index % 17))</body><stanza-id xmlns='urn:xmpp:sid:0' by='roses@rooms.garden.example' "
            + "id='\(token(32))'/><occupant-id xmlns='urn:xmpp:occupant-id:0' id='\(token(32))'/></message>"
    }

    private mutating func roomPresence() -> String {
        "<presence from='roses@rooms.garden.example/\(name())' to='\(full())'>"
            + "<x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='member' role='participant' "
            + "jid='\(full())'/><status code='110'/></x></presence>"
    }

    private mutating func roster(_ index: Int) -> String {
        var items = ""
        for _ in 0..<12 {
            items += "<item jid='\(bare())' name='\(name())' subscription='both'><group>Bees</group></item>"
        }
        return
            "<iq to='\(full())' type='result' id='q\(index)'><query xmlns='jabber:iq:roster' ver='7'>\(items)</query></iq>"
    }

    private mutating func discovery(_ index: Int) -> String {
        var features = ""
        for word in ["urn:xmpp:ping", "jabber:iq:version", "urn:xmpp:carbons:2", "urn:xmpp:mam:2", "urn:xmpp:jingle:1"]
        {
            features += "<feature var='\(word)'/>"
        }
        return "<iq from='\(full())' to='\(full())' type='result' id='d\(index)'>"
            + "<query xmlns='http://jabber.org/protocol/disco#info'><identity category='client' type='pc' name='Trowel'/>"
            + "\(features)</query></iq>"
    }

    private mutating func avatar(_ index: Int) -> String {
        "<message from='\(bare())' to='\(full())' type='headline' id='a\(index)'>"
            + "<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='urn:xmpp:avatar:data'>"
            + "<item id='\(token(40))'><data xmlns='urn:xmpp:avatar:data'>\(token(6000))</data></item></items></event>"
            + "</message>"
    }

    private mutating func secret(_ index: Int) -> String {
        switch index % 3 {
        case 0:
            "<iq type='set' id='g\(index)'><query xmlns='jabber:iq:register'><username>\(name())</username>"
                + "<password>\(token(12))</password></query></iq>"
        case 1:
            "<presence to='roses@rooms.garden.example/\(name())'><x xmlns='http://jabber.org/protocol/muc'>"
                + "<password>\(token(8))</password></x></presence>"
        default:
            "<iq type='set' id='h\(index)'><enable xmlns='urn:xmpp:push:0' jid='push.garden.example' node='n'>"
                + "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'>"
                + "<value>http://jabber.org/protocol/pubsub#publish-options</value></field>"
                + "<field var='secret'><value>\(token(24))</value></field></x></enable></iq>"
        }
    }

    // MARK: Contents

    private static let names = ["ash", "birch", "cedar", "dogwood", "elder", "fir", "gorse", "hazel"]
    private static let resources = ["shed", "greenhouse", "phone.41c9", "Laptop", "gate-02"]
    private static let words = [
        "water", "the", "roses", "before", "noon", "and", "mind", "süße", "Bienen", "наш", "сад", "庭", "🌱", "&amp;",
        "it", "was", "dry", "again", "so", "I", "&lt;3", "moved", "them", "nearer", "to", "well", "…",
    ]

    private mutating func name() -> String { Self.names[random.below(Self.names.count)] }
    private mutating func bare() -> String { name() + (random.below(2) == 0 ? "@garden.example" : "@orchard.example") }
    private mutating func full() -> String { bare() + "/" + Self.resources[random.below(Self.resources.count)] }

    private mutating func text(_ count: Int) -> String {
        var text = Self.words[random.below(Self.words.count)]
        for _ in 1..<max(count, 1) { text += " " + Self.words[random.below(Self.words.count)] }
        return text
    }

    private mutating func token(_ count: Int) -> String {
        let digits = Array("0123456789abcdef")
        var token = ""
        for _ in 0..<count { token.append(digits[random.below(16)]) }
        return token
    }

    /// The random number generator SplitMix64.
    private struct Random: Sendable {
        var state: UInt64

        mutating func below(_ bound: Int) -> Int {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
        }
    }
}
