internal import XMPPCore

/// Checks that bytes are one whole element that the scanner accepts within a stream, and reads it.
///
/// What a rule puts into a stream goes through the same scanner as what comes from a peer.
struct ItemChecker: ~Copyable {
    /// Why bytes cannot go out.
    struct Problem: Error { var message: String }

    /// Has read the last element that was accepted.
    private(set) var decoder = StreamDecoder(limits: .authenticated)
    private var reader = ElementReader()
    private lazy var outline = ItemOutline()
    /// The last element that was accepted; nil where the last one was not.
    private(set) var last: StreamEvent?
    /// The namespace of the stream that `decoder` stands in; nil where it stands in none.
    private var content: Namespace?

    init() {}

    /// Reads an element as it would stand in a stream of that content namespace.
    mutating func check(_ bytes: [UInt8], content: Namespace) throws(Problem) -> Element {
        do throws(Problem) {
            return try read(bytes, content)
        } catch {
            self.content = nil
            throw error
        }
    }

    /// Reads an element that is to go out, with its head; nil where it cannot stand in a stream.
    mutating func scan(_ bytes: [UInt8], content: Namespace) -> (event: StreamEvent, element: Element)? {
        guard let element = try? check(bytes, content: content), let last else { return nil }
        return (last, element)
    }

    private mutating func read(_ bytes: [UInt8], _ content: Namespace) throws(Problem) -> Element {
        if self.content != content {
            decoder = StreamDecoder(limits: .authenticated, outline: outline)
            decoder.append(Self.header(content).span)
            while decoder.next() != nil {}
            self.content = content
        }
        decoder.append(bytes.span)
        last = nil
        guard let event = decoder.next() else { throw Problem(message: "the element is not complete") }
        switch event.kind {
        case .item(.element) where !event.isTruncated: break
        case .fault(let fault): throw Problem(message: fault.explanation)
        case .fragment: throw Problem(message: "larger than \(decoder.limits.itemBytes) bytes, the limit of a stanza")
        default: throw Problem(message: "not an element")
        }
        guard decoder.pendingCount == 0 else { throw Problem(message: "more than one element") }
        guard let element = reader.read(decoder) else { throw Problem(message: "the element cannot be read") }
        last = event
        return element
    }

    private static func header(_ content: Namespace) -> [UInt8] {
        Array("<stream:stream xmlns='\(content.uri)' xmlns:stream='\(Namespace.streams.uri)' version='1.0'>".utf8)
    }
}
