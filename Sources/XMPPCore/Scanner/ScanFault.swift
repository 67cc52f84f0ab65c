/// The reason why bytes are not an acceptable XMPP stream: the violated rule, and the offset.
public struct ScanFault: Error, Sendable, Hashable {
    /// The violated rule. The raw value is stable: logs, captures and tests depend on it.
    package enum Code: String, Sendable, CaseIterable {
        case notXML = "not-xml"
        case notAStream = "not-a-stream"
        case malformedTag = "malformed-tag"
        case malformedName = "malformed-name"
        case malformedDeclaration = "malformed-declaration"
        case mismatchedTag = "mismatched-tag"
        case duplicateAttribute = "duplicate-attribute"
        case unboundPrefix = "unbound-prefix"
        case reservedPrefix = "reserved-prefix"
        case invalidUTF8 = "invalid-utf-8"
        case invalidCharacter = "invalid-character"
        case invalidReference = "invalid-reference"
        case entityReference = "entity-reference"
        case textOutsideStanza = "text-outside-stanza"
        case sectionEndInText = "cdata-end-in-text"
        case comment
        case processingInstruction = "processing-instruction"
        case documentType = "doctype"
        case unsupportedEncoding = "unsupported-encoding"
        case unsupportedXMLVersion = "unsupported-xml-version"
        case afterStreamEnd = "after-stream-end"
        case tooDeep = "limit-depth"
        case tooManyAttributes = "limit-attributes"
        case tooManyNamespaces = "limit-namespaces"
        case nameTooLong = "limit-name"
        case tagTooLong = "limit-tag"
        case itemTooLong = "limit-item"
        // Messages of RFC 7395.
        case emptyMessage = "framing-empty"
        case severalElements = "framing-several-elements"
        case textInMessage = "framing-text"
        case unfinishedElement = "framing-unfinished-element"
        case streamHeaderInMessage = "framing-stream-header"
        case missingOpen = "framing-no-open"

        /// Whether the message is not one element (RFC 7395 §3.3.3), or the stream does not begin with `<open/>`
        /// (§3.3.1). Only the message itself is affected: the next message can be decoded.
        package var isFraming: Bool {
            switch self {
            case .emptyMessage, .severalElements, .textInMessage, .unfinishedElement, .streamHeaderInMessage,
                .missingOpen:
                true
            default: false
            }
        }
    }

    /// The violated rule.
    package var code: Code
    /// Offset of the offending byte from the beginning of the epoch.
    public var offset: UInt64
    /// The exceeded limit, in its unit; 0 if the fault is not a limit.
    package var limit: Int

    /// Creates a fault at `offset` of the epoch.
    package init(_ code: Code, at offset: UInt64, limit: Int = 0) {
        self.code = code
        self.offset = offset
        self.limit = limit
    }

    /// The stream error that a receiver must send for this fault (RFC 6120 §4.9.3).
    package var condition: StreamErrorCondition {
        switch code {
        case .comment, .processingInstruction, .documentType, .entityReference: .restrictedXML
        case .unboundPrefix, .reservedPrefix: .badNamespacePrefix
        case .unsupportedEncoding: .unsupportedEncoding
        case .notAStream, .missingOpen, .streamHeaderInMessage: .invalidNamespace
        case .tooDeep, .tooManyAttributes, .tooManyNamespaces, .nameTooLong, .tagTooLong, .itemTooLong: .policyViolation
        case .textOutsideStanza, .afterStreamEnd, .emptyMessage, .severalElements, .textInMessage, .unfinishedElement:
            .badFormat
        default: .notWellFormed
        }
    }

    /// The fault, as a human-readable clause.
    public var explanation: String {
        switch code {
        case .notXML: "the bytes are not XML: a stream begins with '<'"
        case .notAStream: "the first element is not a stream of http://etherx.jabber.org/streams"
        case .malformedTag: "malformed tag"
        case .malformedName: "malformed element or attribute name"
        case .malformedDeclaration: "malformed XML declaration"
        case .mismatchedTag: "the end tag does not match the open element"
        case .duplicateAttribute: "the same attribute twice in one tag"
        case .unboundPrefix: "a prefix without a namespace"
        case .reservedPrefix: "wrong use of the reserved prefix xml or xmlns"
        case .invalidUTF8: "invalid UTF-8"
        case .invalidCharacter: "a character that XML 1.0 forbids"
        case .invalidReference: "malformed character reference"
        case .entityReference: "a reference to an undeclared entity"
        case .textOutsideStanza: "text between stanzas"
        case .sectionEndInText: "']]>' in text"
        case .comment: "a comment, which RFC 6120 §11.1 forbids"
        case .processingInstruction: "a processing instruction, which RFC 6120 §11.1 forbids"
        case .documentType: "a document type declaration, which RFC 6120 §11.1 forbids"
        case .unsupportedEncoding: "an encoding other than UTF-8"
        case .unsupportedXMLVersion: "an XML version other than 1.0"
        case .afterStreamEnd: "bytes after the end of the stream"
        case .tooDeep: "elements nested deeper than \(limit)"
        case .tooManyAttributes: "more than \(limit) attributes in one tag"
        case .tooManyNamespaces: "more than \(limit) namespace declarations in force"
        case .nameTooLong: "a name longer than \(limit) bytes"
        case .tagTooLong: "a tag longer than \(limit) bytes"
        case .itemTooLong: "an item longer than \(limit) bytes"
        case .emptyMessage: "a WebSocket message without an element"
        case .severalElements: "more than one element in a WebSocket message"
        case .textInMessage: "text outside the element of a WebSocket message"
        case .unfinishedElement: "the WebSocket message ends before its element"
        case .streamHeaderInMessage: "a <stream:stream> header; over WebSocket, <open/> begins a stream (RFC 7395 §3.3)"
        case .missingOpen: "the first WebSocket message is not <open/> of urn:ietf:params:xml:ns:xmpp-framing"
        }
    }
}

/// A stream error condition of RFC 6120 §4.9.3; the raw value is the element's name.
package enum StreamErrorCondition: String, Sendable, CaseIterable {
    case badFormat = "bad-format"
    case badNamespacePrefix = "bad-namespace-prefix"
    case conflict
    case connectionTimeout = "connection-timeout"
    case hostGone = "host-gone"
    case hostUnknown = "host-unknown"
    case improperAddressing = "improper-addressing"
    case internalServerError = "internal-server-error"
    case invalidFrom = "invalid-from"
    case invalidNamespace = "invalid-namespace"
    case invalidXML = "invalid-xml"
    case notAuthorized = "not-authorized"
    case notWellFormed = "not-well-formed"
    case policyViolation = "policy-violation"
    case remoteConnectionFailed = "remote-connection-failed"
    case reset
    case resourceConstraint = "resource-constraint"
    case restrictedXML = "restricted-xml"
    case seeOtherHost = "see-other-host"
    case systemShutdown = "system-shutdown"
    case undefinedCondition = "undefined-condition"
    case unsupportedEncoding = "unsupported-encoding"
    case unsupportedFeature = "unsupported-feature"
    case unsupportedStanzaType = "unsupported-stanza-type"
    case unsupportedVersion = "unsupported-version"
}
