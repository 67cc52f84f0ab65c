internal import TapRecord
internal import XMPPCore

/// The links of a host-meta file to WebSockets and BOSH (XEP-0156).
struct HostMetaFile: Sendable {
    /// A link.
    struct Link: Sendable, Hashable {
        /// The kind of connection.
        enum Relation: String, Sendable, CaseIterable {
            case webSocket = "urn:xmpp:alt-connections:websocket"
            case bosh = "urn:xmpp:alt-connections:xbosh"
        }

        let relation: Relation
        let address: String

        /// The address without parts that may be secret.
        var shown: String { String(WebServer.withoutSecrets(address).prefix(200)) }
        /// Whether the connection begins with TLS.
        var isSecure: Bool {
            let scheme = address.prefix { $0 != ":" }.lowercased()
            return scheme == (relation == .webSocket ? "wss" : "https")
        }
    }

    /// The reason why a file cannot be read, as a clause.
    struct Fault: Error, CustomStringConvertible {
        let description: String

        init(description: String) { self.description = description }

        /// Creates the fault of a file that the scanner of messages has read.
        init(_ fault: ScanFault) {
            description =
                switch fault.code {
                case .emptyMessage: "it is empty"
                case .severalElements, .textInMessage: "it is not XML: text or elements beside the root element"
                case .unfinishedElement: "it is not XML: the root element has no end"
                default: "it is not XML: \(fault.explanation)"
                }
        }
    }

    /// Maximum number of links; the rest is ignored.
    static let maximumLinks = 100

    private(set) var links: [Link] = []

    /// Parses an XRD file (RFC 6415). Comments are ignored, and a document type is refused.
    init(xrd bytes: [UInt8]) throws(Fault) {
        var decoder = StreamDecoder(framing: .messagesInside, limits: .authenticated)
        let text = Self.withoutComments(bytes)
        decoder.append(message: text.span, endsMessage: true)
        guard let event = decoder.next() else { throw Fault(description: "it is empty") }
        switch event.kind {
        case .item(.element): break
        case .fault(let fault): throw Fault(fault)
        default: throw Fault(description: "it is not an XRD file")
        }
        let root: Element
        do throws(StanzaParser.Failure) {
            root = try StanzaParser().parse(decoder)
        } catch {
            throw Fault(description: "it is not XML: \(error.message)")
        }
        guard root.isNamed("XRD"), root.namespaceURI == "http://docs.oasis-open.org/ns/xri/xrd-1.0" else {
            throw Fault(description: "it is not an XRD file, but <\(root.name.prefix(40))/>")
        }
        var found: [(String?, String?)] = []
        _ = root.firstChild { child in
            if child.isNamed("Link") { found.append((child.attribute("rel"), child.attribute("href"))) }
            return false
        }
        for (relation, address) in found { add(relation, address) }
    }

    /// Parses a JRD file.
    init(json bytes: [UInt8]) throws(Fault) {
        let file: JSONValue
        do throws(JSONError) {
            file = try JSONValue(bytes.span.bytes)
        } catch {
            throw Fault(description: "it is not JSON: \(error.code) at byte \(error.offset)")
        }
        guard case .object = file else { throw Fault(description: "it is not a JSON object") }
        guard let links = file["links"] else { return }
        guard case .array(let values) = links else { throw Fault(description: "its \"links\" are not an array") }
        for value in values { add(value["rel"]?.text, value["href"]?.text) }
    }

    private mutating func add(_ relation: String?, _ address: String?) {
        guard links.count < Self.maximumLinks, let relation = relation.flatMap(Link.Relation.init), let address else {
            return
        }
        let link = Link(relation: relation, address: address)
        if !links.contains(link) { links.append(link) }
    }

    /// Returns the text without comments and without a byte order mark, which the scanner of streams refuses.
    private static func withoutComments(_ bytes: [UInt8]) -> [UInt8] {
        var rest = bytes[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
        var text: [UInt8] = []
        while let start = rest.firstRange(of: Array("<!--".utf8)) {
            text += rest[..<start.lowerBound]
            rest = rest[start.upperBound...]
            // An open comment hides the end of the document, which is then missing.
            rest = rest.firstRange(of: Array("-->".utf8)).map { rest[$0.upperBound...] } ?? []
        }
        return text + rest
    }
}
