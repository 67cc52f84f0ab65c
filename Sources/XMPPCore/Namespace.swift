/// A known namespace. Any other namespace is ``other``, and its URI is stored separately.
///
/// Streams are read by namespace and local name, never by prefix (RFC 6120 §4.8.5).
public enum Namespace: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    /// A namespace that is not in this table.
    case other
    /// No namespace (`xmlns=''`, or an attribute without a prefix).
    case none

    case xml, xmlns
    case streams, client, server, componentAccept, componentConnect
    case streamErrors, stanzaErrors
    case tls, sasl, sasl2, saslChannelBinding, bind, bind2, bind2Legacy, session, fast, isr
    case iqAuth, iqAuthFeature, register, registerFeature, compression, compressionFeature
    case dialback, streamManagement, streamManagement2, clientState, framing
    case roster, discoInfo, discoItems, version, ping, time, lastActivity, privateStorage, vCard
    case delay, carbons, forward, archive, hints, stanzaID, correction
    case chatStates, receipts, markers, capabilities, dataForms, outOfBand, serviceDiscoveryExternal
    case muc, mucUser, mucOwner, mucAdmin, conference, bookmarksStorage, bookmarks
    case pubsub, pubsubEvent, push, httpUpload, blocking
    case jingle, jingleICE, jingleRawUDP, httpAuth, omemo, scramUpgrade, search, preauth
    case serviceDiscoveryExternal1, omemo1, omemoLegacy, encryptedFiles, oauth, httpBind
    case sasl2Legacy, saslUpgrade
    case avatarData, avatarMetadata, vCardUpdate, vCard4, nick, mood, activity, tune, location, idle
    case reactions, reply, retraction, retractionLegacy, fastening, fallback, occupantID, attention, xhtml
    case encryptionHint, openPGP, openPGPLegacy, openPGPSignature, delayLegacy, moderation, spoiler
    case resultSets, archive1, archive0, pubsubOwner, pubsubErrors, commands, rosterExchange, timeLegacy
    case blockingErrors, reporting, privacy
    case jingleMessage, jingleErrors, jingleRTP, jingleRTPInfo, jingleFiles, jingleIBB, jingleBytestreams
    case byteStreams, inBandByteStreams, streamInitiation, fileSharing, bitsOfBinary
    case bidirectional, dialbackFeature, streamLimits

    /// The namespace name as written in an `xmlns` attribute; empty for ``none`` and ``other``.
    package var uri: StaticString {
        switch self {
        case .other, .none: ""
        case .xml: "http://www.w3.org/XML/1998/namespace"
        case .xmlns: "http://www.w3.org/2000/xmlns/"
        case .streams: "http://etherx.jabber.org/streams"
        case .client: "jabber:client"
        case .server: "jabber:server"
        case .componentAccept: "jabber:component:accept"
        case .componentConnect: "jabber:component:connect"
        case .streamErrors: "urn:ietf:params:xml:ns:xmpp-streams"
        case .stanzaErrors: "urn:ietf:params:xml:ns:xmpp-stanzas"
        case .tls: "urn:ietf:params:xml:ns:xmpp-tls"
        case .sasl: "urn:ietf:params:xml:ns:xmpp-sasl"
        case .sasl2: "urn:xmpp:sasl:2"
        case .saslChannelBinding: "urn:xmpp:sasl-cb:0"
        case .bind: "urn:ietf:params:xml:ns:xmpp-bind"
        case .bind2: "urn:xmpp:bind:0"
        case .bind2Legacy: "urn:xmpp:bind2:1"
        case .session: "urn:ietf:params:xml:ns:xmpp-session"
        case .fast: "urn:xmpp:fast:0"
        case .isr: "https://xmpp.org/extensions/isr/0"
        case .iqAuth: "jabber:iq:auth"
        case .iqAuthFeature: "http://jabber.org/features/iq-auth"
        case .register: "jabber:iq:register"
        case .registerFeature: "http://jabber.org/features/iq-register"
        case .compression: "http://jabber.org/protocol/compress"
        case .compressionFeature: "http://jabber.org/features/compress"
        case .dialback: "jabber:server:dialback"
        case .streamManagement: "urn:xmpp:sm:3"
        case .streamManagement2: "urn:xmpp:sm:2"
        case .clientState: "urn:xmpp:csi:0"
        case .framing: "urn:ietf:params:xml:ns:xmpp-framing"
        case .roster: "jabber:iq:roster"
        case .discoInfo: "http://jabber.org/protocol/disco#info"
        case .discoItems: "http://jabber.org/protocol/disco#items"
        case .version: "jabber:iq:version"
        case .ping: "urn:xmpp:ping"
        case .time: "urn:xmpp:time"
        case .lastActivity: "jabber:iq:last"
        case .privateStorage: "jabber:iq:private"
        case .vCard: "vcard-temp"
        case .delay: "urn:xmpp:delay"
        case .carbons: "urn:xmpp:carbons:2"
        case .forward: "urn:xmpp:forward:0"
        case .archive: "urn:xmpp:mam:2"
        case .hints: "urn:xmpp:hints"
        case .stanzaID: "urn:xmpp:sid:0"
        case .correction: "urn:xmpp:message-correct:0"
        case .chatStates: "http://jabber.org/protocol/chatstates"
        case .receipts: "urn:xmpp:receipts"
        case .markers: "urn:xmpp:chat-markers:0"
        case .capabilities: "http://jabber.org/protocol/caps"
        case .dataForms: "jabber:x:data"
        case .outOfBand: "jabber:x:oob"
        case .serviceDiscoveryExternal: "urn:xmpp:extdisco:2"
        case .muc: "http://jabber.org/protocol/muc"
        case .mucUser: "http://jabber.org/protocol/muc#user"
        case .mucOwner: "http://jabber.org/protocol/muc#owner"
        case .mucAdmin: "http://jabber.org/protocol/muc#admin"
        case .conference: "jabber:x:conference"
        case .bookmarksStorage: "storage:bookmarks"
        case .bookmarks: "urn:xmpp:bookmarks:1"
        case .pubsub: "http://jabber.org/protocol/pubsub"
        case .pubsubEvent: "http://jabber.org/protocol/pubsub#event"
        case .push: "urn:xmpp:push:0"
        case .httpUpload: "urn:xmpp:http:upload:0"
        case .blocking: "urn:xmpp:blocking"
        case .jingle: "urn:xmpp:jingle:1"
        case .jingleICE: "urn:xmpp:jingle:transports:ice-udp:1"
        case .jingleRawUDP: "urn:xmpp:jingle:transports:raw-udp:1"
        case .httpAuth: "http://jabber.org/protocol/http-auth"
        case .omemo: "urn:xmpp:omemo:2"
        case .scramUpgrade: "urn:xmpp:scram-upgrade:0"
        case .search: "jabber:iq:search"
        case .preauth: "urn:xmpp:pars:0"
        case .serviceDiscoveryExternal1: "urn:xmpp:extdisco:1"
        case .omemo1: "urn:xmpp:omemo:1"
        case .omemoLegacy: "eu.siacs.conversations.axolotl"
        case .encryptedFiles: "urn:xmpp:esfs:0"
        case .oauth: "urn:xmpp:oauth:0"
        case .sasl2Legacy: "urn:xmpp:sasl:1"
        case .saslUpgrade: "urn:xmpp:sasl:upgrade:0"
        case .httpBind: "http://jabber.org/protocol/httpbind"
        case .avatarData: "urn:xmpp:avatar:data"
        case .avatarMetadata: "urn:xmpp:avatar:metadata"
        case .vCardUpdate: "vcard-temp:x:update"
        case .vCard4: "urn:ietf:params:xml:ns:vcard-4.0"
        case .nick: "http://jabber.org/protocol/nick"
        case .mood: "http://jabber.org/protocol/mood"
        case .activity: "http://jabber.org/protocol/activity"
        case .tune: "http://jabber.org/protocol/tune"
        case .location: "http://jabber.org/protocol/geoloc"
        case .idle: "urn:xmpp:idle:1"
        case .reactions: "urn:xmpp:reactions:0"
        case .reply: "urn:xmpp:reply:0"
        case .retraction: "urn:xmpp:message-retract:1"
        case .retractionLegacy: "urn:xmpp:message-retract:0"
        case .fastening: "urn:xmpp:fasten:0"
        case .fallback: "urn:xmpp:fallback:0"
        case .occupantID: "urn:xmpp:occupant-id:0"
        case .attention: "urn:xmpp:attention:0"
        case .xhtml: "http://jabber.org/protocol/xhtml-im"
        case .encryptionHint: "urn:xmpp:eme:0"
        case .openPGP: "urn:xmpp:openpgp:0"
        case .openPGPLegacy: "jabber:x:encrypted"
        case .openPGPSignature: "jabber:x:signed"
        case .delayLegacy: "jabber:x:delay"
        case .moderation: "urn:xmpp:message-moderate:1"
        case .spoiler: "urn:xmpp:spoiler:0"
        case .resultSets: "http://jabber.org/protocol/rsm"
        case .archive1: "urn:xmpp:mam:1"
        case .archive0: "urn:xmpp:mam:0"
        case .pubsubOwner: "http://jabber.org/protocol/pubsub#owner"
        case .pubsubErrors: "http://jabber.org/protocol/pubsub#errors"
        case .commands: "http://jabber.org/protocol/commands"
        case .rosterExchange: "http://jabber.org/protocol/rosterx"
        case .timeLegacy: "jabber:iq:time"
        case .blockingErrors: "urn:xmpp:blocking:errors"
        case .reporting: "urn:xmpp:reporting:1"
        case .privacy: "jabber:iq:privacy"
        case .jingleMessage: "urn:xmpp:jingle-message:0"
        case .jingleErrors: "urn:xmpp:jingle:errors:1"
        case .jingleRTP: "urn:xmpp:jingle:apps:rtp:1"
        case .jingleRTPInfo: "urn:xmpp:jingle:apps:rtp:info:1"
        case .jingleFiles: "urn:xmpp:jingle:apps:file-transfer:5"
        case .jingleIBB: "urn:xmpp:jingle:transports:ibb:1"
        case .jingleBytestreams: "urn:xmpp:jingle:transports:s5b:1"
        case .byteStreams: "http://jabber.org/protocol/bytestreams"
        case .inBandByteStreams: "http://jabber.org/protocol/ibb"
        case .streamInitiation: "http://jabber.org/protocol/si"
        case .fileSharing: "urn:xmpp:sfs:0"
        case .bitsOfBinary: "urn:xmpp:bob"
        case .bidirectional: "urn:xmpp:bidi"
        case .dialbackFeature: "urn:xmpp:features:dialback"
        case .streamLimits: "urn:xmpp:stream-limits:0"
        }
    }

    /// Creates the namespace with the URI `bytes`: ``none`` if the URI is empty, ``other`` if it is not in the table.
    package init(uri bytes: Span<UInt8>) {
        self = NamespaceTable.shared.find(bytes)
    }

    /// Whether stanzas of this namespace are the stream's own content: client, server or component.
    @inline(__always)
    package var isContent: Bool {
        switch self {
        case .client, .server, .componentAccept, .componentConnect: true
        default: false
        }
    }

    /// Whether the namespace belongs to no known protocol.
    @inline(__always)
    package var isUnknown: Bool { self == .other || self == .none }

    /// Whether elements in the namespace may have names that no protocol defines. True for unknown namespaces, and for
    /// the content namespaces of streams, in which a stanza may have unknown children.
    @inline(__always)
    package var hasUnknownNames: Bool { isUnknown || isContent }

    /// Whether the namespace is one of authentication: SASL of RFC 6120, SASL2 of XEP-0388 and its earlier version.
    package var isSASL: Bool { self == .sasl || isSASL2 }

    /// Whether the namespace is SASL2, in any version of XEP-0388.
    package var isSASL2: Bool { self == .sasl2 || self == .sasl2Legacy }

    /// Calls `body` with the bytes of the URI.
    package func withURI<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome {
        body(UnsafeBufferPointer(start: uri.utf8Start, count: uri.utf8CodeUnitCount).span)
    }

    /// The URI as an array, for callers that need a span.
    var uriBytes: [UInt8] { Array(UnsafeBufferPointer(start: uri.utf8Start, count: uri.utf8CodeUnitCount)) }
}

/// A hash table of the known namespaces by URI. A lookup rarely needs more than one comparison.
private final class NamespaceTable: Sendable {
    static let shared = NamespaceTable()

    /// The slots; ``Namespace/other`` marks an empty slot, at which a search ends.
    private let slots: InlineArray<256, Namespace>

    private init() {
        var slots = InlineArray<256, Namespace>(repeating: .other)
        for namespace in Namespace.allCases where namespace.uri.utf8CodeUnitCount > 0 {
            var slot = Self.hash(namespace.uriBytes.span)
            while slots[slot] != .other { slot = (slot &+ 1) & 255 }
            slots[slot] = namespace
        }
        self.slots = slots
    }

    @inline(__always)
    func find(_ uri: Span<UInt8>) -> Namespace {
        guard !uri.isEmpty else { return .none }
        var slot = Self.hash(uri)
        while true {
            let candidate = slots[slot]
            if candidate == .other || uri.equals(candidate.uri) { return candidate }
            slot = (slot &+ 1) & 255
        }
    }

    /// Hashes the length and four of the bytes, chosen so that the URIs of the table rarely collide.
    @inline(__always)
    private static func hash(_ uri: Span<UInt8>) -> Int {
        let count = uri.count
        let last = count &- 1
        var hash = count &* 19 &+ Int(uri[last]) &* 92 &+ Int(uri[count / 2]) &* 39
        hash = hash &+ Int(uri[last &- min(3, last)]) &* 227 &+ Int(uri[count / 4 &* 3]) &* 91
        return hash & 255
    }
}
