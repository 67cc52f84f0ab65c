internal import XMPPCore

/// A stanza in an ``ExpectationSet``, with a tag of its owner.
package struct ComparedStanza<Tag>: Expectable {
    /// The state that comparisons share.
    package struct Context: Sendable {
        /// The value pairs bound so far.
        package var bindings: ValueBindings
        /// The rules for differences to ignore.
        package var rules: NoiseRules
        /// The numbers of the senders in the recording.
        package var recordedSenders = SenderNumbers()
        /// The numbers of the senders in the live session. A live sender has the number of its recorded counterpart.
        package var liveSenders = SenderNumbers()
        /// The optional elements that only one stanza of a matched pair had, with the number of times this happened.
        package fileprivate(set) var optional: [OptionalElement: Int] = [:]

        package init(bindings: ValueBindings = ValueBindings(), rules: NoiseRules = NoiseRules()) {
            self.bindings = bindings
            self.rules = rules
        }
    }

    /// The content of a stanza.
    private enum Content {
        case parsed(StanzaForm)
        /// A received stanza with its bytes. The case is indirect to keep the enumeration small: few stanzas use it.
        indirect case live(StanzaForm, [UInt8], StanzaParser)
        /// Bytes that are parsed only when needed: a long script has many expected stanzas.
        case bytes([UInt8], root: [UInt8], StanzaParser)
    }

    private var content: Content
    /// The stanza; nil if its bytes cannot be parsed any more.
    package var form: StanzaForm? {
        switch content {
        case .parsed(let form), .live(let form, _, _): form
        case .bytes(let bytes, let root, let parser): StanzaForm(bytes, parser: parser, root: root)
        }
    }
    /// The owner's tag.
    package let tag: Tag
    /// The hash of the whole head, which is also the first element of ``likeness``.
    package let shape: UInt64
    /// Hashes by which similar stanzas are found, the most specific first: of the whole head; of kind, payload and
    /// sender; of kind and sender; of kind and payload.
    ///
    /// The list is shorter for an optional stanza, whose changed form must have the same payload and sender, and for
    /// presence, whose changed form must have the same sender.
    package var likeness: [UInt64] {
        if isOptional { return [shape, contentOfSender] }
        return isPresence ? [shape, contentOfSender, loose] : [shape, contentOfSender, loose, payload]
    }
    private let contentOfSender: UInt64
    private let loose: UInt64
    private let payload: UInt64
    private let isOptional: Bool
    private let isPresence: Bool
    /// The ordering constraint of the stanza.
    package let lane: ExpectationSet<Self>.Lane

    /// Creates a recorded stanza.
    package init(recorded form: StanzaForm, _ context: Context, tag: Tag) {
        self.init(form, .parsed(form), isRecorded: true, context, id: form.id, tag)
    }

    /// The stanza without its parsed form, if its bytes can be parsed again outside its stream; otherwise the unchanged
    /// stanza.
    package var compact: Self {
        guard case .live(_, let bytes, let parser) = content, StanzaForm(bytes, parser: parser) != nil
        else { return self }
        var stanza = self
        stanza.content = .bytes(bytes, root: StanzaForm.clientDeclarations, parser)
        return stanza
    }

    /// Creates a recorded stanza that keeps its bytes instead of the parsed form.
    ///
    /// - Parameter parser: Parses the bytes again when they are compared.
    init(recorded form: StanzaForm, _ bytes: [UInt8], root: [UInt8], parser: StanzaParser, _ context: Context, tag: Tag)
    {
        self.init(form, .bytes(bytes, root: root, parser), isRecorded: true, context, id: form.id, tag)
    }

    /// Creates a live stanza.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the stanza.
    ///   - parser: Parses the bytes again if ``compact`` has replaced the form.
    init(live form: StanzaForm, _ bytes: [UInt8], parser: StanzaParser, _ context: Context, tag: Tag) {
        let id = form.id.map { context.bindings.recorded(for: $0, .stanzaID) ?? $0 }
        self.init(form, .live(form, bytes, parser), isRecorded: false, context, id: id, tag)
    }

    private init(
        _ form: StanzaForm,
        _ content: Content,
        isRecorded: Bool,
        _ context: Context,
        id: String?,
        _ tag: Tag
    ) {
        self.content = content
        self.tag = tag
        let names = isRecorded ? context.bindings.recordedNames : context.bindings.liveNames
        let senders = isRecorded ? context.recordedSenders : context.liveSenders
        let heads = StanzaHeads(form.element, names, senders, context.rules)
        let isAnyOrder = context.rules.hasAnyOrder && context.rules.occurrences(of: form.element).isAnyOrder
        (shape, contentOfSender, loose) = (heads.whole, heads.contentOfSender, heads.loose)
        (payload, isOptional) = (heads.content, heads.isOptional)
        isPresence = form.kind == .presence
        lane =
            switch heads.role {
            case .answer: .answer(Hash.of((id ?? "").utf8Span.span, seed: 1))
            case .message where isAnyOrder: .any
            case .message(let pair): .ordered(pair)
            case .request, .other: .any
            }
    }

    /// Whether the stanza answers a request.
    var isAnswer: Bool { if case .answer = lane { true } else { false } }

    /// Returns whether the other stanza may be a changed form of this one: the heads are equal, or both are presence of
    /// one sender.
    func resembles(_ other: Self) -> Bool {
        shape == other.shape || isPresence && other.isPresence && loose == other.loose
    }

    /// Binds the values of a live stanza to those of this one although the stanzas differ, because a client may send
    /// the values back.
    func bindValues(of live: Self, _ context: inout Context) {
        guard let one = form, let other = live.form, one.type == other.type else { return }
        _ = StanzaComparison(recorded: one, live: other, bindings: &context.bindings, rules: context.rules)
    }

    /// Returns the uncertainty of a match, a weighted number of the value pairs that it would bind; nil if the stanzas
    /// differ.
    package static func uncertainty(recorded: Self, live: Self, _ context: inout Context) -> Int? {
        let count = context.bindings.count
        guard compare(recorded, live, &context) != nil else { return nil }
        let uncertainty = context.bindings.made(since: count).reduce(0) { $0 + ($1 ? 1 : literallyDifferent) }
        context.bindings.rollBack(to: count)
        return uncertainty
    }

    /// Returns whether both stanzas have the same meaning; if so, binds new value pairs.
    package static func agree(recorded: Self, live: Self, _ context: inout Context) -> Bool {
        guard let optional = compare(recorded, live, &context) else { return false }
        for element in optional { context.optional[element, default: 0] += 1 }
        return true
    }

    /// Returns the optional elements that only one of the stanzas has; nil if the stanzas differ. If they match, new
    /// value pairs are bound.
    private static func compare(_ recorded: Self, _ live: Self, _ context: inout Context) -> [OptionalElement]? {
        let count = context.bindings.count
        guard let one = recorded.form, let other = live.form else { return nil }
        let comparison = StanzaComparison(
            recorded: one,
            live: other,
            bindings: &context.bindings,
            rules: context.rules
        )
        guard !comparison.differences.isEmpty else { return comparison.optional }
        context.bindings.rollBack(to: count)
        return nil
    }
}

/// The role of an item, and hashes of the parts of its head.
struct StanzaHeads {
    /// The role of an item in its stream.
    enum Role {
        case request
        case answer
        /// A message, with a hash of its sender, its recipient and the node of an event.
        case message(UInt64)
        case other
    }

    let role: Role
    /// Hash of the whole head except the id.
    let whole: UInt64
    /// Hash of the kind and the payload, with the node of an event (XEP-0060), or the contact of a push (RFC 6121 §2.1.6).
    let content: UInt64
    /// Hash of kind, payload and sender.
    let contentOfSender: UInt64
    /// Hash of kind and sender.
    let loose: UInt64
    /// Whether the item is a stanza that the server may leave out.
    let isOptional: Bool

    /// - Parameter isOfServer: Whether the server sent the item, so that rules for the occurrence of stanzas apply.
    init(
        _ element: Element,
        _ names: AddressNames,
        _ senders: SenderNumbers,
        _ rules: NoiseRules,
        isOfServer: Bool = true
    ) {
        let stanza = element.stanzaKind
        let nickname = element.nicknameAttribute
        /// Returns the hash of the sender. In a room, and in an error that refuses presence in a room, it includes the
        /// resource, which is the occupant's nickname. For other presence, it differs between a full JID (a client or
        /// occupant) and a bare JID (an account or room).
        func sender(_ bare: UInt64) -> UInt64 {
            let isOccupant =
                nickname?.description == "from" || stanza == .presence && element.attribute("type", is: "error")
            guard isOccupant else {
                var isFull = false
                if stanza == .presence { element.withAttribute("from") { isFull = $0.holds(UInt8(ascii: "/")) } }
                return isFull ? Hash.mix(bare, 9) : bare
            }
            var hash = bare
            element.withAttribute("from") { value in
                if let slash = value.place(of: UInt8(ascii: "/")) {
                    hash = Hash.mix(bare, Hash.of(value.extracting((slash + 1)...), seed: 6))
                }
            }
            return hash
        }
        func bare(_ name: StaticString) -> UInt64 {
            var hash: UInt64 = 0
            element.withAttribute(name) { value in
                let bare = value.extracting(..<(value.place(of: UInt8(ascii: "/")) ?? value.count))
                hash = names.shared(bare).map { Hash.of($0.span, seed: 2) } ?? Hash.of(bare, seed: 2)
            }
            return hash
        }
        var type: UInt64 = 0
        element.withAttribute("type") { value in
            let isDefault = AttributeDefaults.isDefault("type".utf8Span.span, value, of: element)
            if !isDefault { type = Hash.of(value, seed: 3) }
        }
        let name = element.withName { Hash.of($0, seed: 1) }
        // A subscription request is never a changed form of ordinary presence.
        let kind = Hash.mix(name, type != 0 && Self.isSubscription(element) ? Hash.mix(type, 7) : 7)
        var node: UInt64 = 0
        let payload = rules.payload(of: element).map { child in
            if child.namespace == .pubsubEvent {
                child.firstChild?.withAttribute("node") { node = Hash.of($0, seed: 8) }
            } else if element.isRequest, [.roster, .blocking].contains(child.namespace) {
                child.firstChild?.withAttribute("jid") { jid in
                    node = names.shared(jid).map { Hash.of($0.span, seed: 8) } ?? Hash.of(jid, seed: 8)
                }
            }
            return Hash.mix(
                Hash.mix(child.withName { Hash.of($0, seed: 4) }, child.withNamespaceURI { Hash.of($0, seed: 5) }),
                node
            )
        }
        let implied = element.impliedAddresses
        let (from, to) = (implied.from ? 0 : bare("from"), implied.to ? 0 : bare("to"))
        content = Hash.mix(kind, payload ?? 0)
        let sender = sender(from)
        var client: UInt64?
        if stanza == .message { element.withAttribute("from") { client = senders.number($0) } }
        whole = Hash.mix(Hash.mix(content, type), Hash.mix(sender, to))
        contentOfSender = Hash.mix(content, sender)
        loose = Hash.mix(kind, sender)
        // An iq of any other type is treated as an answer.
        let isRequest = element.isRequest
        isOptional =
            isOfServer && stanza != .nonza && (stanza != .iq || isRequest)
            && rules.occurrences(of: element).mayBeAbsent
        role =
            switch stanza {
            case .iq: isRequest ? .request : .answer
            // Messages of different clients, and events of different nodes, have no order relative to each other.
            case .message:
                .message(Hash.mix(Hash.mix(client.map { Hash.mix(from, $0) } ?? from, to), node))
            case .presence, .nonza: .other
            }
    }

    private static func isSubscription(_ element: Element) -> Bool {
        element.stanzaKind == .presence
            && ["subscribe", "subscribed", "unsubscribe", "unsubscribed", "probe"].contains {
                element.attribute("type", is: $0)
            }
    }
}
