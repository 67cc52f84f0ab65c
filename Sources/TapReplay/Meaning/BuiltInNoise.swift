/// The noise rules for values that differ between any two sessions: ids, timestamps, versions, tokens.
enum BuiltInNoise {
    /// The rules in the syntax of a noise file, so that users can read them.
    static let text = """
        # Ids of stanzas, also of those that are forwarded inside others, and of what refers to them.
        iq/@id bind id
        message/@id bind id
        presence/@id bind id
        **/{jabber:client}message/@id bind id
        **/{urn:xmpp:receipts}received/@id bind id
        **/{urn:xmpp:chat-markers:0}*/@id bind id
        **/{urn:xmpp:message-correct:0}replace/@id bind id
        **/{urn:xmpp:reactions:0}reactions/@id bind id
        **/{urn:xmpp:reply:0}reply/@id bind id
        **/{urn:xmpp:fasten:0}apply-to/@id bind id
        **/{urn:xmpp:message-retract:0}retracted/@id bind id
        **/{urn:xmpp:message-retract:1}retract/@id bind id
        **/{urn:xmpp:message-attaching:1}attach-to/@id bind id
        **/{urn:xmpp:sid:0}origin-id/@id bind origin-id
        **/{urn:xmpp:sid:0}stanza-id/@id bind archive-id
        **/{urn:xmpp:mam:tmp}archived/@id bind archive-id
        # A stanza without a language has that of its stream (RFC 6120 §8.1.5), which some servers write into each.
        iq/@xml:lang ignore
        # Conversations over several stanzas.
        **/{jabber:client}thread/text() bind exchange-id
        **/{http://jabber.org/protocol/commands}command/@sessionid bind exchange-id
        **/{urn:xmpp:jingle:1}jingle/@sid bind exchange-id
        **/{urn:xmpp:jingle-message:0}*/@id bind exchange-id
        **/{http://jabber.org/protocol/ibb}*/@sid bind exchange-id
        **/{http://jabber.org/protocol/bytestreams}*/@sid bind exchange-id
        **/{http://jabber.org/protocol/si}si/@id bind exchange-id
        # Archives and paging.
        **/{urn:xmpp:mam:2}result/@id bind archive-id
        **/{urn:xmpp:mam:1}result/@id bind archive-id
        **/{urn:xmpp:mam:0}result/@id bind archive-id
        **/{urn:xmpp:mam:2}*/@queryid bind exchange-id
        **/{urn:xmpp:mam:1}*/@queryid bind exchange-id
        **/{urn:xmpp:mam:0}*/@queryid bind exchange-id
        **/{urn:xmpp:mam:2}start/@id bind archive-id
        **/{urn:xmpp:mam:2}end/@id bind archive-id
        **/{http://jabber.org/protocol/rsm}first/text() bind archive-id
        **/{http://jabber.org/protocol/rsm}last/text() bind archive-id
        **/{http://jabber.org/protocol/rsm}before/text() bind archive-id
        **/{http://jabber.org/protocol/rsm}after/text() bind archive-id
        # Binding and stream management.
        **/{urn:ietf:params:xml:ns:xmpp-bind}jid/text() jid
        **/{urn:ietf:params:xml:ns:xmpp-bind}resource/text() ignore
        {urn:xmpp:sm:3}enabled/@id bind stream-management-id
        {urn:xmpp:sm:3}enabled/@max present
        {urn:xmpp:sm:3}enabled/@location present
        {urn:xmpp:sm:3}resume/@previd bind stream-management-id
        {urn:xmpp:sm:3}resumed/@previd bind stream-management-id
        {urn:xmpp:sm:3}*/@h ignore
        {urn:xmpp:sm:2}enabled/@id bind stream-management-id
        {urn:xmpp:sm:2}resume/@previd bind stream-management-id
        {urn:xmpp:sm:2}resumed/@previd bind stream-management-id
        {urn:xmpp:sm:2}*/@h ignore
        # The sender of the stanza, or who delayed it (XEP-0203 §2).
        **/{urn:xmpp:delay}delay/@from ignore
        # Its reason, for people.
        **/{urn:xmpp:delay}delay/text() ignore
        # Moments. Values in the form of RFC 3339 are one wherever they stand.
        **/{jabber:x:delay}x/@stamp present
        **/{urn:xmpp:time}tzo/text() present
        **/{jabber:iq:time}*/text() present
        **/{jabber:iq:last}query/@seconds present
        # Versions and hashes. Those of rosters number the pushes, whose order is the server's.
        **/{jabber:iq:roster}query/@ver follow roster-version
        **/{http://jabber.org/protocol/caps}c/@ver bind version
        **/{http://jabber.org/protocol/disco#info}query/@node bind-suffix version
        **/{jabber:iq:version}version/text() present
        **/{jabber:iq:version}os/text() present
        # Items of nodes, and what identifies an avatar.
        **/{http://jabber.org/protocol/pubsub}item/@id bind item-id
        **/{http://jabber.org/protocol/pubsub#event}item/@id bind item-id
        **/{http://jabber.org/protocol/pubsub}retract/@id bind item-id
        **/{http://jabber.org/protocol/pubsub#event}retract/@id bind item-id
        **/{urn:xmpp:avatar:metadata}info/@id bind item-id
        **/{vcard-temp:x:update}photo/text() bind token
        # Secrets, slots and keys.
        **/{urn:xmpp:occupant-id:0}occupant-id/@id bind token
        **/{urn:xmpp:http:upload:0}put/@url bind url
        **/{urn:xmpp:http:upload:0}get/@url bind url
        **/{urn:xmpp:http:upload:0}header/text() present
        **/{urn:xmpp:extdisco:2}service/@username present
        **/{urn:xmpp:extdisco:2}service/@password present
        **/{urn:xmpp:extdisco:2}service/@expires present
        **/{urn:xmpp:extdisco:1}service/@username present
        **/{urn:xmpp:extdisco:1}service/@password present
        **/{urn:xmpp:push:0}enable/@node bind token
        **/{urn:xmpp:jingle:transports:ice-udp:1}transport/@ufrag present
        **/{urn:xmpp:jingle:transports:ice-udp:1}transport/@pwd present
        **/{urn:xmpp:jingle:transports:ice-udp:1}candidate ignore
        **/{urn:xmpp:jingle:apps:dtls:0}fingerprint/text() present
        **/{eu.siacs.conversations.axolotl}encrypted/* ignore
        **/{eu.siacs.conversations.axolotl}bundle/* ignore
        **/{eu.siacs.conversations.axolotl}device/@id bind token
        **/{urn:xmpp:omemo:2}encrypted/* ignore
        **/{urn:xmpp:omemo:2}bundle/* ignore
        **/{urn:xmpp:omemo:2}device/@id bind token
        # Requests that a server may send or not, as often as it likes; a client answers each (RFC 6120 §8.2.3).
        iq[@type=get][{http://jabber.org/protocol/disco#info}query] any number # XEP-0115 §5: of unknown capabilities
        iq[@type=get][{http://jabber.org/protocol/disco#items}query] any number # XEP-0030 §4
        iq[@type=get][{urn:xmpp:ping}ping] any number # XEP-0199 §4.1
        iq[@type=get][{jabber:iq:version}query] any number # XEP-0092 §3
        iq[@type=get][{urn:xmpp:time}time] any number # XEP-0202 §2
        iq[@type=get][{jabber:iq:time}query] any number # XEP-0090 §2
        iq[@type=get][{jabber:iq:last}query] any number # XEP-0012 §5
        # Some servers keep the block list as a privacy list, whose change they push to each resource.
        iq[@type=set][{jabber:iq:privacy}query] any number # XEP-0016 §2.6
        # What a server may add to a stanza.
        message/{urn:xmpp:delay}delay may be absent # XEP-0203 §2
        presence/{urn:xmpp:delay}delay may be absent # XEP-0203 §2
        message/{jabber:x:delay}x may be absent # XEP-0091 §2
        presence/{jabber:x:delay}x may be absent # XEP-0091 §2
        **/{urn:xmpp:sid:0}stanza-id may be absent # XEP-0359 §3
        **/{urn:xmpp:mam:tmp}archived may be absent # XEP-0313, version 0.2
        **/{urn:xmpp:occupant-id:0}occupant-id may be absent # XEP-0421 §3
        presence/{vcard-temp:x:update}x may be absent # XEP-0398 §3
        presence/{vcard-temp:x:update}x/photo may be absent # XEP-0398 §3
        message/@xml:lang may be absent # RFC 6120 §8.1.5
        presence/@xml:lang may be absent # RFC 6120 §8.1.5
        message[@type=groupchat][subject]/@id may be absent # XEP-0045 §7.2.15: the room may send it
        # The reason of a closed connection; a client's own unavailable presence has the id that the client gave it.
        presence[@type=unavailable][not(@id)]/status may be absent # RFC 6121 §4.5.2
        presence[@type=unavailable][not(@id)]/status/text() ignore
        """

    static let rules: [NoiseRules.Rule] = {
        let rules = try? NoiseFile.rules(text, file: "built-in")
        assert(rules != nil, "the built-in noise rules cannot be read")
        return rules ?? []
    }()
}
