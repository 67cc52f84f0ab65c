package import XMPPCore

/// Checks that bytes are exactly one element that is valid in a stream, and parses it.
///
/// Uses the scanner that also reads the peers' streams.
package struct ItemChecker: ~Copyable {
    /// The reason why bytes are not a valid element.
    package struct Problem: Error { package var message: String }

    /// The decoder after the last accepted element.
    private(set) package var decoder = StreamDecoder(limits: .authenticated)
    private var reader = ElementReader()
    private lazy var outline = ItemOutline()
    /// The event of the last element; nil if it was refused.
    private(set) var last: StreamEvent?
    /// The content namespace of the stream open in `decoder`; nil if there is none.
    private var content: Namespace?

    package init() {}

    /// Parses an element as part of a stream with this content namespace.
    package mutating func check(_ bytes: [UInt8], content: Namespace) throws(Problem) -> Element {
        do throws(Problem) {
            return try read(bytes, content)
        } catch {
            self.content = nil
            throw error
        }
    }

    /// Parses an element, and returns it with its event; nil if it is not valid.
    package mutating func scan(_ bytes: [UInt8], content: Namespace) -> (event: StreamEvent, element: Element)? {
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
