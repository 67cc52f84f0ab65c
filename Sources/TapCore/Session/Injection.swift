public import TapRecord
public import XMPPCore

/// A stanza that this program puts into a session's stream.
public struct Injection: Sendable {
    /// Marks pings that the session sends.
    static let pingNumber = UInt64.max
    /// Marks stanzas that the session injects again after a resumption.
    static let repeatedNumber = UInt64.max - 1
    /// Marks stanzas of rules.
    static let ruleNumber = UInt64.max - 2
    /// Marks copies that a rule sends behind a stanza.
    static let copyNumber = UInt64.max - 3

    /// Chosen by the caller; comes back with what becomes of the stanza. The session uses the four highest numbers.
    public var number: UInt64
    /// One whole stanza as it goes out, with nothing but white space around it, which does not go out.
    public var item: [UInt8]
    /// The item goes out as it is, whatever it is, checked for nothing but its size: what is wrong in it is meant. Its
    /// whole stanzas are counted. Default false.
    public var isRaw: Bool
    /// The leg on which it goes out.
    public var destination: Leg
    /// The answer to this iq request is for the caller: it does not pass. Default false.
    public var swallowsAnswer: Bool
    /// Nanoseconds for which it may wait to go out, and its answer may take. Default ``usualTimeout``.
    public var timeout: Int64
    /// 10 s in nanoseconds.
    public static let usualTimeout: Int64 = 10_000_000_000
    /// The longest ``timeout`` that users may ask for: five minutes, in nanoseconds.
    public static let longestTimeout: Int64 = 300_000_000_000

    /// Puts the parts together.
    public init(
        _ item: [UInt8],
        to destination: Leg,
        number: UInt64 = 0,
        isRaw: Bool = false,
        swallowsAnswer: Bool = false,
        timeout: Int64 = Self.usualTimeout
    ) {
        self.number = number
        self.item = item
        self.isRaw = isRaw
        self.destination = destination
        self.swallowsAnswer = swallowsAnswer
        self.timeout = timeout
    }
}

/// What becomes of an ``Injection``: it fails, or it is sent and then, where its answer was asked for, answered or failed.
public enum InjectionOutcome: Sendable, Hashable {
    /// It has gone out.
    case sent
    /// The answer has come, a result or an error, after this many nanoseconds.
    case answered([UInt8], roundTrip: Int64)
    /// It does not go out, or its answer does not come.
    case failed(InjectionFault)
}

/// Why a stanza cannot be injected, or has no answer.
public enum InjectionFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The session is not ready yet: a stanza before that ends it (RFC 6120 §7.1).
    case notOpen
    /// The stream has ended, or ended while the stanza or its answer was waited for.
    case ended
    /// The stream is not decoded, so that nobody knows where an item ends.
    case notDecoded
    /// It is larger than this many bytes, the limit of an item.
    case tooLarge(limit: Int)
    /// It is larger than this many bytes, the most that its receiver has said to accept (XEP-0478).
    case overReceiverLimit(Int, Leg)
    /// It is no XML that may stand in a stream; the offset is that within the item.
    case malformed(ScanFault)
    /// It is no whole item, or none at all.
    case incomplete
    /// More follows behind the first item; the offset is that of the second within the bytes.
    case severalItems(offset: Int)
    /// It ends the stream.
    case streamEnd
    /// It is no iq, message or presence of the stream's namespace.
    case notStanza
    /// The value of its `from` or `to` is no JID.
    case notAddress(String, attribute: String)
    /// It lacks its `from` or `to`, in a stream of servers (RFC 6120 §8.1.1.2, §8.1.2.2) or of a component (XEP-0114).
    case noAddress(attribute: String)
    /// To the server with a sender that is not the session's own, which ends the session (RFC 6120 §8.1.2.1).
    case foreignSender(String, jid: String)
    /// To the server with a sender of another domain than that of the server or component, which ends the stream (RFC 6120
    /// §8.1.2.2, XEP-0114).
    case foreignDomain(String, domain: String)
    /// It is of another kind than the held stanza in whose place it is to go out.
    case otherKind(StanzaHead.Kind)
    /// Its answer was asked for, but it is no iq request with an id.
    case notRequest
    /// As much waits as may: items, or bytes of them.
    case tooManyWaiting(limit: Int)
    /// The item that is passing did not end in time.
    case noBoundary
    /// The answer did not come in time. One that comes later does not pass either.
    case noAnswer

    /// The reason as a clause.
    public var description: String {
        switch self {
        case .notOpen: "the session is not ready yet"
        case .ended: "the stream has ended"
        case .notDecoded: "the stream is not decoded"
        case .tooLarge(let limit): "it is larger than \(limit) bytes, the limit of an item"
        case .overReceiverLimit(let limit, let receiver):
            "it is larger than \(limit) bytes, the most that the \(receiver.name) accepts in a stanza (XEP-0478)"
        case .malformed(let fault): "\(fault.explanation), at offset \(fault.offset)"
        case .incomplete: "it is not a complete stanza"
        case .severalItems(let offset): "more than one stanza; the second begins at offset \(offset)"
        case .streamEnd: "it ends the stream"
        case .notStanza: "it is not an iq, message or presence in the stream's namespace"
        case .notAddress(let value, let attribute): AddressFault.notJID(value, attribute: attribute).description
        case .noAddress(let attribute): AddressFault.missing(attribute: attribute).description
        case .foreignSender(let from, let jid): AddressFault.foreignSender(from, jid: jid).description
        case .foreignDomain(let from, let domain): AddressFault.foreignDomain(from, domain: domain).description
        case .otherKind(let kind): "it is not \(kind == .iq ? "an" : "a") \(kind), as the held stanza is"
        case .notRequest: "only an iq request with an id has an answer"
        case .tooManyWaiting(let limit): "too much is waiting already (limit \(limit))"
        case .noBoundary: "the stanza in transit did not end in time"
        case .noAnswer: "no answer arrived in time"
        }
    }
}

/// An item that waits to be injected, or whose answer is waited for.
final class InjectedItem {
    let number: UInt64
    let swallowsAnswer: Bool
    /// When it is given up, in nanoseconds of the run.
    let deadline: Int64
    /// What goes out.
    let bytes: [UInt8]
    /// The stanza that it is, without white space around it; nil for raw bytes that are something else.
    let event: StreamEvent?
    /// The stanza's bytes.
    let stanza: [UInt8]
    /// Has read the stanza, and so has the declarations that it stands under.
    let decoder: StreamDecoder
    /// How many whole stanzas its receiver finds in it: one, unless it is raw.
    let stanzaCount: Int
    /// It is an iq request.
    let isRequest: Bool

    /// Whether a rule has put it there.
    var isOfRule: Bool { number == Injection.ruleNumber || number == Injection.copyNumber }

    /// Whether it is injected again where its connection is lost before the receiver has it.
    var outlivesConnection: Bool { Self.outlivesConnection(number) }

    /// The same of what has this number.
    static func outlivesConnection(_ number: UInt64) -> Bool {
        number == Injection.ruleNumber || number == Injection.repeatedNumber
    }

    /// Reads an item as if it stood in a stream.
    init(
        _ injection: Injection,
        in stream: borrowing StreamDecoder,
        _ limits: StreamLimits,
        at now: Int64
    ) throws(InjectionFault) {
        guard injection.item.count <= limits.itemBytes else { throw .tooLarge(limit: limits.itemBytes) }
        guard !injection.item.isEmpty else { throw .incomplete }
        let header = Self.header(of: stream)
        let (stanzas, fault) = try Self.findStanzas(in: injection.item, behind: header, limits)
        if let fault, !injection.isRaw { throw fault }
        var decoder = StreamDecoder(limits: limits)
        decoder.append(header.span)
        _ = decoder.next()
        let stanza = fault == nil ? stanzas.first.map { Array(injection.item[$0]) } ?? [] : []
        decoder.append(stanza.span)
        let event = decoder.next()
        let type = stanza.span.slice(event?.head.type?.range ?? .empty)
        isRequest = event?.head.kind == .iq && (type.equals("get") || type.equals("set"))
        bytes = injection.isRaw ? injection.item : stanza
        stanzaCount = stanzas.count
        self.event = event
        self.stanza = stanza
        self.decoder = decoder
        number = injection.number
        swallowsAnswer = injection.swallowsAnswer
        let (end, isEndless) = now.addingReportingOverflow(injection.timeout)
        deadline = isEndless ? .max : end
        guard !swallowsAnswer || isRequest && event?.head.id != nil else { throw .notRequest }
    }

    /// A header with the declarations of the stream's own.
    private static func header(of stream: borrowing StreamDecoder) -> [UInt8] {
        var name: [UInt8] = []
        stream.forEachDeclaration { prefix, uri in
            guard Namespace(uri: uri) == .streams else { return }
            name = []
            name.append(prefix)
            if !name.isEmpty { name.append(UInt8(ascii: ":")) }
        }
        return Array("<".utf8) + name + Array("stream".utf8) + stream.declarations + Array(">".utf8)
    }

    /// Where the whole stanzas of an item stand, and what first keeps it from being one stanza. All is read before any of
    /// it is believed.
    private static func findStanzas(
        in item: [UInt8],
        behind header: [UInt8],
        _ limits: StreamLimits
    ) throws(InjectionFault) -> (stanzas: [Range<Int>], fault: InjectionFault?) {
        var decoder = StreamDecoder(limits: limits)
        decoder.append(header.span)
        guard case .item(.header)? = decoder.next()?.kind else { throw .notDecoded }
        let start = decoder.position
        decoder.append(item.span)
        var stanzas: [Range<Int>] = []
        var fault: InjectionFault?
        while let event = next(&decoder) {
            let begin = Int(event.position - start)
            switch event.kind {
            case .item(.whitespace): continue
            case .item(.element) where event.head.kind != .nonza:
                // A peer counts no stanza of another content namespace, and closes the stream (RFC 6120 §4.9.3.10).
                if event.head.namespace.namespace != decoder.contentNamespace { fault = fault ?? .notStanza }
                if !stanzas.isEmpty { fault = fault ?? .severalItems(offset: begin) }
                stanzas.append(begin..<begin + Int(event.length))
            case .item(.element), .item(.declaration), .item(.header): fault = fault ?? .notStanza
            case .item(.end): fault = fault ?? .streamEnd
            case .fragment, .torn: fault = fault ?? .incomplete
            case .fault(var found):
                // The stream's offset becomes the item's.
                found.offset -= min(found.offset, UInt64(header.count))
                fault = fault ?? .malformed(found)
            }
        }
        return (stanzas, stanzas.isEmpty ? fault ?? .incomplete : fault)
    }

    private static func next(_ decoder: inout StreamDecoder) -> StreamEvent? {
        if let event = decoder.next() { return event }
        return decoder.finish()
    }
}

/// What was injected into a session and is not over: items that wait to go out, and requests whose answers do not pass.
///
/// A class that a session has only while there is any: of most it is one empty reference.
final class Injections {
    /// The most items that may wait, together with the answers that are waited for.
    static let capacity = IQTracker.capacity

    /// Requests whose answers do not pass, also for a while after their deadline.
    var requests = IQTracker()
    private var waiting: [(item: InjectedItem, direction: Direction)] = []
    /// Who waits for an answer, by the sequence number of the request; and by which direction it comes.
    private var awaited: [UInt64: (item: InjectedItem, direction: Direction)] = [:]
    /// How long answers that come after their deadline are still kept from passing, in nanoseconds.
    static let lateness: Int64 = 300_000_000_000
    /// When they are not any more; nil where none has missed its deadline.
    private var forgetting: Int64?
    /// Directions that are stored for this alone.
    var stored: Set<Direction> = []

    /// Whether there is nothing that the session would have to do.
    var isIdle: Bool { waiting.isEmpty && awaited.isEmpty && stored.isEmpty && requests.count == 0 }

    /// When the next of them is given up, in nanoseconds of the run; nil where none waits.
    var deadline: Int64? { ((waiting + awaited.values).map(\.item.deadline) + [forgetting ?? .max]).min() }

    func append(_ item: InjectedItem, _ direction: Direction, byteLimit: Int) throws(InjectionFault) {
        guard waiting.count + awaited.count < Self.capacity else { throw .tooManyWaiting(limit: Self.capacity) }
        let bytes = waiting.reduce(item.bytes.count) { $0 + $1.item.bytes.count }
        guard bytes <= byteLimit else { throw .tooManyWaiting(limit: byteLimit) }
        waiting.append((item, direction))
    }

    /// Takes out what rules, or an earlier connection, have put into a direction and is not sent, where `isKept` keeps it.
    func removeUnsent(_ direction: Direction, _ isKept: ([UInt8]) -> Bool) {
        waiting.removeAll {
            $0.direction == direction && $0.item.outlivesConnection && isKept($0.item.bytes)
        }
    }

    func isWaiting(_ direction: Direction) -> Bool { waiting.contains { $0.direction == direction } }

    func takeFirst(_ direction: Direction) -> InjectedItem? {
        waiting.firstIndex { $0.direction == direction }.map { waiting.remove(at: $0).item }
    }

    /// Has the answer to an item waited for, that comes by a direction.
    func await(_ item: InjectedItem, _ sequence: UInt64, by direction: Direction) {
        awaited[sequence] = (item, direction)
    }

    /// Whether an answer may come by the direction that is not to pass.
    func expects(_ direction: Direction) -> Bool { requests.isPending(direction.opposite) }

    /// Whose the answer to a request is; nil where nobody waits for it any more.
    func takeAwaited(_ sequence: UInt64) -> UInt64? { awaited.removeValue(forKey: sequence)?.item.number }

    /// Gives up what waits for a direction, or for an answer by it; their numbers.
    func removeAll(_ direction: Direction) -> [UInt64] {
        let gone = waiting.filter { $0.direction == direction } + awaited.values.filter { $0.direction == direction }
        waiting.removeAll { $0.direction == direction }
        awaited = awaited.filter { $0.value.direction != direction }
        return gone.map(\.item.number)
    }

    /// Gives up what has waited too long.
    func expire(at now: Int64) -> [(number: UInt64, direction: Direction, fault: InjectionFault)] {
        let unsent = waiting.filter { $0.item.deadline <= now }
        let unanswered = awaited.values.filter { $0.item.deadline <= now }
        waiting.removeAll { $0.item.deadline <= now }
        awaited = awaited.filter { $0.value.item.deadline > now }
        if !unanswered.isEmpty { forgetting = now &+ Self.lateness }
        if let due = forgetting, due <= now {
            // An answer that is still waited for may come by the same direction.
            forgetting = awaited.isEmpty ? nil : now &+ Self.lateness
            if awaited.isEmpty { requests = IQTracker() }
        }
        return unsent.map { ($0.item.number, $0.direction, .noBoundary) }
            + unanswered.map { ($0.item.number, $0.direction, .noAnswer) }
    }
}
