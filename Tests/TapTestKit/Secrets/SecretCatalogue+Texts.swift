import TapRecord

// Texts that are not secrets, but are hidden by a stricter redaction policy.
extension SecretCatalogue {
    /// Texts that users write to each other and about themselves, and names that they give to things. The policy
    /// `bodies` and stricter ones hide them.
    package static let texts: [Item] = [
        Item(
            "a message",
            "<message to='nurse@example.org'><subject>Wq7 moonlit errand</subject><body>Zk4 bring ye timeline</body>"
                + "<thread>t1</thread><html xmlns='http://jabber.org/protocol/xhtml-im'><body "
                + "xmlns='http://www.w3.org/1999/xhtml'><p style='Jb3-crimson'>Xv9 ye <em>orchard</em> wall<img "
                + "alt='Hf2 a rose' src='https://img.example/Mn6-rose.png'/></p></body></html></message>",
            secrets: [
                "Wq7 moonlit errand", "Zk4 bring ye timeline", "Xv9 ye", "Jb3-crimson", "Hf2 a rose", "Mn6-rose.png",
            ]
        ),
        Item(
            "a body in CDATA and references",
            "<message to='nurse@example.org'><body>Pt5 by <![CDATA[Gk8 candle]]> &#x4C;h3 light</body></message>",
            secrets: ["Pt5 by", "Gk8 candle", "h3 light"]
        ),
        Item(
            "presence",
            "<presence><show>away</show><status xml:lang='en'>Rd6 gone hawking</status><priority>5</priority>"
                + "<nick xmlns='http://jabber.org/protocol/nick'>Cs1 Jule</nick></presence>",
            secrets: ["Rd6 gone hawking", "Cs1 Jule"]
        ),
        Item(
            "a roster",
            .recv,
            "<iq type='result' id='r'><query xmlns='jabber:iq:roster'><item jid='nurse@example.org' name='Vb4 Angelica' "
                + "subscription='both'><group>Nw7 household</group></item></query></iq>",
            secrets: ["Vb4 Angelica", "Nw7 household"]
        ),
        Item(
            "a vCard",
            "<iq type='set' id='v'><vCard xmlns='vcard-temp'><FN>Ly2 Jul1a C.</FN><BDAY>1583-07-31</BDAY><PHOTO><BINVAL>"
                + "iVBORw0KGgoAAAANTk3</BINVAL></PHOTO><DESC>Qm8 not yet fourteen</DESC></vCard></iq>",
            secrets: ["Ly2 Jul1a C.", "1583-07-31", "iVBORw0KGgoAAAANTk3", "Qm8 not yet fourteen"]
        ),
        Item(
            "files",
            "<iq type='get' id='u' to='upload.example.org'><request xmlns='urn:xmpp:http:upload:0' "
                + "filename='Sd5-letter.pdf' size='23456' content-type='application/pdf'/></iq>",
            secrets: ["Sd5-letter.pdf"]
        ),
        Item(
            "a link with a description",
            "<message to='nurse@example.org'><x xmlns='jabber:x:oob'><url>https://files.example/Ge9-tomb.jpg</url>"
                + "<desc>Yr1 ye tomb</desc></x></message>",
            secrets: ["Ge9-tomb.jpg", "Yr1 ye tomb"]
        ),
        Item(
            "Jingle",
            "<iq type='set' id='j' to='romeo@example.net/o'><jingle xmlns='urn:xmpp:jingle:1' action='session-initiate' "
                + "sid='s'><content creator='initiator' name='c'><description "
                + "xmlns='urn:xmpp:jingle:apps:file-transfer:5'><file><name>Ux4-sonnet.txt</name><desc>Ij6 verses</desc>"
                + "<size>144</size></file></description></content></jingle></iq>",
            secrets: ["Ux4-sonnet.txt", "Ij6 verses"]
        ),
        Item(
            "reactions, a reply, a place, a tune",
            "<message to='nurse@example.org'><reactions id='m' xmlns='urn:xmpp:reactions:0'><reaction>Fb7-heart</reaction>"
                + "</reactions><geoloc xmlns='http://jabber.org/protocol/geoloc'><lat>45.4383842</lat></geoloc><tune "
                + "xmlns='http://jabber.org/protocol/tune'><title>Ok3 lark song</title></tune></message>",
            secrets: ["Fb7-heart", "45.4383842", "Ok3 lark song"]
        ),
        Item(
            "a form",
            "<iq type='set' id='f' to='rooms.example.org'><query xmlns='jabber:iq:search'><x xmlns='jabber:x:data' "
                + "type='submit'><field var='last'><value>Ea8 Capulet</value></field></x></query></iq>",
            secrets: ["Ea8 Capulet"]
        ),
        Item(
            "a publication of an extension that nobody knows",
            "<iq type='set' id='p'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item id='i'>"
                + "<diary xmlns='urn:example:diary' mood='Db2 restless'>Zt6 chanced upon one</diary></item></publish></pubsub>"
                + "</iq>",
            secrets: ["Db2 restless", "Zt6 chanced upon one"]
        ),
        Item(
            "an error that gives the message back",
            .recv,
            "<message type='error' from='nurse@example.org'><body>Kc5 arrt thou hither</body><error type='cancel'>"
                + "<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>",
            secrets: ["Kc5 arrt thou hither"]
        ),
        Item(
            "a room",
            .recv,
            "<message type='groupchat' from='verona@rooms.example.org'><subject>Hp3 feud news</subject><x "
                + "xmlns='http://jabber.org/protocol/muc#user'><invite to='nurse@example.org'><reason>Wl9 c0me hither</reason>"
                + "</invite></x></message>",
            secrets: ["Hp3 feud news", "Wl9 c0me hither"]
        ),
        Item(
            "bookmarks",
            "<iq type='set' id='b'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'><conference "
                + "jid='verona@rooms.example.org' name='Uf4 ye square'><nick>Bn7 Jule</nick></conference></storage>"
                + "</query></iq>",
            secrets: ["Uf4 ye square", "Bn7 Jule"]
        ),
        Item(
            "bytes in a stream",
            "<iq type='set' id='i' to='romeo@example.net/o'><data xmlns='http://jabber.org/protocol/ibb' seq='0' sid='s'>"
                + "qANQR1DBwU4DX7jmYZnncm</data></iq>",
            secrets: ["qANQR1DBwU4DX7jmYZnncm"]
        ),
        Item(
            "a presence whose values are none of the protocol's",
            "<presence xmlns='jabber:client'><show>Qn8 in exile</show><priority>Rv5 ye first</priority></presence>",
            secrets: ["Qn8 in exile", "Rv5 ye first"]
        ),
        Item(
            "figures and mechanisms that are none",
            .recv,
            "<iq type='result' id='m'><fin xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'>"
                + "<count>Sx4 many</count></set></fin><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                + "<mechanism>Tb7 by my troth</mechanism></mechanisms></iq>",
            secrets: ["Sx4 many", "Tb7 by my troth"]
        ),
    ]

    /// Identities of users, which only the policy `metadata` hides.
    package static let people: [Item] = [
        Item(
            "addresses of a message",
            "<message from='Tybalt_Ks3@example.org/rapier-Gz8' to='petruchi_Vd6@example.net/wit-Hm2'><addresses "
                + "xmlns='http://jabber.org/protocol/address'><address type='cc' jid='benvolio_Xj5@example.net'/></addresses>"
                + "</message>",
            secrets: ["Tybalt_Ks3", "rapier-Gz8", "petruchi_Vd6", "wit-Hm2", "benvolio_Xj5"]
        ),
        Item(
            "an address that is none, and one with references",
            "<message from='&#80;aris_Lw4@example.org' to='friar lawrence_Tc9@example.org'/>",
            secrets: ["aris_Lw4", "lawrence_Tc9"]
        ),
        Item(
            "an occupant of a room",
            .recv,
            "<presence from='verona_Pb7@rooms.example.org/Rosaline_Qy1'><x xmlns='http://jabber.org/protocol/muc#user'>"
                + "<item affiliation='none' role='participant' jid='rosaline_Ef5@example.org/r' nick='Fair_Nk8'/></x>"
                + "</presence>",
            secrets: ["verona_Pb7", "Rosaline_Qy1", "rosaline_Ef5", "Fair_Nk8"]
        ),
        Item(
            "an item that is called by an address",
            .recv,
            "<message from='juliet@example.org'><event xmlns='http://jabber.org/protocol/pubsub#event'><items "
                + "node='urn:xmpp:bookmarks:1'><item id='orchard_Cv2@rooms.example.org'><conference "
                + "xmlns='urn:xmpp:bookmarks:1' autojoin='true'/></item></items></event></message>",
            secrets: ["orchard_Cv2"]
        ),
        Item(
            "an iq about somebody",
            "<iq type='set' id='x'><block xmlns='urn:xmpp:blocking'><item jid='sampson_Wn6@example.net'/></block></iq>",
            secrets: ["sampson_Wn6"]
        ),
        Item(
            "a subscription",
            .recv,
            "<presence type='subscribe' from='gregory_Ra4@example.net'/>",
            secrets: ["gregory_Ra4"]
        ),
        Item(
            "an error with words",
            .recv,
            "<iq type='error' id='y'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>balthasar_Sj7 is unknown here</text></error></iq>",
            secrets: ["balthasar_Sj7"]
        ),
        Item(
            "a client and its machine",
            .recv,
            "<iq type='result' id='z'><query xmlns='jabber:iq:version'><name>Potion_Yf3</name><os>Mantua_Db9</os></query>"
                + "</iq>",
            secrets: ["Potion_Yf3", "Mantua_Db9"]
        ),
        Item(
            "a stanza that is named by its sender's address",
            "<message id='abram_Hk5@example.net/1' to='example.org'/>",
            secrets: ["abram_Hk5"]
        ),
    ]

    /// Returns the items themselves, and each item inside each wrapping.
    package static func inEveryWrapping(_ items: [Item]) -> [Item] {
        items
            + Wrapping.allCases.flatMap { wrapping in
                items.map { item in
                    var item = item
                    item.xml = wrapping.wrap(item.xml)
                    item.name += " in \(wrapping.rawValue)"
                    return item
                }
            }
    }
}
