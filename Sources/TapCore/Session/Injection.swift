package import TapRecord
import TapRules
package import XMPPCore

/// A stanza that xmpptap inserts into a session's stream.
package struct Injection: Sendable {
    /// The injection number that marks pings of the session.
    static let pingNumber = UInt64.max
    /// The injection number that marks stanzas injected again after a resumption.
    static let repeatedNumber = UInt64.max - 1
    /// The injection number that marks stanzas of rules.
    static let ruleNumber = UInt64.max - 2
    /// The injection number that marks copies that a rule sends after a stanza.
    static let copyNumber = UInt64.max - 3

    /// A number that the caller chooses, repeated in the outcome. The session itself uses the four highest numbers.
    package var number: UInt64
    /// One whole stanza. White space around the stanza is not sent.
    package var item: [UInt8]
    /// Whether to send the item unchanged, and check only its size, because its errors are intended. The whole stanzas
    /// in it are counted. Default false.
    package var isRaw: Bool
    /// The leg on which the item is sent.
    package var destination: Leg
    /// Whether the answer to this iq request is returned to the caller instead of being forwarded. Default false.
    package var swallowsAnswer: Bool
    /// The time limit in nanoseconds, for sending the item and for its answer. Default ``usualTimeout``.
    package var timeout: Int64
    /// The default of ``timeout``: 10 s, in nanoseconds.
    package static let usualTimeout: Int64 = 10_000_000_000
    /// The longest ``timeout`` that users may request: five minutes, in nanoseconds.
    package static let maximumTimeout: Int64 = 300_000_000_000

    package init(
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

/// The outcome of an ``Injection``: it fails, or it is sent. If its answer was requested, a second outcome follows.
package enum InjectionOutcome: Sendable, Hashable {
    /// The item was sent.
    case sent
    /// The answer, a result or an error, arrived after this time in nanoseconds.
    case answered([UInt8], roundTrip: Int64)
    /// The item was not sent, or its answer did not arrive.
    case failed(InjectionFault)
}

/// The reason why an item cannot be injected, or has no answer.
package enum InjectionFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The session is not open yet; a stanza before that would end it (RFC 6120 §7.1).
    case notOpen
    /// The stream ended before the item was sent or its answer arrived.
    case ended
    /// The stream is not decoded, so the item boundaries are unknown.
    case notDecoded
    /// Stream management is on, but stanzas can no longer be counted, so that the item would make the counts of both ends
    /// differ.
    case notCounted
    /// The item is larger than this many bytes, the limit for an item.
    case tooLarge(limit: Int)
    /// The item is larger than this many bytes, the largest size that its receiver accepts (XEP-0478).
    case overReceiverLimit(Int, Leg)
    /// The item is not valid XML for a stream; the fault's offset is relative to the item.
    case malformed(ScanFault)
    /// The item is incomplete or empty.
    case incomplete
    /// More data follows the first item; the offset is that of the second item within the bytes.
    case severalItems(offset: Int)
    /// The item ends the stream.
    case streamEnd
    /// The item is not an iq, message or presence in the stream's namespace.
    case notStanza
    /// The value of the item's `from` or `to` is not a JID.
    case notAddress(String, attribute: String)
    /// The item has no `from` or `to`, which a stream of servers (RFC 6120 §8.1.1.2, §8.1.2.2) or of a component
    /// (XEP-0114) requires.
    case noAddress(attribute: String)
    /// An item to the server has a `from` other than the session's own JID, which would end the session (RFC 6120
    /// §8.1.2.1).
    case foreignSender(String, jid: String)
    /// An item to the server has a `from` in another domain than that of the server or component, which would end the
    /// stream (RFC 6120 §8.1.2.2, XEP-0114).
    case foreignDomain(String, domain: String)
    /// The item has another kind than the held stanza that it is to replace.
    case otherKind(StanzaHead.Kind)
    /// An answer was requested, but the item is not an iq request with an id.
    case notRequest
    /// Too many items, or too many bytes, are waiting.
    case tooManyWaiting(limit: Int)
    /// The current item of the stream did not end in time.
    case noBoundary
    /// The answer did not arrive in time. A later answer is not forwarded either.
    case noAnswer

    /// The reason as a clause.
    package var description: String {
        switch self {
        case .notOpen: "the session is not ready yet"
        case .ended: "the stream has ended"
        case .notDecoded: "the stream is not decoded"
        case .notCounted:
            "stream management is on, and its stanzas can no longer be counted, because a part of a stream was not readable"
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

/// An item that waits to be injected, or for its answer.
final class InjectedItem {
    let number: UInt64
    let swallowsAnswer: Bool
    /// The time limit, in nanoseconds of the run.
    let deadline: Int64
    /// The bytes to send.
    let bytes: [UInt8]
    /// The stanza without the white space around it; nil for raw bytes that are not one stanza.
    let event: StreamEvent?
    /// The stanza's bytes.
    let stanza: [UInt8]
    /// A decoder that has read the stanza, with the namespace declarations of the stream.
    let decoder: StreamDecoder
    /// The number of whole stanzas that the receiver counts: 1, unless the item is raw.
    let stanzaCount: Int
    /// Whether the item is an iq request.
    let isRequest: Bool

    /// The purpose of the request.
    var purpose: IQTracker.Purpose { event?.head.payloadNamespace.namespace == .ping ? .ping : .ordinary }

    /// Whether a rule injected the item.
    var isOfRule: Bool { number == Injection.ruleNumber || number == Injection.copyNumber }

    /// Whether the item is injected again if the connection is lost before the receiver has received it.
    var outlivesConnection: Bool { Self.outlivesConnection(number) }

    /// Returns whether an item with this number is injected again if the connection is lost before the receiver has
    /// received it.
    static func outlivesConnection(_ number: UInt64) -> Bool {
        number == Injection.ruleNumber || number == Injection.repeatedNumber
    }

    /// Parses an item in the context of a stream.
    init(
        _ injection: Injection,
        in stream: borrowing StreamDecoder,
        _ limits: StreamLimits,
        at now: Int64
    ) throws(InjectionFault) {
        guard injection.item.count <= limits.itemBytes else { throw .tooLarge(limit: limits.itemBytes) }
        guard !injection.item.isEmpty else { throw .incomplete }
        let header = Self.header(of: stream)
        let item = stream.isOfMessages ? StreamDecoder.qualified(message: injection.item) : injection.item
        let (stanzas, fault) = try Self.findStanzas(in: item, after: header, limits)
        if let fault, !injection.isRaw { throw fault }
        var decoder = StreamDecoder(limits: limits)
        decoder.append(header.span)
        _ = decoder.next()
        let stanza = fault == nil ? stanzas.first.map { Array(item[$0]) } ?? [] : []
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

    /// Returns a stream header with the stream's namespace declarations.
    private static func header(of stream: borrowing StreamDecoder) -> [UInt8] {
        if stream.isOfMessages {
            return XMLWriter.bytes {
                $0.start("stream:stream", xmlns: "jabber:client", ["xmlns:stream": "http://etherx.jabber.org/streams"])
                $0.text("")
            }
        }
        var name: [UInt8] = []
        stream.forEachDeclaration { prefix, uri in
            guard Namespace(uri: uri) == .streams else { return }
            name = []
            name.append(prefix)
            if !name.isEmpty { name.append(UInt8(ascii: ":")) }
        }
        return Array("<".utf8) + name + Array("stream".utf8) + stream.declarations + Array(">".utf8)
    }

    /// Returns the positions of the whole stanzas in an item, and the first reason why the item is not one stanza.
    /// Reads the whole item, even after a fault.
    private static func findStanzas(
        in item: [UInt8],
        after header: [UInt8],
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
                // A peer does not count a stanza in another content namespace, and closes the stream (RFC 6120
                // §4.9.3.10).
                if event.head.namespace.namespace != decoder.contentNamespace { fault = fault ?? .notStanza }
                if !stanzas.isEmpty { fault = fault ?? .severalItems(offset: begin) }
                stanzas.append(begin..<begin + Int(event.length))
            case .item(.element), .item(.declaration), .item(.header): fault = fault ?? .notStanza
            case .item(.end): fault = fault ?? .streamEnd
            case .fragment, .incomplete: fault = fault ?? .incomplete
            case .fault(var found):
                // Convert the offset in the stream to an offset in the item.
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

/// The unfinished injections of a session: items that wait to be sent, and requests whose answers the caller awaits.
///
/// A class, allocated only if there are injections: most sessions store only a nil reference.
final class Injections {
    /// The largest number of waiting items and awaited answers together.
    static let capacity = IQTracker.capacity

    /// Requests whose answers must not be forwarded, including requests past their deadline.
    var requests = IQTracker()
    private var waiting: [(item: InjectedItem, direction: Direction)] = []
    /// The items with awaited answers, keyed by the sequence number of the request, with the direction of the answer.
    private var awaited: [UInt64: (item: InjectedItem, direction: Direction)] = [:]
    /// The time in nanoseconds after a missed deadline, during which the late answer is still not forwarded.
    static let lateness: Int64 = 300_000_000_000
    /// The time at which ``lateness`` ends, in nanoseconds of the run; nil if no answer missed its deadline.
    private var forgetting: Int64?

    /// Takes over requests of an earlier connection. Their callers no longer await the answers.
    func inherit(_ earlier: IQTracker, at now: Int64) {
        requests.append(earlier)
        forgetting = max(forgetting ?? .min, now &+ Self.lateness)
    }

    /// Whether the session has nothing to do for injections.
    var isIdle: Bool { waiting.isEmpty && awaited.isEmpty && requests.count == 0 }

    /// The next time limit, in nanoseconds of the run; nil if there is none.
    var deadline: Int64? { ((waiting + awaited.values).map(\.item.deadline) + [forgetting ?? .max]).min() }

    func append(_ item: InjectedItem, _ direction: Direction, byteLimit: Int) throws(InjectionFault) {
        guard waiting.count + awaited.count < Self.capacity else { throw .tooManyWaiting(limit: Self.capacity) }
        let bytes = waiting.reduce(item.bytes.count) { $0 + $1.item.bytes.count }
        guard bytes <= byteLimit else { throw .tooManyWaiting(limit: byteLimit) }
        waiting.append((item, direction))
    }

    /// Removes the unsent items of rules, or of an earlier connection, for which `isKept` returns true.
    func removeUnsent(_ direction: Direction, _ isKept: ([UInt8]) -> Bool) {
        waiting.removeAll {
            $0.direction == direction && $0.item.outlivesConnection && isKept($0.item.bytes)
        }
    }

    func isWaiting(_ direction: Direction) -> Bool { waiting.contains { $0.direction == direction } }

    func takeFirst(_ direction: Direction) -> InjectedItem? {
        waiting.firstIndex { $0.direction == direction }.map { waiting.remove(at: $0).item }
    }

    /// Awaits the answer to an item, in this direction.
    func await(_ item: InjectedItem, _ sequence: UInt64, by direction: Direction) {
        awaited[sequence] = (item, direction)
    }

    /// Returns whether an answer that must not be forwarded may arrive in the direction.
    func expects(_ direction: Direction) -> Bool { requests.isPending(direction.opposite) }

    /// Removes and returns the number of the item that awaits the answer to a request; nil if there is none.
    func takeAwaited(_ sequence: UInt64) -> UInt64? { awaited.removeValue(forKey: sequence)?.item.number }

    /// Removes the items that wait to be sent in a direction, or for an answer in it; returns their numbers.
    func removeAll(_ direction: Direction) -> [UInt64] {
        let gone = waiting.filter { $0.direction == direction } + awaited.values.filter { $0.direction == direction }
        waiting.removeAll { $0.direction == direction }
        awaited = awaited.filter { $0.value.direction != direction }
        return gone.map(\.item.number)
    }

    /// Removes the items past their time limit; returns them with the reason.
    func expire(at now: Int64) -> [(number: UInt64, direction: Direction, fault: InjectionFault)] {
        let unsent = waiting.filter { $0.item.deadline <= now }
        let unanswered = awaited.values.filter { $0.item.deadline <= now }
        waiting.removeAll { $0.item.deadline <= now }
        awaited = awaited.filter { $0.value.item.deadline > now }
        if !unanswered.isEmpty { forgetting = now &+ Self.lateness }
        if let due = forgetting, due <= now {
            // Another awaited answer may still arrive, so the requests are kept.
            forgetting = awaited.isEmpty ? nil : now &+ Self.lateness
            if awaited.isEmpty { requests = IQTracker() }
        }
        return unsent.map { ($0.item.number, $0.direction, .noBoundary) }
            + unanswered.map { ($0.item.number, $0.direction, .noAnswer) }
    }
}
