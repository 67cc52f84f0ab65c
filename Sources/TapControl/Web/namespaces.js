// Namespaces by their specification.

// A namespace of the wire can have the name of a property of all objects.
/** @type {Map<string, [string, string]>} */
const known = new Map(Object.entries({
  "jabber:client": ["RFC 6120", "client stream"],
  "jabber:server": ["RFC 6120", "server stream"],
  "http://etherx.jabber.org/streams": ["RFC 6120", "streams"],
  "urn:ietf:params:xml:ns:xmpp-streams": ["RFC 6120", "stream errors"],
  "urn:ietf:params:xml:ns:xmpp-stanzas": ["RFC 6120", "stanza errors"],
  "urn:ietf:params:xml:ns:xmpp-tls": ["RFC 6120", "STARTTLS"],
  "urn:ietf:params:xml:ns:xmpp-sasl": ["RFC 6120", "SASL"],
  "urn:ietf:params:xml:ns:xmpp-bind": ["RFC 6120", "resource binding"],
  "urn:ietf:params:xml:ns:xmpp-session": ["RFC 3921", "session"],
  "urn:ietf:params:xml:ns:xmpp-framing": ["RFC 7395", "WebSocket framing"],
  "urn:ietf:params:xml:ns:xmpp-pre-approval": ["RFC 6121", "subscription pre-approval"],
  "urn:xmpp:features:rosterver": ["RFC 6121", "roster versions"],
  "jabber:iq:roster": ["RFC 6121", "roster"],
  "jabber:iq:auth": ["XEP-0078", "non-SASL authentication"],
  "jabber:iq:version": ["XEP-0092", "software version"],
  "jabber:iq:last": ["XEP-0012", "last activity"],
  "jabber:iq:private": ["XEP-0049", "private XML storage"],
  "jabber:iq:privacy": ["XEP-0016", "privacy lists"],
  "jabber:iq:register": ["XEP-0077", "in-band registration"],
  "http://jabber.org/features/iq-register": ["XEP-0077", "in-band registration"],
  "jabber:iq:oob": ["XEP-0066", "out-of-band data"],
  "jabber:x:oob": ["XEP-0066", "out-of-band data"],
  "jabber:x:data": ["XEP-0004", "data forms"],
  "jabber:x:conference": ["XEP-0249", "direct room invitations"],
  "jabber:x:encrypted": ["XEP-0027", "OpenPGP (legacy)"],
  "jabber:x:delay": ["XEP-0091", "delayed delivery (legacy)"],
  "jabber:component:accept": ["XEP-0114", "components"],
  "http://jabber.org/protocol/disco#info": ["XEP-0030", "service discovery"],
  "http://jabber.org/protocol/disco#items": ["XEP-0030", "service discovery"],
  "http://jabber.org/protocol/muc": ["XEP-0045", "rooms"],
  "http://jabber.org/protocol/muc#user": ["XEP-0045", "rooms"],
  "http://jabber.org/protocol/muc#admin": ["XEP-0045", "rooms"],
  "http://jabber.org/protocol/muc#owner": ["XEP-0045", "rooms"],
  "http://jabber.org/protocol/pubsub": ["XEP-0060", "publish-subscribe"],
  "http://jabber.org/protocol/pubsub#event": ["XEP-0060", "publish-subscribe"],
  "http://jabber.org/protocol/pubsub#owner": ["XEP-0060", "publish-subscribe"],
  "http://jabber.org/protocol/pubsub#errors": ["XEP-0060", "publish-subscribe"],
  "http://jabber.org/protocol/ibb": ["XEP-0047", "in-band bytestreams"],
  "http://jabber.org/protocol/bytestreams": ["XEP-0065", "SOCKS5 bytestreams"],
  "http://jabber.org/protocol/caps": ["XEP-0115", "entity capabilities"],
  "urn:xmpp:caps": ["XEP-0390", "entity capabilities 2"],
  "http://jabber.org/protocol/chatstates": ["XEP-0085", "chat states"],
  "http://jabber.org/protocol/commands": ["XEP-0050", "ad-hoc commands"],
  "http://jabber.org/protocol/httpbind": ["XEP-0124", "BOSH"],
  "urn:xmpp:xbosh": ["XEP-0206", "XMPP over BOSH"],
  "http://jabber.org/protocol/nick": ["XEP-0172", "nickname"],
  "http://jabber.org/protocol/mood": ["XEP-0107", "mood"],
  "http://jabber.org/protocol/activity": ["XEP-0108", "activity"],
  "http://jabber.org/protocol/tune": ["XEP-0118", "tune"],
  "http://jabber.org/protocol/geoloc": ["XEP-0080", "location"],
  "http://jabber.org/protocol/si": ["XEP-0095", "stream initiation"],
  "http://jabber.org/protocol/rsm": ["XEP-0059", "result set management"],
  "http://jabber.org/protocol/xhtml-im": ["XEP-0071", "XHTML-IM"],
  "http://jabber.org/protocol/compress": ["XEP-0138", "stream compression"],
  "http://jabber.org/features/compress": ["XEP-0138", "stream compression"],
  "http://jabber.org/protocol/address": ["XEP-0033", "extended addressing"],
  "vcard-temp": ["XEP-0054", "vCard"],
  "vcard-temp:x:update": ["XEP-0153", "vCard avatars"],
  "urn:ietf:params:xml:ns:vcard-4.0": ["XEP-0292", "vCard 4"],
  "urn:xmpp:avatar:data": ["XEP-0084", "avatars"],
  "urn:xmpp:avatar:metadata": ["XEP-0084", "avatars"],
  "urn:xmpp:ping": ["XEP-0199", "ping"],
  "urn:xmpp:time": ["XEP-0202", "entity time"],
  "urn:xmpp:delay": ["XEP-0203", "delayed delivery"],
  "urn:xmpp:receipts": ["XEP-0184", "delivery receipts"],
  "urn:xmpp:blocking": ["XEP-0191", "blocking"],
  "urn:xmpp:sm:2": ["XEP-0198", "stream management"],
  "urn:xmpp:sm:3": ["XEP-0198", "stream management"],
  "urn:xmpp:attention:0": ["XEP-0224", "attention"],
  "urn:xmpp:bob": ["XEP-0231", "bits of binary"],
  "urn:xmpp:carbons:2": ["XEP-0280", "message carbons"],
  "urn:xmpp:forward:0": ["XEP-0297", "forwarding"],
  "urn:xmpp:hashes:2": ["XEP-0300", "hashes"],
  "urn:xmpp:message-correct:0": ["XEP-0308", "message correction"],
  "urn:xmpp:mam:1": ["XEP-0313", "message archive"],
  "urn:xmpp:mam:2": ["XEP-0313", "message archive"],
  "urn:xmpp:idle:1": ["XEP-0319", "last interaction"],
  "urn:xmpp:chat-markers:0": ["XEP-0333", "displayed markers"],
  "urn:xmpp:hints": ["XEP-0334", "processing hints"],
  "urn:xmpp:json:0": ["XEP-0335", "JSON containers"],
  "urn:xmpp:csi:0": ["XEP-0352", "client state"],
  "urn:xmpp:jingle-message:0": ["XEP-0353", "Jingle messages"],
  "urn:xmpp:push:0": ["XEP-0357", "push notifications"],
  "urn:xmpp:sid:0": ["XEP-0359", "stanza ids"],
  "urn:xmpp:http:upload:0": ["XEP-0363", "HTTP upload"],
  "urn:xmpp:reference:0": ["XEP-0372", "references"],
  "urn:xmpp:eme:0": ["XEP-0380", "encryption marks"],
  "eu.siacs.conversations.axolotl": ["XEP-0384", "OMEMO (legacy)"],
  "urn:xmpp:omemo:2": ["XEP-0384", "OMEMO"],
  "urn:xmpp:sasl:2": ["XEP-0388", "SASL 2"],
  "urn:xmpp:bind:0": ["XEP-0386", "Bind 2"],
  "urn:xmpp:styling:0": ["XEP-0393", "message styling"],
  "urn:xmpp:bookmarks:1": ["XEP-0402", "bookmarks"],
  "storage:bookmarks": ["XEP-0048", "bookmarks (legacy)"],
  "urn:xmpp:mix:core:1": ["XEP-0369", "MIX"],
  "urn:xmpp:occupant-id:0": ["XEP-0421", "occupant ids"],
  "urn:xmpp:fasten:0": ["XEP-0422", "fastening"],
  "urn:xmpp:fallback:0": ["XEP-0428", "fallback texts"],
  "urn:xmpp:message-retract:0": ["XEP-0424", "retraction"],
  "urn:xmpp:message-retract:1": ["XEP-0424", "retraction"],
  "urn:xmpp:message-moderate:1": ["XEP-0425", "moderation"],
  "urn:xmpp:sasl-cb:0": ["XEP-0440", "channel-binding types"],
  "urn:xmpp:reactions:0": ["XEP-0444", "reactions"],
  "urn:xmpp:sfs:0": ["XEP-0447", "stateless file sharing"],
  "urn:xmpp:reply:0": ["XEP-0461", "replies"],
  "urn:xmpp:fast:0": ["XEP-0484", "FAST tokens"],
  "urn:xmpp:jingle:1": ["XEP-0166", "Jingle"],
  "urn:xmpp:jingle:apps:rtp:1": ["XEP-0167", "Jingle RTP"],
  "urn:xmpp:jingle:apps:file-transfer:5": ["XEP-0234", "Jingle file transfer"],
  "urn:xmpp:jingle:transports:ice-udp:1": ["XEP-0176", "Jingle ICE"],
  "urn:xmpp:extdisco:2": ["XEP-0215", "external services"],
  "urn:xmpp:invite": ["XEP-0401", "invitations"],
  "urn:xmpp:spaces:0": ["XEP-0503", "spaces"],
}));

/**
 * The specification and the name of a namespace; undefined if it is unknown.
 * @param {string} uri
 */
export function specification(uri) {
  return known.get(uri) ?? known.get(uri.replace(/[#:]\d+$/, ""));
}

/**
 * A short description of a namespace.
 * @param {string} uri
 */
export function described(uri) {
  const found = specification(uri);
  return found ? `${found[0]}${found[0] ? ", " : ""}${found[1]}` : "";
}

/**
 * The namespace and the name of `{namespace}name`.
 * @param {string} text
 * @returns {[string, string]}
 */
export function splitName(text) {
  if (!text.startsWith("{")) return ["", text];
  const end = text.indexOf("}");
  return [text.slice(1, end), text.slice(end + 1)];
}
