public import XMPPCore

/// Decides what may be shown of what went over the wire, and takes the secrets out of it.
///
/// Belongs to one event loop and is shared by its sessions, like ``StanzaParser``. Works on the item's own bytes by
/// structure, so that all but the secrets stays as it was; an item that cannot be followed to its end is hidden whole.
/// Placeholders that stand where a secret stood are left alone: what was redacted once reads the same again.
public final class Redactor {
    /// What is hidden.
    public let policy: RedactionPolicy

    let registry: SecretRegistry

    // What is known of the item being walked through. One walk is made at a time, and nothing that it calls comes back here,
    // so exclusive access is not checked at run time: the checks were a fifth of what redaction costs a login.
    @exclusivity(unchecked) var reader = ItemReader()
    @exclusivity(unchecked) var frames: [Frame] = []
    @exclusivity(unchecked) private var wireText = WireText()
    @exclusivity(unchecked) var value = WireText()
    /// The mechanism named last within the item.
    @exclusivity(unchecked) var mechanism = SASLMechanism.other
    /// Fields that the form's own description calls private, by their `var`.
    @exclusivity(unchecked) var privateFields: Set<[UInt8]> = []
    /// Whether a field has been shown, which a description further on may call private.
    @exclusivity(unchecked) var hasShownField = false
    /// Where elements begin that hold a value and its name, of those whose name is a credential's.
    @exclusivity(unchecked) var privatePairs: Set<Int32> = []
    /// Something has been shown that what followed it says to hide: the item is walked through once more.
    @exclusivity(unchecked) var needsSecondWalk = false
    @exclusivity(unchecked) private var secrets: [Secret] = []

    struct Frame {
        var text: Text
        /// What an element inside is that no rule knows; nil is nothing.
        var guardKind: SecretKind?
        /// Nothing inside is shown, whatever rule there is.
        var isLocked = false
        /// The `node` of a pubsub element, in case a push notification comes.
        var node: ByteRange?
        /// Where an element begins that holds a value and its name.
        var pair: Int32?
        /// Elements inside that no rule knows are secrets.
        var guardsUnknown = false
    }

    /// What becomes of the text directly inside an element.
    enum Text {
        case shown
        case secret(SecretKind)
        case sized(SecretKind)
        /// White space between elements is shown.
        case guarded(SecretKind)
        case sasl(SASLMessage.Role)
        case query
        /// Of an address a pseudonym is shown.
        case address
        /// Shown where it is a value that the protocol knows.
        case word(ContentPolicy.Vocabulary)
        /// The name of the value beside it, in an element that begins there.
        case pairName(Int32)
    }

    private struct Secret {
        var range: ByteRange
        var kind: SecretKind
        var number: UInt32
        var size: Int?
        /// What stands in its place; nil is the placeholder.
        var pseudonym: String?
    }

    /// A redactor that numbers secrets with the others of the run.
    public init(policy: RedactionPolicy, registry: SecretRegistry) {
        self.policy = policy
        self.registry = registry
    }

    /// What may be shown of the decoder's last event.
    public func disclose(_ event: StreamEvent, of decoder: borrowing StreamDecoder) -> Disclosure {
        guard policy != .none else { return .verbatim }
        switch event.kind {
        case .fragment, .fault, .torn: return .withheld
        case .item(let kind):
            guard !event.isTruncated else { return .withheld }
            guard kind == .element || kind == .header, event.head.mayHoldSecret || policy.hidesTexts else {
                return .verbatim
            }
            reader.begin(decoder)
            return redact(decoder.bytes, isHeader: kind == .header)
        }
    }

    /// What may be shown of an item that stands in no stream, and declares all its prefixes itself.
    public func disclose(item: Span<UInt8>) -> Disclosure {
        guard policy != .none else { return .verbatim }
        reader.begin()
        return redact(item, isHeader: false)
    }

    /// What may be shown of an event's head where its bytes are withheld: everything but the handle of a session, and
    /// addresses where they have pseudonyms, for which there is no place.
    public func disclose(_ head: StanzaHead) -> StanzaHead {
        guard policy != .none else { return head }
        var head = head
        if head.kind == .nonza || policy == .metadata { head.id = nil }
        if policy == .metadata {
            head.from = nil
            head.to = nil
        }
        return head
    }

    /// What may be shown of words that came with an error or a failure: all but keys and tokens in URLs.
    ///
    /// For texts that are shown beside the item they stood in.
    public func disclose(text: String) -> String {
        guard policy != .none else { return text }
        guard policy != .metadata else { return Placeholder.text(.text, size: text.utf8.count) }
        return hideKeys(in: text) ?? text
    }

    /// A text without the keys and tokens of its URLs; nil where it has none.
    func hideKeys(in text: String) -> String? {
        guard SecretText.mayHoldSecret(text.utf8Span.span) else { return nil }
        let bytes = Array(text.utf8)
        var shown: [UInt8] = []
        var position = 0
        for find in SecretText.find(in: bytes.span, registry) {
            let secret = bytes.span.extracting(find.range)
            guard !Placeholder.isPlaceholder(secret) else { continue }
            shown += bytes[position..<find.range.lowerBound]
            Placeholder.append(find.kind, registry.number(of: secret), size: nil, to: &shown)
            registry.count(find.kind)
            position = find.range.upperBound
        }
        guard position > 0 else { return nil }
        return String(decoding: shown + bytes[position...], as: UTF8.self)
    }

    /// What may be shown of a line of a log that is no XML: all of it, or that it was there. Nobody knows what stands where
    /// in it, so a line that names anything of the catalogue, or holds XML, is hidden whole.
    public func disclose(line: Span<UInt8>) -> String {
        let text = line.string()
        guard policy != .none else { return text }
        let words = line.indices.contains { line[$0] == 0x3C } || SecretNames.mayOccur(in: line)
        guard !words, !CredentialName.occurs(in: line), !policy.hidesTexts else {
            return Placeholder.text(.text, size: line.count)
        }
        return disclose(text: text)
    }

    /// How much of what could not be parsed an error may show: up to `limit` bytes around `offset`, and nothing where a
    /// name of the catalogue or a key in a URL stands anywhere in `bytes`.
    public func excerpt(of bytes: Span<UInt8>, around offset: Int, limit: Int = 120) -> ByteRange? {
        guard offset >= 0, offset <= bytes.count else { return nil }
        guard
            policy == .none
                || !policy.hidesTexts && !SecretNames.mayOccur(in: bytes) && !CredentialName.occurs(in: bytes)
        else { return nil }
        let start = max(0, offset - limit / 2)
        return ByteRange(start, min(bytes.count, start + limit))
    }

    // MARK: One item

    private func redact(_ item: Span<UInt8>, isHeader: Bool) -> Disclosure {
        defer { reset() }
        var isWhole = walk(item)
        if isWhole, needsSecondWalk {
            // All that there is to know of the item is known now.
            reader.rewind()
            forgetWalk()
            isWhole = walk(item)
        }
        guard isWhole, reader.depth <= (isHeader ? 1 : 0) else { return hideWhole(item) }
        guard !secrets.isEmpty else { return .verbatim }
        return .redacted(assemble(item))
    }

    private func reset() {
        forgetWalk()
        privateFields.removeAll(keepingCapacity: true)
        privatePairs.removeAll(keepingCapacity: true)
    }

    private func forgetWalk() {
        frames.removeAll(keepingCapacity: true)
        secrets.removeAll(keepingCapacity: true)
        wireText.removeAll()
        value.removeAll()
        mechanism = .other
        hasShownField = false
        needsSecondWalk = false
    }

    private func walk(_ item: Span<UInt8>) -> Bool {
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

    private func endText() {
        guard !wireText.isEmpty else { return }
        defer { wireText.removeAll() }
        guard let frame = frames.last else { return }
        switch frame.text {
        case .shown: hideKeys(in: wireText)
        case .secret(let kind): hide(wireText, kind)
        case .sized(let kind): hide(wireText, kind, isSized: true)
        case .guarded(let kind): if !isWhitespace(wireText.bytes) { hide(wireText, kind) }
        case .sasl(let role):
            // `=` says that there is no message, which is no secret.
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

    /// Hides all of a run.
    func hide(_ text: WireText, _ kind: SecretKind, isSized: Bool = false) {
        let bytes = text.bytes.span
        guard !bytes.isEmpty, !Placeholder.isPlaceholder(bytes) else { return }
        add(text.range, bytes, kind, size: isSized || kind.isContent ? bytes.count : nil)
    }

    /// Shows what stands for an address in its place.
    func showPseudonym(of text: WireText) {
        guard !text.bytes.isEmpty, !Placeholder.isPlaceholder(text.bytes.span) else { return }
        let address = String(decoding: text.bytes, as: UTF8.self)
        // The domain alone is what it was; one that is written with references stays as it is written.
        guard let pseudonym = pseudonym(of: address) else { return hide(text, .address) }
        guard pseudonym != address else { return }
        secrets.append(Secret(range: text.range, kind: .address, number: 0, size: nil, pseudonym: pseudonym))
    }

    /// Hides what in a run, or in what stands in front of `end`, is a key or a token of a URL.
    func hideKeys(in text: WireText, before end: Int? = nil) {
        let bytes = text.bytes.span
        let finds = SecretText.find(in: bytes.extracting(0..<(end ?? bytes.count)), registry)
        for find in finds where text.place(of: find.range) == nil {
            // Part of it stands in a CDATA section and part outside: nothing can be cut out, so all of it goes.
            return hide(text, find.kind)
        }
        for find in finds {
            let secret = bytes.extracting(find.range)
            guard !Placeholder.isPlaceholder(secret), let place = text.place(of: find.range) else { continue }
            add(place, secret, find.kind)
        }
    }

    /// Hides the query of a URL, and remembers it and the URL for the messages in which the URL will be sent on.
    func hideQuery(in text: WireText) {
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
        // What stands in front of it goes by what it is.
        hideKeys(in: text, before: query)
        guard !Placeholder.isPlaceholder(bytes.extracting(query..<bytes.count)) else { return }
        // What follows a `#` goes with it, under the number that the query has by itself.
        let end = bytes.first(in: query..<bytes.count) { $0 == 0x23 } ?? bytes.count
        let value = bytes.extracting(query..<(end > query ? end : bytes.count))
        add(text.place(of: query..<bytes.count) ?? text.range, value, .urlQuery)
    }

    func add(_ range: ByteRange, _ value: Span<UInt8>, _ kind: SecretKind, size: Int? = nil) {
        guard !range.isEmpty else { return }
        let number = kind.isContent ? 0 : registry.number(of: value)
        secrets.append(Secret(range: range, kind: kind, number: number, size: size))
    }

    private func assemble(_ item: Span<UInt8>) -> Redaction {
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

    /// Sorts the secrets, and joins those that overlap or touch. Whether a node is a secret is known only after what follows it.
    private func joinSecrets(_ item: Span<UInt8>) {
        guard secrets.count > 1 else { return }
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

// Names of people where only metadata may be shown: the same address has the same pseudonym throughout a run.
extension Redactor {
    /// An address for use outside the items: itself, or its placeholder from the items.
    public func disclose(address: String) -> String {
        guard policy == .metadata else { return address }
        return pseudonym(of: address) ?? Placeholder.text(.address, size: address.utf8.count)
    }

    /// Whether an address may be shown as it is.
    package func shows(address: String?) -> Bool { address.map { disclose(address: $0) == $0 } ?? true }

    /// The name that somebody logs in with, at a domain: the local part of what stands for the address.
    package func disclose(user: String, at domain: String?) -> String {
        guard policy == .metadata else { return user }
        let address = user.contains("@") ? user : "\(user)@\(domain ?? "unknown.invalid")"
        guard let pseudonym = pseudonym(of: address) else { return Placeholder.text(.address, size: user.utf8.count) }
        return user.contains("@") ? pseudonym : String(pseudonym.prefix { $0 != "@" })
    }

    /// A word that somebody has chosen, such as a resource.
    package func disclose(name: String) -> String {
        policy == .metadata ? Placeholder.text(.value, size: name.utf8.count) : name
    }

    /// `anon-1@DOMAIN/anon-2` for an address, which is itself where it is a domain alone; nil where it is no address.
    func pseudonym(of text: String) -> String? {
        let address = Address(text)
        guard address.jid != nil else { return nil }
        if address.local == nil, address.resource == nil { return text }
        let bare = address.comparableBare
        var pseudonym = bare.split(separator: "@", maxSplits: 1).last.map(String.init) ?? address.domain
        if address.local != nil { pseudonym = "anon-\(number(of: bare))@\(pseudonym)" }
        if let resource = address.resource { pseudonym += "/anon-\(number(of: "\(bare)/\(resource)"))" }
        return pseudonym
    }

    private func number(of text: String) -> UInt32 {
        let bytes = Array(text.utf8)
        return registry.number(of: bytes.span)
    }
}
