internal import XMPPCore

/// A stanza in an ``ExpectationSet``, with whatever its owner wants to find again with it.
public struct ComparedStanza<Tag>: Expectable {
    /// What is known of both sides.
    public struct Context: Sendable {
        /// What is bound so far.
        public var bindings: ValueBindings
        /// What may differ.
        public var rules: NoiseRules

        /// Puts both together.
        public init(bindings: ValueBindings = ValueBindings(), rules: NoiseRules = NoiseRules()) {
            self.bindings = bindings
            self.rules = rules
        }
    }

    /// The stanza.
    public let form: StanzaForm
    /// The owner's.
    public let tag: Tag
    /// The first of ``likeness``.
    public var shape: UInt64 { likeness[0] }
    /// Of kind, type, payload and sender; of kind and payload; of the kind. Subscriptions are separate kinds.
    public let likeness: [UInt64]
    /// In which order the stanza may come.
    public let lane: ExpectationSet<Self>.Lane

    /// A stanza of the recording.
    public init(recorded form: StanzaForm, _ context: Context, tag: Tag) {
        self.init(form, context.bindings.recordedNames, id: form.id, tag)
    }

    /// A stanza of the live side.
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

    /// How little is known of both being each other's.
    public static func strangeness(recorded: Self, live: Self, _ context: inout Context) -> Int? {
        let count = context.bindings.count
        guard agree(recorded: recorded, live: live, &context) else { return nil }
        let strangeness = context.bindings.made(since: count).reduce(0) { $0 + ($1 ? 1 : literallyDifferent) }
        context.bindings.rollBack(to: count)
        return strangeness
    }

    /// Whether both mean the same; what is seen for the first time is bound then.
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

/// What is known of an item without looking at more than its head.
struct StanzaHeads {
    /// What an item is to those before it.
    enum Role {
        case request
        case answer
        /// With a key of the two who talk.
        case message(UInt64)
        case other
    }

    let role: Role
    /// Of all that the head says, but the id.
    let whole: UInt64
    /// Of the kind and the payload.
    let content: UInt64
    /// Of the name, and of the type of what is about a subscription: it is no presence that has changed.
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
        // What is no request answers one, if it is any good.
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
