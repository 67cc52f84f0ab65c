import XMPPCore

/// A pass over one item, which finds the secrets and replaces them.
///
/// A struct, so that exclusive access to the state, which changes at every tag, is checked at compile time. The
/// ``Redactor`` accesses it once for each item.
struct RedactionWalk: ~Copyable {
    let policy: RedactionPolicy
    let registry: SecretRegistry
    let rules = SecretRules.table

    var reader = ItemReader()
    var frames: [Frame] = []
    private var wireText = WireText()
    var value = WireText()
    /// The last mechanism named within the item.
    var mechanism = SASLMechanism.other
    /// Fields that the form's description declares private, by their `var`.
    var privateFields: Set<[UInt8]> = []
    /// Whether a field has been shown that a later description may declare private.
    var hasShownField = false
    /// Offsets of elements that contain a value and its name, if the name is a credential's.
    var privatePairs: Set<Int32> = []
    /// Whether a text was shown that later bytes mark as a secret, so that the item needs a second walk.
    var needsSecondWalk = false
    private var secrets: [Secret] = []

    struct Frame {
        var text: Text
        /// Kind of secret of inner elements without a rule; nil if they are shown.
        var guardKind: SecretKind?
        /// Whether everything inside is hidden, regardless of rules.
        var isLocked = false
        /// The `node` of a pubsub element, in case a push notification follows.
        var node: ByteRange?
        /// Offset of this element, if it contains a value and the name of the value; nil for other elements.
        var pair: Int32?
        /// Whether unknown elements inside are secrets.
        var guardsUnknown = false
    }

    /// The treatment of the text directly inside an element.
    enum Text {
        case shown
        case secret(SecretKind)
        case sized(SecretKind)
        /// A secret, except for white space between elements.
        case guarded(SecretKind)
        case sasl(SASLMessage.Role)
        case query
        /// An address, shown as a pseudonym.
        case address
        /// Shown if the protocol defines the value.
        case word(ContentPolicy.Vocabulary)
        /// The name of a value in a sibling element; their common parent begins at this offset.
        case pairName(Int32)
    }

    private struct Secret {
        var range: ByteRange
        var kind: SecretKind
        var number: UInt32
        var size: Int?
        /// The text that replaces the secret; nil if a placeholder replaces it.
        var pseudonym: String?
    }

    init(_ policy: RedactionPolicy, _ registry: SecretRegistry) {
        self.policy = policy
        self.registry = registry
    }

    /// Redacts the decoder's last event, which is a whole item.
    mutating func redact(_ decoder: borrowing StreamDecoder, isHeader: Bool) -> Disclosure {
        reader.begin(decoder)
        return redactItem(decoder.bytes, isHeader: isHeader)
    }

    /// Redacts an item outside a stream.
    mutating func redact(item: Span<UInt8>) -> Disclosure {
        reader.begin()
        return redactItem(item, isHeader: false)
    }

    private mutating func redactItem(_ item: Span<UInt8>, isHeader: Bool) -> Disclosure {
        defer { reset() }
        var isWhole = walk(item)
        if isWhole, needsSecondWalk {
            // The first walk has found the private fields and values.
            reader.rewind()
            forgetWalk()
            isWhole = walk(item)
        }
        guard isWhole, reader.depth <= (isHeader ? 1 : 0) else { return hideWhole(item) }
        guard !secrets.isEmpty else { return .verbatim }
        return .redacted(assemble(item))
    }

    private mutating func reset() {
        forgetWalk()
        privateFields.removeAll(keepingCapacity: true)
        privatePairs.removeAll(keepingCapacity: true)
    }

    private mutating func forgetWalk() {
        frames.removeAll(keepingCapacity: true)
        secrets.removeAll(keepingCapacity: true)
        wireText.removeAll()
        value.removeAll()
        mechanism = .other
        hasShownField = false
        needsSecondWalk = false
    }

    private mutating func walk(_ item: Span<UInt8>) -> Bool {
        while let token = reader.next(item) {
            switch token {
            case .text(let range): wireText.append(text: range, of: item)
            case .section(let range, let markup): wireText.append(section: range, markup: markup, of: item)
            case .start:
                endText()
                enter(item)
            case .end:
                endText()
                _ = frames.popLast()
            case .fault: return false
            }
        }
        return true
    }

    private mutating func endText() {
        guard !wireText.isEmpty else { return }
        defer { wireText.removeAll() }
        guard let frame = frames.last else { return }
        switch frame.text {
        case .shown: hideKeys(in: wireText)
        case .secret(let kind): hide(wireText, kind)
        case .sized(let kind): hide(wireText, kind, isSized: true)
        case .guarded(let kind): if !isWhitespace(wireText.bytes) { hide(wireText, kind) }
        case .sasl(let role):
            // `=` is an empty message; it is shown.
            guard !isWhitespace(wireText.bytes), SASLMessage.read(wireText.bytes.span) != .empty else { return }
            hide(wireText, SASLMessage.kind(wireText.bytes.span, role, mechanism: mechanism))
        case .query: hideQuery(in: wireText)
        case .address: if !isWhitespace(wireText.bytes) { showPseudonym(of: wireText) }
        case .word(let vocabulary):
            if !isWhitespace(wireText.bytes), !vocabulary.holds(wireText.bytes) { hide(wireText, .text) }
        case .pairName(let pair):
            if CredentialName.kind(of: wireText.bytes) != nil, privatePairs.insert(pair).inserted {
                needsSecondWalk = true
            }
            if policy.hidesTexts { hide(wireText, .text) } else { hideKeys(in: wireText) }
        }
    }

    private func isWhitespace(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    }

    // MARK: Secrets

    /// Hides a whole text.
    mutating func hide(_ text: WireText, _ kind: SecretKind, isSized: Bool = false) {
        let bytes = text.bytes.span
        guard !bytes.isEmpty, !Placeholder.isPlaceholder(bytes) else { return }
        add(text.range, bytes, kind, size: isSized || kind.isContent ? bytes.count : nil)
    }

    /// Replaces an address by its pseudonym.
    mutating func showPseudonym(of text: WireText) {
        guard !text.bytes.isEmpty, !Placeholder.isPlaceholder(text.bytes.span) else { return }
        let address = String(decoding: text.bytes, as: UTF8.self)
        // A domain alone is its own pseudonym, and stays as written even if it contains character references.
        guard let pseudonym = registry.pseudonym(of: address) else { return hide(text, .address) }
        guard pseudonym != address else { return }
        secrets.append(Secret(range: text.range, kind: .address, number: 0, size: nil, pseudonym: pseudonym))
    }

    /// Hides keys and tokens of URLs in a text, or in its part before `end`.
    mutating func hideKeys(in text: WireText, before end: Int? = nil) {
        let bytes = text.bytes.span
        let finds = SecretText.find(in: bytes.extracting(0..<(end ?? bytes.count)), registry)
        for find in finds where text.place(of: find.range) == nil {
            // A secret that is partly in a CDATA section cannot be cut out, so the whole text is hidden.
            return hide(text, find.kind)
        }
        for find in finds {
            let secret = bytes.extracting(find.range)
            guard !Placeholder.isPlaceholder(secret), let place = text.place(of: find.range) else { continue }
            add(place, secret, find.kind)
        }
    }

    /// Hides the query of a URL, and registers the URL and the query, to recognise them in later messages.
    mutating func hideQuery(in text: WireText) {
        let bytes = text.bytes.span
        let query = text.bytes.firstIndex(of: 0x3F).map { $0 + 1 } ?? bytes.count
        if let url = URLParts(in: bytes, 0..<bytes.count, lastAt: text.bytes.lastIndex(of: 0x40)) {
            let path = url.tail(in: bytes, before: bytes.count).path
            registry.remember(
                slotAt: bytes.extracting(url.host),
                path: bytes.extracting(path),
                withQuery: query < bytes.count
            )
        }
        guard query < bytes.count else { return hideKeys(in: text) }
        // Check the part before the query like any other text.
        hideKeys(in: text, before: query)
        guard !Placeholder.isPlaceholder(bytes.extracting(query..<bytes.count)) else { return }
        // Hides the fragment together with the query; only the query determines the number of the placeholder.
        let end = bytes.first(in: query..<bytes.count) { $0 == 0x23 } ?? bytes.count
        let value = bytes.extracting(query..<(end > query ? end : bytes.count))
        add(text.place(of: query..<bytes.count) ?? text.range, value, .urlQuery)
    }

    mutating func add(_ range: ByteRange, _ value: Span<UInt8>, _ kind: SecretKind, size: Int? = nil) {
        guard !range.isEmpty else { return }
        let number = kind.isContent ? 0 : registry.number(of: value)
        secrets.append(Secret(range: range, kind: kind, number: number, size: size))
    }

    private mutating func assemble(_ item: Span<UInt8>) -> Redaction {
        joinSecrets(item)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(item.count + 16 * secrets.count)
        var edits: [Redaction.Edit] = []
        edits.reserveCapacity(secrets.count)
        var position = 0
        for secret in secrets {
            registry.count(secret.kind)
            bytes.append(item.slice(ByteRange(position, Int(secret.range.start))))
            let start = bytes.count
            if let pseudonym = secret.pseudonym {
                bytes += pseudonym.utf8
            } else {
                Placeholder.append(secret.kind, secret.number, size: secret.size, to: &bytes)
            }
            edits.append(
                Redaction.Edit(range: secret.range, length: Int32(truncatingIfNeeded: bytes.count - start))
            )
            position = Int(secret.range.end)
        }
        bytes.append(item.slice(ByteRange(position, item.count)))
        return Redaction(bytes: bytes, edits: edits)
    }

    /// Sorts the secrets, and joins those that overlap or touch. They may be unsorted, because later elements decide
    /// whether a node is a secret.
    private mutating func joinSecrets(_ item: Span<UInt8>) {
        guard !SpanUnion.areSeparate(secrets.count, { secrets[$0].range.range }) else { return }
        secrets = SpanUnion.join(secrets.map(\.range.range)).map { union in
            var secret = secrets[union.longest]
            guard secret.range.range != union.range else { return secret }
            secret.range = ByteRange(union.range.lowerBound, union.range.upperBound)
            secret.pseudonym = nil
            secret.size = secret.kind.isContent ? union.range.count : nil
            secret.number = secret.kind.isContent ? 0 : registry.number(of: item.slice(secret.range))
            return secret
        }
    }

    private func hideWhole(_ item: Span<UInt8>) -> Disclosure {
        var bytes: [UInt8] = []
        Placeholder.append(.item, registry.number(of: item), size: nil, to: &bytes)
        registry.count(.item)
        let edit = Redaction.Edit(range: ByteRange(0, item.count), length: Int32(truncatingIfNeeded: bytes.count))
        return .redacted(Redaction(bytes: bytes, edits: [edit]))
    }
}
