package import TapRecord

/// Complete conversations for the tests of all modules: the data of the client and of the server, in turn.
package enum Conversations {
    /// The data that one side sends in one turn.
    package typealias Turn = (direction: Direction, text: String)

    private static func header(_ direction: Direction, id: String? = nil, content: String = "jabber:client") -> String {
        let address = direction == .send ? "to='example.org'" : "from='example.org' id='\(id ?? "")'"
        return "<?xml version='1.0'?><stream:stream xmlns='\(content)' xmlns:stream='http://etherx.jabber.org/streams' "
            + "\(address) version='1.0'>"
    }

    /// A login with SASL PLAIN, resource binding, a roster request, a message in each direction, and a regular end.
    package static let plainLogin: [Turn] = [
        (.send, header(.send)),
        (.recv, header(.recv, id: "s1")),
        (
            .recv,
            "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism>"
                + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        ),
        (.send, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldABSMG0zMG15cjBtMzA=</auth>"),
        (.recv, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
        (.send, header(.send)),
        (.recv, header(.recv, id: "s2")),
        (
            .recv,
            "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
                + "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session></stream:features>"
        ),
        (
            .send,
            "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>balcony</resource></bind></iq>"
        ),
        (
            .recv,
            "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>juliet@example.org/balcony</jid></bind></iq>"
        ),
        (.send, "<iq type='get' id='r1'><query xmlns='jabber:iq:roster'/></iq>"),
        (.recv, "<iq type='result' id='r1' to='juliet@example.org/balcony'><query xmlns='jabber:iq:roster'/></iq>"),
        (.send, "<presence/> "),
        (
            .send,
            "<message to='romeo@example.net' type='chat' id='m1'><body>Wherefore art thou? \u{1F339} &amp;c</body></message>"
        ),
        (
            .recv,
            "<message from='romeo@example.net/orchard' to='juliet@example.org' type='chat'><body>Call me but love</body>"
                + "</message>"
        ),
        (.send, "</stream:stream>"),
        (.recv, "</stream:stream>"),
    ]

    /// STARTTLS up to the server's `<proceed/>`; TLS follows.
    package static let startTLS: [Turn] = [
        (.send, header(.send)),
        (.recv, header(.recv, id: "t1")),
        (
            .recv,
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"
        ),
        (.send, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
        (.recv, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
    ]

    /// Legacy authentication on a stream without a version (XEP-0078).
    package static let legacyLogin: [Turn] = [
        (
            .send,
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org'>"
        ),
        (
            .recv,
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='3EE948B0'>"
        ),
        (.send, "<iq type='get' id='a1'><query xmlns='jabber:iq:auth'><username>bill</username></query></iq>"),
        (
            .recv,
            "<iq type='result' id='a1'><query xmlns='jabber:iq:auth'><username/><password/><digest/><resource/></query></iq>"
        ),
        (
            .send,
            "<iq type='set' id='a2'><query xmlns='jabber:iq:auth'><username>bill</username>"
                + "<digest>48fc78be9ec8f86d8ce1c39c320c97c21d62334d</digest><resource>globe</resource></query></iq>"
        ),
        (.recv, "<iq type='result' id='a2'/>"),
        (.send, "<presence/>"),
    ]

    /// A component's handshake (XEP-0114).
    package static let component: [Turn] = [
        (
            .send,
            "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='plays.example.org'>"
        ),
        (
            .recv,
            "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' "
                + "from='plays.example.org' id='3BF96D32'>"
        ),
        (.send, "<handshake>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>"),
        (.recv, "<handshake/>"),
        (.recv, "<message from='juliet@example.org' to='plays.example.org'><body>Hi</body></message>"),
    ]

    /// SASL2 with Bind 2 (XEP-0388, XEP-0386). The client knows the features already, and authenticates directly after
    /// its stream header.
    package static let sasl2: [Turn] = [
        (
            .send,
            header(.send)
                + "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>AGp1bGlldABSMG0zMG15cjBtMzA=</initial-response>"
                + "<bind xmlns='urn:xmpp:bind:0'><tag>balcony</tag></bind></authenticate>"
        ),
        (.recv, header(.recv, id: "n1")),
        (
            .recv,
            "<stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>"
                + "<bind xmlns='urn:xmpp:bind:0'/></inline></authentication></stream:features>"
        ),
        (
            .recv,
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/balcony.1</authorization-identifier>"
                + "<bound xmlns='urn:xmpp:bind:0'/></success><stream:features/>"
        ),
        (.send, "<presence/>"),
    ]

    /// Returns all bytes of a conversation in one direction.
    package static func bytes(_ turns: [Turn], _ direction: Direction) -> [UInt8] {
        turns.filter { $0.direction == direction }.flatMap { Array($0.text.utf8) }
    }
}

extension Conversations {
    /// Returns all text of a conversation in one direction.
    package static func text(_ turns: [Turn], _ direction: Direction) -> String {
        turns.filter { $0.direction == direction }.map(\.text).joined()
    }
}

extension SessionHarness {
    /// Returns the data that was forwarded in a direction, as text.
    package func text(_ direction: Direction) -> String {
        String(decoding: direction == .send ? toServer : toClient, as: UTF8.self)
    }

    /// Passes a whole conversation to the session, each turn in pieces of at most `piece` bytes.
    package mutating func say(_ turns: [Conversations.Turn], piece: Int = .max) {
        for turn in turns {
            let bytes = Array(turn.text.utf8)
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + min(piece, bytes.count))
                receive(turn.direction, Array(bytes[start..<end]))
                start = end
            }
        }
    }
}
