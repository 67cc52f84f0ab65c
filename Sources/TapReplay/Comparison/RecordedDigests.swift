public import TapRecord
internal import XMPPCore

/// The items of the sessions of one side as digests: some 70 bytes an item, so that a comparison of millions of stanzas holds
/// none of their texts.
///
/// Sendable: one task fills it, and then another reads it.
public final class RecordedDigests: @unchecked Sendable {
    /// An item.
    struct Item {
        let shape: UInt64
        let likeness: UInt64
        /// Of a message who talks to whom.
        let pair: UInt64
        let sequence: UInt64
        /// Nanoseconds since the run began.
        let at: Int64
        /// Where its values begin in the session's.
        let firstValue: UInt32
        let valueCount: UInt16
        let role: Role
        /// A hash of its name and direction.
        let kind: UInt32
        let direction: Direction
        let isUndecided: Bool
        /// The number of the request that it answers; -1 of everything else.
        var request: Int32
    }

    enum Role: UInt8 {
        case request, answer, message, other
    }

    /// A session.
    struct Session {
        var items: [Item] = []
        var values: [VolatileValue] = []
        /// Items that cannot be compared: without their XML, or not one element.
        var unreadable = 0
        /// Requests that wait for their answer, by id and direction.
        fileprivate var open: [UInt64: Int32] = [:]
        fileprivate var decoders: [Direction: Decoder] = [:]
    }

    /// The beginning of a stream, in which its items are read.
    fileprivate final class Decoder {
        var decoder = StreamDecoder(limits: StreamLimits.ofRecordings)

        init(_ header: Span<UInt8>) {
            decoder.append(header)
            while decoder.next() != nil {}
        }
    }

    /// The numbers that rules let differ, of all sessions.
    var numbers: [Double] { digester.numbers }
    private(set) var sessions: [SessionKey: Session] = [:]
    private let wanted: Set<SessionKey>
    private var digester: StanzaDigester
    private var reader = ElementReader()
    private var run = ""
    private let client: Decoder
    /// The session of the last item, out of the dictionary while it changes.
    private var session = Session()
    private var selected: SessionKey?

    /// Takes the items of those sessions.
    ///
    /// - Parameters:
    ///   - bindings: The accounts of both sides.
    ///   - isRecorded: Whether it is the recorded side, not the live one.
    public init(_ wanted: Set<SessionKey>, rules: NoiseRules, bindings: ValueBindings, isRecorded: Bool) {
        self.wanted = wanted
        digester = StanzaDigester(rules: rules, names: isRecorded ? bindings.recordedNames : bindings.liveNames)
        client = Decoder(
            [UInt8]("<stream:stream\(String(decoding: StanzaForm.clientDeclarations, as: UTF8.self))>".utf8).span
        )
    }

    /// Takes the header of a part of the recording.
    public func take(_ header: RecordHeader) { run = header.run }

    /// Takes the next record. Items count as the receiving peer got them; what the proxy itself sent does not count.
    public func take(_ line: RecordLine) {
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
            // What did not get there is not there.
            if record.xml == nil || record.isTruncated { session.unreadable += 1 }
            return
        }
        let decoder = session.decoders[direction] ?? client
        guard let element = reader.read(line.content.span.slice(xml), in: decoder.decoder) else {
            session.unreadable += 1
            return
        }
        add(element, record, direction)
    }

    /// Nothing more comes.
    public func finish() {
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
        let heads = StanzaHeads(element, digester.names)
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
                shape: Hash.mix(digest.shape, side),
                likeness: Hash.mix(heads.whole, side),
                pair: pair,
                sequence: record.sequence,
                at: record.monotonic,
                firstValue: UInt32(truncatingIfNeeded: session.values.count),
                valueCount: UInt16(clamping: digester.values.count),
                role: role,
                kind: UInt32(truncatingIfNeeded: Hash.mix(heads.kind, side)),
                direction: direction,
                isUndecided: digest.isUndecided,
                request: request
            )
        )
        session.values += digester.values
    }
}

extension StreamLimits {
    /// No limit: a recording holds what was accepted.
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
    /// Whether an element that is no stanza is compared: not those that log in, which are made anew each time, nor the counts of
    /// stream management.
    func isCompared(_ content: Span<UInt8>) -> Bool {
        guard part != .sasl, part != .tls, let name else { return false }
        let text = content.slice(name)
        return !text.equals("r") && !text.equals("a")
    }
}
