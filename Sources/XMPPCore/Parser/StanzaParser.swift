internal import CLibXML2

/// Parses whole items into ``Element`` trees with libxml2's SAX2 push parser.
///
/// Belongs to one event loop and is shared by its sessions. libxml2 contexts are kept for the few most recent sets of
/// namespace declarations in stream headers, each with its root open, and are fed one whole item per call: a shared
/// context is two to three times as fast as one per session, and an idle session costs nothing. A context is dropped
/// after an error, or when its dictionary of names has grown, since libxml2 never removes a name.
///
/// The scanner decides which items are acceptable. If libxml2 refuses an item that the scanner accepted, this is
/// reported; it is a fault of xmpptap or of libxml2, never a reason to stop a stream.
public final class StanzaParser {
    /// The reason why libxml2 refused an item.
    public struct Failure: Error, Sendable, Hashable {
        /// libxml2's error number (xmlParserErrors), or 0 if it gave none or did not run.
        package var code: Int
        /// libxml2's message, on one line.
        package var message: String
    }

    /// Number of distinct names above which a context is dropped: with more names, lookups in libxml2's dictionary
    /// become slow.
    private static let dictionaryLimit = 20_000
    private static let poolSize = 4

    private var pool: [ParserContext] = []
    private var arena = ElementArena()

    /// Creates a parser without contexts; they are created for each kind of stream.
    public init() {}

    /// Number of contexts in the pool, for tests and metrics.
    package var contextCount: Int { pool.count }

    /// Parses the last event of `decoder`, which must be a whole element.
    public func parse(_ decoder: borrowing StreamDecoder) throws(Failure) -> Element {
        guard decoder.isOfMessages else { return try parse(decoder.bytes, root: decoder.declarations) }
        return try parse(StreamDecoder.element(ofMessage: decoder.bytes), root: decoder.declarations)
    }

    /// Parses one element of a stream with the namespace declarations `root`: the text between `<stream` and `>` in the
    /// header, as in ``StreamDecoder/declarations``.
    package func parse(_ item: Span<UInt8>, root: [UInt8]) throws(Failure) -> Element {
        if !isKnownUniquelyReferenced(&arena) { arena = ElementArena() }
        let context = try findContext(root)
        let failure = context.parse(item, into: arena)
        if let failure {
            pool.removeAll { $0 === context }
            throw failure
        }
        if context.dictionarySize > Self.dictionaryLimit { pool.removeAll { $0 === context } }
        return Element(arena: arena, index: 0)
    }

    private func findContext(_ root: [UInt8]) throws(Failure) -> ParserContext {
        if let position = pool.firstIndex(where: { $0.root == root }) {
            if position > 0 { pool.swapAt(0, position) }
            return pool[0]
        }
        guard let context = ParserContext(root: root) else {
            throw Failure(code: 0, message: "libxml2 did not accept the stream's namespace declarations")
        }
        pool.insert(context, at: 0)
        if pool.count > Self.poolSize { pool.removeLast() }
        return context
    }
}
