import XMPPCore

/// Compares the parser core's results for an input, split in different ways, with those of libxml2.
enum ParserTarget {
    static func run(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 3 else { return nil }
        let input = FuzzInput(bytes)
        let whole = Observation(input.bytes, cuts: [], limits: input.limits)
        let cut = Observation(input.bytes, cuts: input.cuts, limits: input.limits)
        guard whole == cut else { return "cut at \(input.cuts), in one piece:\n\(whole)\nin pieces:\n\(cut)" }
        if let contradiction = ItemComparison.shared.firstContradiction(input) { return "item: \(contradiction)" }
        return DocumentComparison.contradiction(input).map { "document: \($0)" }
    }
}

/// An input of the parser: three bytes that select the settings, followed by XML.
struct FuzzInput {
    /// The XML, after a stream header if one is chosen.
    var bytes: [UInt8]
    var cuts: [Int] = []
    var limits = StreamLimits.authenticated

    private static let headers = [
        "",
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>",
        "<?xml version='1.0'?><s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns:p='urn:p' xmlns:q='jabber:client'>",
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:p='u'><p:a>",
    ]

    init(_ data: [UInt8]) {
        let (mode, seed, step) = (data[0], data[1], data[2])
        bytes = Array(Self.headers[Int(mode & 3)].utf8) + data[3...]
        if mode & 4 != 0 {
            limits = StreamLimits(itemBytes: 90, tagBytes: 120, depth: 5, attributes: 4, nameBytes: 12, namespaces: 6)
        }
        cuts = Self.cuts(of: bytes.count, seed: seed, step: step)
    }

    /// Returns reproducible cuts: at most 32 bytes apart, or fewer by `step`.
    static func cuts(of count: Int, seed: UInt8, step: UInt8) -> [Int] {
        var state = UInt32(seed) &* 2_654_435_761 &+ UInt32(step)
        var position = 0
        var cuts: [Int] = []
        while true {
            state = state &* 1_664_525 &+ 1_013_904_223
            position += 1 + Int((state >> 16) % (UInt32(step & 31) + 1))
            guard position < count else { return cuts }
            cuts.append(position)
        }
    }
}

/// A decoder's results for an input, in a form that does not depend on the split.
struct Observation: Equatable, CustomStringConvertible {
    struct Event: Equatable {
        var kind: String
        var epoch: Int
        var position: UInt64
        var length: UInt64
        var head = StanzaHead()
    }

    var events: [Event] = []
    var description: String { events.map { "\($0)" }.joined(separator: "\n") }

    init(_ input: [UInt8], cuts: [Int], limits: StreamLimits) {
        var decoder = StreamDecoder(limits: limits)
        var start = 0
        var fragments: UInt64 = 0
        for end in cuts + [input.count] {
            decoder.append(input.span.extracting(start..<end))
            start = end
            while let event = decoder.next() { note(event, &fragments) }
        }
        if let event = decoder.finish() { note(event, &fragments) }
    }

    private mutating func note(_ event: StreamEvent, _ fragments: inout UInt64) {
        switch event.kind {
        case .fragment: fragments += event.length
        case .fault(let fault):
            let position = event.position - fragments
            events.append(Event(kind: "\(fault)", epoch: event.epoch, position: position, length: 0))
        case .incomplete:
            let length = event.length + fragments
            events.append(Event(kind: "torn", epoch: event.epoch, position: event.position - fragments, length: length))
        case .item(.whitespace):
            if let last = events.last, last.kind == "whitespace", last.epoch == event.epoch {
                events[events.count - 1].length += event.length
            } else {
                events.append(
                    Event(kind: "whitespace", epoch: event.epoch, position: event.position, length: event.length)
                )
            }
        case .item(let kind):
            var noted = Event(kind: "\(kind)", epoch: event.epoch, position: event.position, length: event.length)
            noted.head = event.head
            if event.isTruncated {
                noted.kind += fragments == event.length ? " truncated" : " truncated, of another length"
                fragments = 0
            }
            events.append(noted)
        }
    }
}
