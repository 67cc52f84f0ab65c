import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct SummaryTests {
    @Test(arguments: [
        // RFC 6121
        ("<message type='chat'><body>Ay me!</body></message>", "body 6 B"),
        ("<message><subject>News</subject><body>ä&amp;</body><thread>t</thread></message>", "subject 4 B, body 3 B"),
        ("<presence/>", "available"),
        ("<presence><show></show><status></status><priority/></presence>", "available"),
        (
            "<presence><show>dnd</show><status>busy</status><priority>5</priority></presence>",
            "available, dnd, status 4 B, priority 5"
        ),
        ("<presence type='unavailable'/>", "no longer available"),
        ("<presence type='subscribe' to='a@b'/>", "asks to subscribe"),
        ("<presence type='subscribed' to='a@b'/>", "approves the subscription"),
        ("<presence type='unsubscribe' to='a@b'/>", "unsubscribes"),
        ("<presence type='unsubscribed' to='a@b'/>", "denies or cancels the subscription"),
        ("<presence type='probe' to='a@b'/>", "asks for presence"),
        ("<presence type='strange'/>", "strange"),
        ("<iq type='get'><query xmlns='jabber:iq:roster'/></iq>", "asks for the roster"),
        ("<iq type='get'><query xmlns='jabber:iq:roster' ver=''/></iq>", "asks for the roster"),
        ("<iq type='get'><query xmlns='jabber:iq:roster' ver='7'/></iq>", "asks for changes to the roster"),
        ("<iq type='result'><query xmlns='jabber:iq:roster'/></iq>", "roster: no contacts"),
        (
            "<iq type='result'><query xmlns='jabber:iq:roster'><item jid='a@b'/><item jid='c@d'/><item jid='e@f'/><item jid='g@h'/></query></iq>",
            "roster: 4 contacts: a@b, c@d, e@f, …"
        ),
        (
            "<iq type='set'><query xmlns='jabber:iq:roster'><item jid='a@b' name='A'><group>G</group></item></query></iq>",
            "sets contact a@b, in 1 group"
        ),
        (
            "<iq type='set'><query xmlns='jabber:iq:roster'><item jid='a@b' subscription='remove'/></query></iq>",
            "removes contact a@b"
        ),
        (
            "<iq type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>",
            "binds a resource: r"
        ),
        (
            "<iq type='result'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>a@b/c</jid></bind></iq>",
            "bound to a@b/c"
        ),
        // XEP-0199, 0092, 0202, 0012
        ("<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>", "ping"),
        ("<iq type='get'><query xmlns='jabber:iq:version'/></iq>", "asks for its version"),
        (
            "<iq type='result'><query xmlns='jabber:iq:version'><name>X</name><version>1</version><os>L</os></query></iq>",
            "version X 1 on L"
        ),
        (
            "<iq type='result'><time xmlns='urn:xmpp:time'><tzo>Z</tzo><utc>2026-01-01T00:00:00Z</utc></time></iq>",
            "time 2026-01-01T00:00:00Z at Z"
        ),
        ("<iq type='result'><query xmlns='jabber:iq:last' seconds='903'/></iq>", "last active 903 s ago"),
        // XEP-0085, 0184, 0333, 0308, 0444
        ("<message><composing xmlns='http://jabber.org/protocol/chatstates'/></message>", "is typing"),
        ("<message><gone xmlns='http://jabber.org/protocol/chatstates'/></message>", "gone"),
        (
            "<message><body>x</body><request xmlns='urn:xmpp:receipts'/><origin-id xmlns='urn:xmpp:sid:0' id='1'/></message>",
            "body 1 B, receipt requested"
        ),
        (
            "<message><received xmlns='urn:xmpp:receipts' id='m1'/><store xmlns='urn:xmpp:hints'/></message>",
            "receipt for m1"
        ),
        ("<message><store xmlns='urn:xmpp:hints'/></message>", "{urn:xmpp:hints}store"),
        ("<message><displayed xmlns='urn:xmpp:chat-markers:0' id='m1'/></message>", "marks m1 as displayed"),
        (
            "<message><body>x</body><replace xmlns='urn:xmpp:message-correct:0' id='m1'/></message>",
            "body 1 B, corrects m1"
        ),
        (
            "<message><reactions xmlns='urn:xmpp:reactions:0' id='m1'><reaction>a</reaction></reactions></message>",
            "1 reaction to m1"
        ),
        // XEP-0030, 0215
        (
            "<iq type='get'><query xmlns='http://jabber.org/protocol/disco#info' node='n'/></iq>",
            "asks for identity and features, node n"
        ),
        (
            "<iq type='result'><query xmlns='http://jabber.org/protocol/disco#info'><identity category='server' type='im'/><feature var='a'/></query></iq>",
            "is server/im, 1 feature"
        ),
        (
            "<iq type='result'><query xmlns='http://jabber.org/protocol/disco#items'><item jid='a.b'/></query></iq>",
            "has 1 item: a.b"
        ),
        // XEP-0280, 0313
        ("<iq type='set'><enable xmlns='urn:xmpp:carbons:2'/></iq>", "enables carbons"),
        (
            "<message><sent xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' to='c@d' type='chat'><body>hi</body></message></forwarded></sent></message>",
            "carbon, sent: message chat → c@d: body 2 B"
        ),
        (
            "<iq type='set'><query xmlns='urn:xmpp:mam:2'><x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>urn:xmpp:mam:2</value></field><field var='with'><value>a@b</value></field></x><set xmlns='http://jabber.org/protocol/rsm'><max>50</max><before/></set></query></iq>",
            "queries the archive, with a@b, at most 50, the last page"
        ),
        (
            "<iq type='result'><fin xmlns='urn:xmpp:mam:2' complete='true'><set xmlns='http://jabber.org/protocol/rsm'><last>z</last><count>9</count></set></fin></iq>",
            "end of the archive's page, complete, 9 in all, up to z"
        ),
        // XEP-0191, 0363, 0352, 0198
        ("<iq type='set'><block xmlns='urn:xmpp:blocking'><item jid='a@b'/></block></iq>", "blocks 1 address: a@b"),
        ("<iq type='set'><unblock xmlns='urn:xmpp:blocking'/></iq>", "unblocks all"),
        (
            "<iq type='get'><request xmlns='urn:xmpp:http:upload:0' filename='a.jpg' size='23456' content-type='image/jpeg'/></iq>",
            "asks for an upload slot: a.jpg image/jpeg 23 kB"
        ),
        ("<inactive xmlns='urn:xmpp:csi:0'/>", "the client is inactive"),
        ("<r xmlns='urn:xmpp:sm:3'/>", "requests an acknowledgement"),
        ("<a xmlns='urn:xmpp:sm:3' h='1'/>", "1 stanza handled"),
        (
            "<enable xmlns='urn:xmpp:sm:3' resume='true' max='300'/>",
            "enables stream management, resumable within 300 s"
        ),
        (
            "<failed xmlns='urn:xmpp:sm:3' h='7'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>",
            "stream management failed: item-not-found, 7 stanzas handled"
        ),
        // XEP-0384, 0166, 0353
        (
            "<message><encrypted xmlns='eu.siacs.conversations.axolotl'><header sid='9'><key rid='1'>a</key><key rid='2'>b</key><iv>c</iv></header><payload>abcd</payload></encrypted></message>",
            "OMEMO message from device 9, 2 keys, 4 B"
        ),
        (
            "<iq type='set'><jingle xmlns='urn:xmpp:jingle:1' action='session-initiate' sid='s'><content creator='initiator' name='voice'><description xmlns='urn:xmpp:jingle:apps:rtp:1' media='audio'><payload-type id='0'/></description><transport xmlns='urn:xmpp:jingle:transports:ice-udp:1'><candidate/></transport></content></jingle></iq>",
            "Jingle session-initiate s, voice audio, 1 codec by ice-udp with 1 candidate"
        ),
        (
            "<message><propose xmlns='urn:xmpp:jingle-message:0' id='i'><description xmlns='urn:xmpp:jingle:apps:rtp:1' media='video'/></propose></message>",
            "call: propose i video"
        ),
        // XEP-0004, 0050, 0077
        ("<message><x xmlns='jabber:x:data' type='form'><field var='a'/></x></message>", "form, 1 field"),
        (
            "<iq type='set'><command xmlns='http://jabber.org/protocol/commands' node='n' action='execute'/></iq>",
            "command n, execute"
        ),
        ("<iq type='get'><query xmlns='jabber:iq:register'/></iq>", "asks how to register"),
        (
            "<iq type='result'><prefs xmlns='urn:xmpp:mam:2' default='always'/></iq>",
            "archive preferences: default always"
        ),
        (
            "<iq type='result'><query xmlns='urn:xmpp:mam:2'><x xmlns='jabber:x:data'><field var='with'/></x></query></iq>",
            "the archive can be searched by 1 field"
        ),
        ("<iq type='get'><query xmlns='jabber:iq:privacy'/></iq>", "asks for privacy lists"),
        ("<iq type='result'><query xmlns='jabber:iq:privacy'/></iq>", "privacy lists"),
        (
            "<iq type='get'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'/></query></iq>",
            "asks for private XML: bookmarks"
        ),
        (
            "<iq type='result'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'/></query></iq>",
            "no bookmarks"
        ),
        ("<iq type='result'><vCard xmlns='vcard-temp'/></iq>", "empty vCard"),
        ("<iq type='set'><session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>", "requests a session"),
        (
            "<message><body>x</body><encryption xmlns='urn:xmpp:eme:0' namespace='eu.siacs.conversations.axolotl'/></message>",
            "body 1 B, encrypted by OMEMO"
        ),
        (
            "<message><encryption xmlns='urn:xmpp:eme:0' namespace='urn:own' name='Own'/></message>",
            "encrypted by Own"
        ),
        (
            "<message><apply-to xmlns='urn:xmpp:fasten:0' id='m2'><retract xmlns='urn:xmpp:message-retract:0'/></apply-to></message>",
            "applies to m2: retracts"
        ),
        ("<message><attention xmlns='urn:xmpp:attention:0'/></message>", "asks for attention"),
        (
            "<resume xmlns='urn:xmpp:sm:3' h='11' previd='[redacted:sm-id#25]'/>",
            "requests resumption of session [redacted:sm-id#25], 11 stanzas handled"
        ),
        // Unknown namespaces and requests without content
        ("<iq type='set'><query xmlns='urn:example:own'/></iq>", "{urn:example:own}query"),
        ("<presence><x xmlns='urn:example:own'/></presence>", "available, {urn:example:own}x"),
        ("<iq type='result'/>", "ok"), ("<iq type='set'/>", nil),
    ])
    func aStanzaIsToldInWords(stanza: String, words: String?) {
        #expect(Told.words(stanza) == [words])
    }

    @Test(arguments: [
        (
            "<presence to='r@m/n'><x xmlns='http://jabber.org/protocol/muc'><password>[redacted:password#1]</password></x></presence>",
            "joins the room with a password"
        ),
        (
            "<presence><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='member' role='participant' jid='a@b/c'/></x></presence>",
            "in the room: member, participant, really a@b/c"
        ),
        (
            "<presence><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='owner' role='moderator'/><status code='110'/><status code='201'/></x></presence>",
            "in the room: owner, moderator, your own presence (110), room created (201)"
        ),
        (
            "<presence type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none' role='none' nick='new'/><status code='303'/></x></presence>",
            "changes nickname to new"
        ),
        (
            "<presence type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none' role='none'><actor nick='F'/></item><status code='307'/></x></presence>",
            "kicked out of the room (307) by F"
        ),
        (
            "<presence type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'><status code='999'/></x></presence>",
            "leaves the room, status (999)"
        ),
        (
            "<presence><x xmlns='vcard-temp:x:update'><photo/></x><x xmlns='http://jabber.org/protocol/muc#user'><item role='visitor'/></x></presence>",
            "in the room: visitor, no avatar"
        ),
        (
            "<presence type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='outcast' role='none'><actor jid='a@b'/></item><status code='301'/><status code='110'/></x></presence>",
            "banned from the room (301) by a@b, your own presence (110)"
        ),
        (
            "<presence type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'><item role='none'/><status code='303'/></x></presence>",
            "changes nickname to another (303)"
        ),
        (
            "<message><x xmlns='http://jabber.org/protocol/muc#user'><item jid='a@b' affiliation='member'/></x></message>",
            "a@b has affiliation member"
        ),
        (
            "<message><x xmlns='http://jabber.org/protocol/muc#user'><item jid='a@b' affiliation='outcast'/><status code='301'/></x></message>",
            "a@b has affiliation outcast, banned (301)"
        ),
        ("<message type='groupchat'><subject>Fire</subject></message>", "subject of the room 4 B"),
        ("<message type='groupchat'><subject/></message>", "the room has no subject"),
        (
            "<message><x xmlns='http://jabber.org/protocol/muc#user'><invite from='a@b'/></x></message>",
            "invitation from a@b"
        ),
        (
            "<iq type='set'><query xmlns='http://jabber.org/protocol/muc#admin'><item nick='p' role='none'/></query></iq>",
            "kicks p"
        ),
        (
            "<iq type='set'><query xmlns='http://jabber.org/protocol/muc#admin'><item jid='a@b' affiliation='outcast'/><item nick='p' role='moderator'/></query></iq>",
            "bans a@b, gives p role moderator"
        ),
        (
            "<iq type='get'><query xmlns='http://jabber.org/protocol/muc#admin'><item affiliation='member'/></query></iq>",
            "asks for users with affiliation member"
        ),
        (
            "<iq type='set'><query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'/></query></iq>",
            "accepts the room's default settings"
        ),
        ("<message><x xmlns='jabber:x:conference' jid='r@m'/></message>", "invites to r@m"),
    ])
    func `stanzas of rooms are summarized`(stanza: String, words: String) {
        #expect(Told.words(stanza) == [words])
    }

    @Test(arguments: [
        (
            "<iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:avatar:metadata'><item id='h'><metadata xmlns='urn:xmpp:avatar:metadata'><info bytes='12345' id='h' type='image/png' width='64' height='64'/></metadata></item></publish></pubsub></iq>",
            "publishes avatar image/png 12 kB 64×64 (urn:xmpp:avatar:metadata)"
        ),
        (
            "<iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:avatar:data'><item id='h'><data xmlns='urn:xmpp:avatar:data'>iVBORw0KGgo=</data></item></publish></pubsub></iq>",
            "publishes avatar data 8 B (urn:xmpp:avatar:data)"
        ),
        (
            "<message><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='urn:xmpp:avatar:metadata'><item id='h'><metadata xmlns='urn:xmpp:avatar:metadata'/></item></items></event></message>",
            "no avatar (urn:xmpp:avatar:metadata)"
        ),
        (
            "<message><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><retract id='h'/></items></event></message>",
            "1 item retracted from n"
        ),
        (
            "<message><event xmlns='http://jabber.org/protocol/pubsub#event'><delete node='n'/></event></message>",
            "node n deleted"
        ),
        (
            "<iq type='get'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n' max_items='2'/></pubsub></iq>",
            "asks for items, at most 2 of n"
        ),
        (
            "<iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='n' jid='a@b'/></pubsub></iq>",
            "subscribes to n as a@b"
        ),
        (
            "<iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='n'/></pubsub></iq>",
            "deletes n"
        ),
        (
            "<iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:bookmarks:1'><item id='r@m'><conference xmlns='urn:xmpp:bookmarks:1' autojoin='true'><nick>J</nick></conference></item></publish></pubsub></iq>",
            "publishes bookmark as J, joined at login (urn:xmpp:bookmarks:1)"
        ),
        (
            "<iq type='set'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'><conference jid='r@m'/></storage></query></iq>",
            "stores private XML: 1 bookmark: r@m"
        ),
        (
            "<iq type='result'><vCard xmlns='vcard-temp'><PHOTO><TYPE>image/png</TYPE><BINVAL>iVBORw0KGgo=</BINVAL></PHOTO></vCard></iq>",
            "vCard, photo image/png 8 B"
        ),
    ])
    func `published items are summarized`(stanza: String, words: String) {
        #expect(Told.words(stanza) == [words])
    }

    @Test func `the summary of an error includes the request`() {
        let error =
            "<error type='cancel' by='r@m'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
        let context = Summary.Context(direction: .recv, request: "asks for the roster")
        #expect(
            Told.words("<iq type='error'>\(error)</iq>", context) == ["refused by r@m: asks for the roster"]
        )
        #expect(
            Told.words("<iq type='error'><query xmlns='urn:q'/>\(error)</iq>") == [
                "refused by r@m: {urn:q}query"
            ]
        )
        #expect(
            Told.words("<presence type='error'><x xmlns='http://jabber.org/protocol/muc'/>\(error)</presence>")
                == ["refused by r@m, could not join the room"]
        )
        #expect(
            Told.words("<message type='error'><body>x</body>\(error)</message>") == [
                "undelivered by r@m, body 1 B"
            ]
        )
        // The error type is shown if it is not the usual type for the condition.
        #expect(
            Told.words("<iq type='error'>\(error.replacing("'cancel'", with: "'wait'"))</iq>", context) == [
                "refused (wait) by r@m: asks for the roster"
            ]
        )
        #expect(Told.words("<iq type='result'/>", context) == ["ok: asks for the roster"])
    }

    @Test func `pushes are summarized from the server's point of view`() {
        let push =
            "<iq type='set'><query xmlns='jabber:iq:roster'><item jid='a@b' subscription='none' ask='subscribe'/></query></iq>"
        #expect(Told.words(push, .init(direction: .recv)) == ["roster push: a@b, subscription none, request pending"])
        let answer = Told.words("<iq type='result'><query xmlns='jabber:iq:roster'/></iq>", .init(direction: .send))
        #expect(answer == ["ok"])
        let blocked = "<iq type='set'><unblock xmlns='urn:xmpp:blocking'><item jid='a@b'/></unblock></iq>"
        #expect(Told.words(blocked, .init(direction: .recv)) == ["blocklist push: unblocks 1 address: a@b"])
        #expect(Told.words(blocked, .init(direction: .send)) == ["unblocks 1 address: a@b"])
    }

    @Test func `the size of a redacted text is taken from its placeholder`() {
        #expect(Told.words("<message><body>[redacted:body-42#1]</body></message>") == ["body redacted 42 B"])
        #expect(Told.words("<message><body>[redacted:body#1]</body></message>") == ["body redacted"])
        #expect(Told.words("<message><body>[redacted: or so he says]</body></message>") == ["body 25 B"])
    }

    @Test(arguments: [
        "<message><body>Ay me!</body></message>", "<message type='chat' id='1'><body>ä é 🌹</body></message>",
        "<message><body/></message>", "<message><body></body></message>", "<message><body>a&amp;b</body></message>",
        "<message><body>[redacted:body-42#1]</body></message>", "<message><body>a<![CDATA[b]]></body></message>",
        "<message><body xml:lang='de'>a</body></message>",
        "<message><body>a</body><body xml:lang='de'>b</body></message>",
        "<message><composing xmlns='http://jabber.org/protocol/chatstates'/></message>",
        "<message><composing xmlns='http://jabber.org/protocol/chatstates'></composing></message>",
        "<message><active xmlns='http://jabber.org/protocol/chatstates'/><thread>t</thread></message>",
        "<message><active xmlns='http://jabber.org/protocol/chatstates' a='>'/></message>",
        "<message type='error'><body>x</body></message>", "<message>text<body>x</body></message>",
        "<message><body>x</body> </message>", "<message/>", "<message>text</message>", "<presence/>",
        "<presence type='unavailable'/>", "<presence type='probe'></presence>", "<presence type='error'/>",
        "<presence type='&#117;navailable'/>", "<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>",
        "<iq type='result'><ping xmlns='urn:xmpp:ping'/></iq>", "<iq type='error'><ping xmlns='urn:xmpp:ping'/></iq>",
        "<iq type='result'/>", "<iq type='result'></iq>", "<iq type='result'>text</iq>", "<iq/>",
        "<message><request xmlns='urn:xmpp:receipts'/></message>",
        "<p:message xmlns:p='jabber:client'><p:body>x</p:body></p:message>",
    ])
    func `the summary from the head equals the summary from the parsed stanza`(stanza: String) {
        compare(stanza)
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `head and parsed stanza give the same summary for XEP examples`()
        throws
    {
        var told = 0
        for example in try Told.examples() { told += compare(example.text) }
        #expect(told > 300)
    }

    @Test(arguments: [
        "<message type='chat' xml:lang='en'><body>a &lt;&amp;b</body><active xmlns='http://jabber.org/protocol/chatstates'/><request xmlns='urn:xmpp:receipts'/><origin-id xmlns='urn:xmpp:sid:0' id='1'/><markable xmlns='urn:xmpp:chat-markers:0'/></message>",
        "<message> <thread>t</thread><body/>\n<composing xmlns='http://jabber.org/protocol/chatstates'></composing></message>",
        "<message><body>ä😀</body><paused xmlns='http://jabber.org/protocol/chatstates'/><store xmlns='urn:xmpp:hints'/></message>",
        "<presence><show>away</show><status>gone &gt;</status><priority>5</priority><c xmlns='http://jabber.org/protocol/caps' ver='x'/><x xmlns='vcard-temp:x:update'><photo>0123456789abcdef</photo></x></presence>",
        "<presence type='unavailable'><status/><x xmlns='vcard-temp:x:update'><photo/></x></presence>",
        "<presence><show></show><status/><priority/></presence>",
    ])
    func `the summary from the child elements equals the summary from the parsed stanza`(stanza: String) {
        #expect(compareChildren(stanza) == 1)
    }

    @Test(arguments: [
        "<message/>", "<message><body>&#228;</body></message>", "<message><body>\r\n</body></message>",
        "<message><body>[redacted:body-12#1]</body></message>", "<message><body>[x]</body><thread/></message>",
        "<message><body><![CDATA[x]]></body></message>", "<message><body>a<b/></body></message>",
        "<message><thread>t</thread></message>", "<message><store xmlns='urn:xmpp:hints'/></message>",
        "<message type='error'><body>x</body><thread/></message>", "<message type='&#99;hat'><body>x</body></message>",
        "<message><gone xmlns='http://jabber.org/protocol/chatstates'/><thread/></message>",
        "<presence type='strange'/>", "<presence><show>0123456789abcdefg</show></presence>",
        "<presence><show>&amp;</show></presence>",
        "<presence><x xmlns='vcard-temp:x:update'><photo>short</photo></x></presence>",
        "<presence><x xmlns='vcard-temp:x:update'><photo>ä123456789</photo></x></presence>",
        "<presence><x xmlns='http://jabber.org/protocol/muc'/></presence>",
        "<iq type='get'><ping xmlns='urn:xmpp:ping'/><body/></iq>",
    ])
    func `stanzas with texts that need decoding are parsed`(stanza: String) {
        #expect(compareChildren(stanza) == 0)
    }

    @Test(.enabled(if: Corpus.isAvailable))
    func `child elements and parsed stanza give the same summary for XEP examples`() throws {
        var told = 0
        for example in try Told.examples() { told += compareChildren(example.text) }
        #expect(told > 200)
    }

    /// Compares the summaries made from the outline of items with those made from the elements; returns their number.
    private func compareChildren(_ stanzas: String) -> Int {
        var decoder = StreamDecoder(limits: .authenticated, outline: ItemOutline())
        decoder.append(Array((Told.header + stanzas).utf8).span)
        var reader = ElementReader()
        var line = LineBuffer()
        var told = 0
        while let event = decoder.next() {
            guard case .item(.element) = event.kind, let words = Summary.text(of: event.head, decoder, by: &line)
            else { continue }
            let element = reader.read(decoder.bytes, in: decoder)
            #expect(element.flatMap { Summary.text(of: $0) } == words, "\(stanzas)")
            told += 1
        }
        return told
    }

    /// Compares the summaries made from the heads of items with those made from the elements; returns their number.
    @discardableResult private func compare(_ stanzas: String) -> Int {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Array((Told.header + stanzas).utf8).span)
        var reader = ElementReader()
        var told = 0
        while let event = decoder.next() {
            guard case .item(.element) = event.kind,
                let words = Summary.text(of: event.head, decoder.bytes, .init(request: "ping"))
            else { continue }
            let element = reader.read(decoder.bytes, in: decoder)
            #expect(element.flatMap { Summary.text(of: $0, .init(request: "ping")) } == words, "\(stanzas)")
            told += 1
        }
        return told
    }
}
