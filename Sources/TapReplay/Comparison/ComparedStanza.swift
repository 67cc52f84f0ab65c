internal import XMPPCore

/// A stanza in an ``ExpectationSet``, with a tag of its owner.
public struct ComparedStanza<Tag>: Expectable {
    /// The state that comparisons share.
    public struct Context: Sendable {
        /// The value pairs bound so far.
        public var bindings: ValueBindings
        /// The rules for differences to ignore.
        public var rules: NoiseRules

        /// Creates a context.
        public init(bindings: ValueBindings = ValueBindings(), rules: NoiseRules = NoiseRules()) {
            self.bindings = bindings
            self.rules = rules
        }
    }

    /// The stanza.
    public let form: StanzaForm
    /// The owner's tag.
    public let tag: Tag
    /// The first of ``likeness``.
    public var shape: UInt64 { likeness[0] }
    /// Hashes of kind, type, payload and sender; of kind and payload; of the kind. Subscription requests count as
    /// separate kinds.
    public let likeness: [UInt64]
    /// The ordering constraint of the stanza.
    public let lane: ExpectationSet<Self>.Lane

    /// Creates a recorded stanza.
    public init(recorded form: StanzaForm, _ context: Context, tag: Tag) {
        self.init(form, context.bindings.recordedNames, id: form.id, tag)
    }

    /// Creates a live stanza.
    public init(live form: StanzaForm, _ context: Context, tag: Tag) {
        let id = form.id.map { context.bindings.recorded(for: $0, .stanzaID) ?? $0 }
        self.init(form, context.bindings.liveNames, id: id, tag)
    }

    private init(_ form: StanzaForm, _ names: AddressNames, id: String?, _ tag: Tag) {
        self.form = form
        self.tag = tag
        let heads = StanzaHeads(form.element, names)
        likeness = [heads.whole, heads.content, heads.kind]
        lane =
            switch heads.role {
            case .answer: .answer(Hash.of((id ?? "").utf8Span.span, seed: 1))
            case .message(let pair): .ordered(pair)
            case .request, .other: .any
            }
    }

    /// Returns how much is unknown about the match of both stanzas; nil if they differ.
    public static func strangeness(recorded: Self, live: Self, _ context: inout Context) -> Int? {
        let count = context.bindings.count
        guard agree(recorded: recorded, live: live, &context) else { return nil }
        let strangeness = context.bindings.made(since: count).reduce(0) { $0 + ($1 ? 1 : literallyDifferent) }
        context.bindings.rollBack(to: count)
        return strangeness
    }

    /// Returns whether both stanzas mean the same; if so, new value pairs are bound.
    public static func agree(recorded: Self, live: Self, _ context: inout Context) -> Bool {
        let count = context.bindings.count
        let differences = StanzaComparison.compare(
            recorded: recorded.form,
            live: live.form,
            bindings: &context.bindings,
            rules: context.rules
        )
        guard !differences.isEmpty else { return true }
        context.bindings.rollBack(to: count)
        return false
    }
}

extension ComparedStanza: Sendable where Tag: Sendable {}

/// The attributes of an item that are known from its head.
struct StanzaHeads {
    /// The role of an item in its stream.
    enum Role {
        case request
        case answer
        /// With a hash of sender and recipient.
        case message(UInt64)
        case other
    }

    let role: Role
    /// Hash of the whole head except the id.
    let whole: UInt64
    /// Hash of the kind and the payload.
    let content: UInt64
    /// Hash of the name, and of the type of subscription presence, which is never a changed ordinary presence.
    let kind: UInt64

    init(_ element: Element, _ names: AddressNames) {
        func bare(_ name: StaticString) -> UInt64 {
            var hash: UInt64 = 0
            element.withAttribute(name) { value in
                let bare = value.extracting(..<(value.place(of: UInt8(ascii: "/")) ?? value.count))
                hash = names.shared(bare).map { Hash.of($0.span, seed: 2) } ?? Hash.of(bare, seed: 2)
            }
            return hash
        }
        var type: UInt64 = 0
        element.withAttribute("type") { type = Hash.of($0, seed: 3) }
        let stanza = element.stanzaKind
        let name = element.withName { Hash.of($0, seed: 1) }
        kind = Hash.mix(name, type != 0 && Self.isSubscription(element) ? Hash.mix(type, 7) : 7)
        let payload = element.firstChild.map { child in
            Hash.mix(child.withName { Hash.of($0, seed: 4) }, child.withNamespaceURI { Hash.of($0, seed: 5) })
        }
        let implied = element.impliedAddress
        let (from, to) = (implied == .from ? 0 : bare("from"), implied == .to ? 0 : bare("to"))
        content = Hash.mix(kind, payload ?? 0)
        whole = Hash.mix(Hash.mix(content, type), Hash.mix(from, to))
        // An iq of any other type is treated as an answer.
        let isRequest = element.attribute("type", is: "get") || element.attribute("type", is: "set")
        role =
            switch stanza {
            case .iq: isRequest ? .request : .answer
            case .message: .message(Hash.mix(from, to))
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
