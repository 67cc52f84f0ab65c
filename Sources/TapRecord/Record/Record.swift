package import XMPPCore

/// One event, as passed to every log, capture, store and view.
///
/// A record is cheap to make: data from the wire is not copied. Its texts are ranges of the *content*, a run of bytes
/// that is passed along with the record. The content of a whole item is the item itself, with secrets redacted. No sink
/// can reach a secret through a record, unless the user asked for secrets.
public struct Record: Sendable {
    /// The kind of event. The raw value is used in the JSON form.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A session began, changed its state, or ended.
        case session
        case declaration
        /// A stream header.
        case streamOpen = "stream-open"
        /// An iq, message or presence in the stream's content namespace.
        case stanza
        /// Another element at the top level: features, SASL, TLS, stream management, a stream error.
        case element
        /// White space between items: a keepalive.
        case whitespace
        /// A stream's end tag.
        case streamClose = "stream-close"
        /// TLS began or ended on a leg.
        case tls
        /// Bytes that are not decoded.
        case bytes
        /// A note about a session or the program.
        case note
        /// An error.
        case error
        /// One read from the network; recorded at level trace.
        case chunk
        /// A control frame of a WebSocket: ping, pong or close; recorded at level trace.
        case frame

        /// Whether a record of this kind describes an item of a stream, rather than bytes or a note.
        package var isStreamItem: Bool {
            switch self {
            case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose: true
            case .session, .tls, .bytes, .note, .error, .chunk, .frame: false
            }
        }
    }

    /// Number within the run, from 1. It is the same in every log, so that gaps show the records that a filter omitted.
    ///
    /// Records of one session are written in this order. Sessions run concurrently: a record of one session may precede
    /// a record of another session with a smaller number. To order a whole log, sort it by this number; a record is
    /// missing only if its number appears nowhere in the log.
    package var sequence: UInt64
    /// The wall-clock time of the event.
    package var time: Timestamp
    /// Nanoseconds since the run began.
    package var monotonic: Int64
    /// The kind of event.
    package var kind: Kind
    /// The level at which the text log shows the record.
    package var level: Level
    /// The part of the program that made the record.
    package var part: Part

    /// Number of the session within the run, from 1; 0 if the record belongs to none.
    package var session: UInt64
    /// The session's bound full JID, once known.
    package var jid: String?
    /// The user name of the session's login, until ``jid`` is known.
    package var user: String?
    /// The domain that the client requested, until ``jid`` is known.
    package var domain: String?
    /// The client's address, `HOST:PORT`.
    package var remote: String?

    /// The direction of the data; nil if the event has none.
    package var direction: Direction?
    /// The leg on which the event happened; nil if it has none.
    package var leg: Leg?
    /// The stream's number within the leg, from 1; 0 before the first.
    package var epoch: Int = 0
    /// Offset of the first byte within the stream ``epoch``, or within the leg if ``epoch`` is 0.
    package var offset: UInt64 = 0
    /// Number of bytes on the wire.
    package var length: UInt64 = 0
    /// Offsets within the item at which reads ended.
    package var chunks: [UInt64] = []
    /// Offsets within the item at which TLS records ended.
    package var tlsRecords: [UInt64] = []
    /// Whether the item arrived in TLS records, and ``tlsRecords`` has all of their borders.
    package var isInTLS = false

    /// The item as sent on the wire, with secrets redacted.
    package var xml: ByteRange?
    /// Local name of the item.
    package var name: ByteRange?
    /// The `from` attribute.
    package var from: ByteRange?
    /// The `to` attribute.
    package var to: ByteRange?
    /// The `type` attribute.
    package var type: ByteRange?
    /// The `id` attribute.
    package var id: ByteRange?
    /// Local name of the first child.
    package var payloadName: ByteRange?
    /// Namespace of the first child.
    package var payloadNamespace = Namespace.none
    /// The URI if ``payloadNamespace`` is ``Namespace/other``.
    package var payloadURI: ByteRange?

    /// The text of ``summary``, which is cheaper to copy.
    private(set) var summaryText: String?

    /// Sequence number of the request that this item answers.
    package var answers: UInt64?
    /// Time between the request and this answer, in nanoseconds.
    package var roundTrip: Int64?

    /// Whether the content is only a part of the bytes on the wire.
    package var isTruncated = false

    /// The originator of the bytes.
    package var origin = Origin.peer

    /// One element if the record has any annotations, otherwise empty.
    var remarks: [Remarks] = []
}

extension Record {
    /// A one-line summary of the item for people; see ``Summary``.
    package var summary: Prose? {
        get { summaryText.map { Prose($0) } }
        set { summaryText = newValue?.text }
    }
}

// In an extension, so that it calls the memberwise initializer: an initializer that sets the properties itself ends
// with a copy of the record, which retains each of its texts.
extension Record {
    /// Creates a record with the fields that every record has.
    package init(
        sequence: UInt64,
        time: Timestamp,
        monotonic: Int64,
        kind: Kind,
        level: Level,
        part: Part,
        session: UInt64 = 0,
        jid: String? = nil,
        user: String? = nil,
        domain: String? = nil,
        remote: String? = nil
    ) {
        self.init(
            sequence: sequence,
            time: time,
            monotonic: monotonic,
            kind: kind,
            level: level,
            part: part,
            session: session,
            jid: jid,
            user: user,
            domain: domain,
            remote: remote,
            remarks: []
        )
    }
}
