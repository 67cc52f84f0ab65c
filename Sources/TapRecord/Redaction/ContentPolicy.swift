import XMPPCore

/// The parts that the policies beyond ``RedactionPolicy/secrets`` hide in an element without secrets.
///
/// They show only content known to be harmless, so that unknown extensions are hidden. All text is hidden, except for
/// the texts of the protocol itself. Of the attributes, ``RedactionPolicy/metadata`` shows only those with the kind,
/// size or time of something; ``RedactionPolicy/bodies`` hides only names chosen by people, and attributes of unknown
/// namespaces.
enum ContentPolicy {
    /// The treatment of a text or a value.
    enum Fate: Sendable {
        case shown
        case hidden
        /// An address, shown as a pseudonym.
        case address
        /// Shown if it is a value that the protocol defines: other values were written by a user.
        case word(Vocabulary)
    }

    /// The values that an element of the protocol may have.
    enum Vocabulary: Sendable {
        /// Availability (RFC 6121 §4.7.2.1).
        case show
        /// From -128 to 127 (RFC 6121 §4.7.2.3).
        case priority
        /// A non-negative number (XEP-0059).
        case figure
        /// The name of a mechanism (RFC 4422 §3.1), or of a task with a similar name (XEP-0480).
        case mechanism

        /// Returns whether a text, without surrounding white space, is one of these values.
        func holds(_ text: [UInt8]) -> Bool {
            let text = text.span.trimmed
            switch self {
            case .show: return ContentPolicy.holds(["away", "chat", "dnd", "xa"], text)
            case .priority:
                let number = Int(text.string())
                return text.count <= 5 && number.map { -128...127 ~= $0 } ?? false
            case .figure: return text.first(in: 0..<text.count) { $0 &- 0x30 >= 10 } == nil
            case .mechanism:
                // RFC 4422 allows twenty characters; longer names exist.
                return text.count <= 40 && text.first(in: 0..<text.count) { !Self.isInMechanism($0) } == nil
            }
        }

        private static func isInMechanism(_ byte: UInt8) -> Bool {
            byte &- 0x41 < 26 || byte &- 0x30 < 10 || byte == 0x2D || byte == 0x5F
        }
    }

    // MARK: Text

    /// Returns the treatment of the text directly inside an element.
    static func text(in name: Span<UInt8>, _ namespace: Namespace, _ policy: RedactionPolicy) -> Fate {
        guard policy.hidesTexts else { return .shown }
        switch namespace {
        case .streams, .tls, .saslChannelBinding, .compression, .compressionFeature: return .shown
        case .resultSets:
            // Positions in a result set are ids, which may be addresses (XEP-0059 §2.2).
            if holds(figures, name) { return .word(.figure) }
            return policy == .bodies ? .shown : .hidden
        case .sasl, .sasl2, .sasl2Legacy, .fast, .saslUpgrade:
            if holds(mechanismNames, name) { return .word(.mechanism) }
            if policy == .bodies || name.equals("hostname") { return .shown }
            return name.equals("authorization-identifier") ? .address : .hidden
        case .streamErrors: return policy == .bodies || name.equals("see-other-host") ? .shown : .hidden
        case .stanzaErrors, .bind2, .bind2Legacy, .iqAuth, .version, .time, .lastActivity:
            return policy == .bodies ? .shown : .hidden
        case .bind:
            if policy == .bodies { return .shown }
            return name.equals("jid") ? .address : .hidden
        case .client, .server, .componentAccept, .componentConnect:
            if name.equals("show") { return .word(.show) }
            if name.equals("priority") { return .word(.priority) }
            return policy == .bodies && name.equals("thread") ? .shown : .hidden
        default: return policy == .metadata && name.equals("jid") ? .address : .hidden
        }
    }

    private static let figures: [StaticString] = ["count", "max", "index"]
    private static let mechanismNames: [StaticString] = ["mechanism", "task", "upgrade"]

    // MARK: Attributes

    /// Returns the treatment of an attribute's value, by its local name and the namespace of its element.
    static func value(of attribute: Span<UInt8>, _ namespace: Namespace, _ policy: RedactionPolicy) -> Fate {
        switch policy {
        case .none, .secrets: return .shown
        case .bodies:
            if holds(givenNames, attribute) { return .hidden }
            switch namespace {
            case .roster, .rosterExchange, .bookmarks, .bookmarksStorage, .streamInitiation:
                return attribute.equals("name") ? .hidden : .shown
            case .xhtml: return .hidden
            case .other: return holds(addresses, attribute) || holds(harmless, attribute) ? .shown : .hidden
            default: return .shown
            }
        case .metadata:
            if holds(addresses, attribute) { return .address }
            return holds(harmless, attribute) ? .shown : .hidden
        }
    }

    /// Attributes that contain user-written text, on any element.
    private static let givenNames: [StaticString] = [
        "filename", "desc", "description", "title", "caption", "alt", "nick", "label",
    ]

    /// Attributes that contain an address, on any element.
    private static let addresses: [StaticString] = [
        "from", "to", "jid", "by", "initiator", "responder", "sender", "recipient", "owner", "with", "creator-jid",
    ]

    /// Attributes with the kind, size, number or time of something, on any element.
    private static let harmless: [StaticString] = [
        "id", "type", "version", "stamp", "h", "max", "code", "affiliation", "role", "subscription", "ask", "approved",
        "mechanism", "action", "category", "var", "seconds", "width", "height", "bytes", "size", "expires", "expiry",
        "status", "index", "complete", "stable", "creator", "senders", "media", "transport", "algo", "resume",
        "queryid",
        "block-size", "seq", "stanza", "since", "count", "persistent", "expected",
    ]

    fileprivate static func holds(_ names: [StaticString], _ name: Span<UInt8>) -> Bool {
        for candidate in names where name.equals(candidate) { return true }
        return false
    }
}

extension Span<UInt8> {
    /// These bytes without surrounding white space.
    fileprivate var trimmed: Span<UInt8> {
        @_lifetime(copy self)
        get {
            var (start, end) = (0, count)
            while start < end, self[start] <= 0x20 { start += 1 }
            while end > start, self[end - 1] <= 0x20 { end -= 1 }
            return extracting(start..<end)
        }
    }
}
