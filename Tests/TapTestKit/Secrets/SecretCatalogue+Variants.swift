import TapRecord

// Variants of the same secrets: inside other stanzas, and in notations that a simple text search would miss.
extension SecretCatalogue {
    /// The elements that may contain an item.
    package enum Wrapping: String, Sendable, CaseIterable {
        case carbon, forwarded, archive, event, items, returned, component, server, envelope

        /// Returns the item inside the wrapping.
        package func wrap(_ xml: String) -> String {
            let open = "<message xmlns='jabber:client' from='example.org' to='romeo@example.org/x'>"
            let forwarded =
                "<forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>\(xml)"
                + "</forwarded>"
            switch self {
            case .carbon: return "\(open)<received xmlns='urn:xmpp:carbons:2'>\(forwarded)</received></message>"
            case .forwarded: return "\(open)\(forwarded)</message>"
            case .archive:
                return
                    "\(open)<result xmlns='urn:xmpp:mam:2' queryid='q1' id='28482-98726'>\(forwarded)</result></message>"
            case .event:
                return "\(open)<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='princely_musings'>"
                    + "<item id='ae890ac52d0df67ed7cfdf51b644e901'>\(xml)</item></items></event></message>"
            case .items:
                return
                    "<iq xmlns='jabber:client' type='result' id='i'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
                    + "<items node='princely_musings'><item id='1'>\(xml)</item></items></pubsub></iq>"
            case .returned:
                return "<iq xmlns='jabber:client' type='error' id='e'>\(xml)<error type='cancel'><not-allowed "
                    + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
            case .component:
                return "<message xmlns='jabber:component:accept' from='a@plays.example.org' to='b@example.org'>\(xml)"
                    + "</message>"
            case .server:
                return "<message xmlns='jabber:server' from='a@example.net' to='b@example.org'>\(xml)</message>"
            case .envelope: return Wrapping.archive.wrap(Wrapping.carbon.wrap(Wrapping.event.wrap(xml)))
            }
        }
    }

    /// Each item inside each wrapping.
    package static let wrapped: [Item] = Wrapping.allCases.flatMap { wrapping in
        items.map { item in
            var item = item
            item.xml = wrapping.wrap(item.xml)
            item.name += " in \(wrapping.rawValue)"
            return item
        }
    }

    /// Items in which character references replace the first character of each secret; without items that contain no
    /// secret in plain text.
    package static let referenced: [Item] = rewritten("in references") { secret in
        "&#\(secret.prefix(1).unicodeScalars.map(\.value).first ?? 0x20);" + secret.dropFirst()
    }

    /// Items in which half of each secret text is in a CDATA section; without items that contain no secret as a whole
    /// text.
    package static let sectioned: [Item] = items.compactMap { item in
        var item = item
        let before = item.xml
        for secret in item.secrets.map({ String(decoding: $0, as: UTF8.self) }) {
            let middle = secret.index(secret.startIndex, offsetBy: secret.count / 2)
            item.xml = item.xml.replacing(
                ">\(secret)<",
                with: ">\(secret[..<middle])<![CDATA[\(secret[middle...])]]><"
            )
        }
        item.name += " in CDATA"
        return item.xml == before ? nil : item
    }

    private static func rewritten(_ how: String, _ write: (String) -> String) -> [Item] {
        items.compactMap { item in
            var item = item
            let before = item.xml
            for secret in item.secrets.map({ String(decoding: $0, as: UTF8.self) }) {
                item.xml = item.xml.replacing(secret, with: write(secret))
            }
            item.name += " \(how)"
            return item.xml == before ? nil : item
        }
    }

    /// All items in all variants.
    package static let all: [Item] = items + wrapped + referenced + sectioned

    /// Returns both directions of a session that contains the items (default: all), each as a stream from its header to
    /// its end.
    package static func session(of items: [Item] = all) -> (send: [UInt8], recv: [UInt8]) {
        let header =
            "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        var send = header + "to='example.org' version='1.0'>"
        var recv = header + "from='example.org' id='s1' version='1.0'><stream:features/>"
        for item in items {
            switch item.direction {
            case .send: send += item.xml
            case .recv: recv += item.xml
            }
        }
        return (Array((send + "</stream:stream>").utf8), Array((recv + "</stream:stream>").utf8))
    }
}
