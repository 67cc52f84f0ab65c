package import TapRecord
internal import XMPPCore

/// The items of one side's sessions as digests of about 70 bytes each, so that millions of stanzas can be compared
/// without their texts in memory.
///
/// It can be shared between tasks because one task finishes filling it before another reads it.
package final class RecordedDigests: @unchecked Sendable {
    /// The digest of an item.
    struct Item {
        let shape: UInt64
        let likeness: UInt64
        /// Key of sender and recipient; only for messages.
        let pair: UInt64
        let sequence: UInt64
        /// Nanoseconds since the run began.
        let at: Int64
        // The order of the properties avoids padding, because a recording may have millions of items.
        /// Index of the item's first value in the values of the session.
        let firstValue: UInt32
        /// A hash of the item's name, direction and sender; of an optional stanza also of its payload.
        let loose: UInt32
        /// A hash of the item's name, direction and payload; of an optional stanza also of its sender.
        let content: UInt32
        /// A hash of its optional elements; 0 if it has none.
        let optional: UInt32
        /// Index of the request that it answers; -1 for other items.
        var request: Int32
        let valueCount: UInt16
        /// The role in two bits, then the bits of ``direction`` and ``isUndecided``.
        private let flags: UInt8

        var role: Role { Role(rawValue: flags & 3) ?? .other }
        var direction: Direction { flags & 4 == 0 ? .send : .recv }
        var isUndecided: Bool { flags & 8 != 0 }

        init(
            _ digest: StanzaDigest,
            _ heads: StanzaHeads,
            _ record: Record,
            _ direction: Direction,
            role: Role,
            pair: UInt64,
            request: Int32,
            values: Range<Int>
        ) {
            let side: UInt64 = direction == .send ? 12 : 13
            shape = Hash.mix(digest.shape, side)
            likeness = Hash.mix(heads.whole, side)
            self.pair = pair
            sequence = record.sequence
            at = record.monotonic
            firstValue = UInt32(truncatingIfNeeded: values.lowerBound)
            let (loose, content) =
                heads.isOptional ? (heads.contentOfSender, heads.contentOfSender) : (heads.loose, heads.content)
            self.loose = UInt32(truncatingIfNeeded: Hash.mix(loose, side))
            self.content = UInt32(truncatingIfNeeded: Hash.mix(content, side))
            optional = UInt32(truncatingIfNeeded: digest.optional)
            self.request = request
            valueCount = UInt16(clamping: values.count)
            flags = role.rawValue | (direction == .send ? 0 : 4) | (digest.isUndecided ? 8 : 0)
        }
    }

    enum Role: UInt8 {
        case request, answer, message, other
    }

    /// The digests of a session.
    struct Session {
        var items: [Item] = []
        var values: [VolatileValue] = []
        /// Number of items that cannot be compared: without XML, or not a single element.
        var unreadable = 0
        /// Indices of unanswered requests, by id and direction.
        fileprivate var open: [UInt64: Int32] = [:]
        fileprivate var decoders: [Direction: Decoder] = [:]
    }

    /// A decoder that has read a stream header. The items of the stream are parsed with its declarations.
    fileprivate final class Decoder {
        var decoder = StreamDecoder(limits: StreamLimits.ofRecordings)

        init(_ header: Span<UInt8>) {
            decoder.append(header)
            while decoder.next() != nil {}
        }
    }

    /// The numbers, in all sessions, for which a rule allows a tolerance.
    var numbers: [Double] { digester.numbers }
    private(set) var sessions: [SessionKey: Session] = [:]
    /// The values that the clients stored on the server.
    package private(set) var writtenValues: WrittenValues
    private let wanted: Set<SessionKey>
    private let senders: SenderNumbers
    private var digester: StanzaDigester
    private var reader = ElementReader()
    private var run = ""
    private let client: Decoder
    /// The session of the last item, kept outside the dictionary to modify it in place.
    private var session = Session()
    private var selected: SessionKey?

    /// Creates digests that keep the items of the `wanted` sessions.
    ///
    /// - Parameters:
    ///   - bindings: The accounts of both sides.
    ///   - senders: The clients of this side.
    ///   - isRecorded: Whether this is the recorded side; otherwise the live one.
    package init(
        _ wanted: Set<SessionKey>,
        rules: NoiseRules,
        bindings: ValueBindings,
        senders: SenderNumbers = SenderNumbers(),
        isRecorded: Bool
    ) {
        self.wanted = wanted
        self.senders = senders
        let names = isRecorded ? bindings.recordedNames : bindings.liveNames
        digester = StanzaDigester(rules: rules, names: names)
        writtenValues = WrittenValues(names: names)
        client = Decoder(
            [UInt8]("<stream:stream\(String(decoding: StanzaForm.clientDeclarations, as: UTF8.self))>".utf8).span
        )
    }

    /// Handles the header of a part of the recording.
    package func add(_ header: RecordHeader) {
        run = header.run
        writtenValues.begin(run: run)
    }

    /// Adds a record. Items are compared as the receiving peer got them; items that the proxy itself sent are ignored.
    package func add(_ line: RecordLine) {
        let record = line.record
        guard record.session != 0, record.origin == .peer, let direction = record.direction else { return }
        switch record.kind {
        case .stanza: break
        case .element where record.isCompared(line.content.span): break
        case .streamOpen:
            guard let xml = record.xml else { return }
            select(SessionKey(run: run, number: record.session))
            session.decoders[direction] = Decoder(line.content.span.slice(xml))
            return
        default: return
        }
        let key = SessionKey(run: run, number: record.session)
        guard wanted.contains(key) else { return }
        select(key)
        guard let xml = record.delivered, !record.isTruncated else {
            // A dropped item was not delivered, so it is not compared.
            if record.xml == nil || record.isTruncated { session.unreadable += 1 }
            return
        }
        let decoder = session.decoders[direction] ?? client
        guard let element = reader.read(line.content.span.slice(xml), in: decoder.decoder) else {
            session.unreadable += 1
            return
        }
        if direction == .send {
            writtenValues.add(element, at: writtenValues.moment(record.sequence, run: run))
        }
        add(element, record, direction)
    }

    /// Completes the digests after the last record.
    package func finish() {
        if let selected { sessions[selected] = session }
        selected = nil
        for key in sessions.keys {
            sessions[key]?.open = [:]
            sessions[key]?.decoders = [:]
        }
    }

    private func select(_ key: SessionKey) {
        guard selected != key else { return }
        if let selected { sessions[selected] = session }
        session = sessions.removeValue(forKey: key) ?? Session()
        selected = key
    }

    private func add(_ element: Element, _ record: Record, _ direction: Direction) {
        let digest = digester.digest(element)
        let heads = StanzaHeads(element, digester.names, senders, digester.rules, isOfServer: direction == .recv)
        let side: UInt64 = direction == .send ? 12 : 13
        var pair: UInt64 = 0
        var id: UInt64 = 0
        element.withAttribute("id") { id = Hash.of($0, seed: 14) }
        var request: Int32 = -1
        let role: Role
        switch heads.role {
        case .request:
            role = .request
            session.open[Hash.mix(id, side)] = Int32(truncatingIfNeeded: session.items.count)
        case .answer:
            role = .answer
            let other: UInt64 = direction == .send ? 13 : 12
            request = session.open.removeValue(forKey: Hash.mix(id, other)) ?? -1
        case .message(let key):
            role = .message
            pair = Hash.mix(key, side)
        case .other: role = .other
        }
        session.items.append(
            Item(
                digest,
                heads,
                record,
                direction,
                role: role,
                pair: pair,
                request: request,
                values: session.values.count..<session.values.count + digester.values.count
            )
        )
        session.values += digester.values
    }
}

extension StreamLimits {
    /// No limits: recordings contain only accepted items.
    static let ofRecordings = StreamLimits(
        itemBytes: 1 << 30,
        tagBytes: 1 << 30,
        depth: 1 << 30,
        attributes: 1 << 30,
        nameBytes: 1 << 30,
        namespaces: 1 << 30
    )
}

extension Record {
    /// Returns whether an element other than a stanza is compared. TLS, SASL and the acknowledgements of stream
    /// management differ in each session.
    func isCompared(_ content: Span<UInt8>) -> Bool {
        guard part != .sasl, part != .tls, let name else { return false }
        let text = content.slice(name)
        return !text.equals("r") && !text.equals("a")
    }
}
