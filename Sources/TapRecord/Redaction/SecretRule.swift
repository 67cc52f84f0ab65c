import XMPPCore

/// The secrets in an element, by its name.
///
/// Rules match by namespace and local name, at any depth: at the top level, in a carbon, a forwarded message, an
/// archive result, a pubsub item. A class, since rules are passed around and never change.
final class SecretRule: Sendable {
    /// What becomes of the text directly inside an element, and what holds for the elements inside it.
    enum Content: Sendable {
        /// As around it: shown, unless something around it guards its content.
        case inherited
        /// Shown, even where something around it guards its content; elements inside are guarded as before.
        case shown
        /// The text is a secret, and so is everything in elements inside.
        case secret(SecretKind)
        /// As ``secret``, and the placeholder tells how many bytes there were.
        case sized(SecretKind)
        /// Text and attributes are secrets here and in all descendants, except for those that a rule shows.
        case guarded(SecretKind)
        /// A SASL message in base64.
        case sasl(SASLMessage.Role)
        /// A URL with a secret query.
        case url
        /// A header of HTTP, a secret by its `name` attribute.
        case header
        /// A field of a data form, a secret by its `var` and `type` attributes.
        case field
        /// A value or option of a form's field.
        case value
        /// An element that holds a value and its name, which says whether the value is a secret: as an attribute `name`, or
        /// as an element `name` beside the value.
        case pair
        /// The fields of a registration: those that no rule knows are secrets.
        case registration
        /// A push notification: the node that it is published to is a secret (XEP-0357 §4).
        case notification
    }

    struct Attribute: Sendable {
        enum Part: Sendable {
            case whole(SecretKind)
            case query
        }

        var name: StaticString
        var part: Part

        init(_ name: StaticString, _ kind: SecretKind) {
            self.name = name
            part = .whole(kind)
        }

        init(queryOf name: StaticString) {
            self.name = name
            part = .query
        }
    }

    /// Local name; nil is any element of the namespace.
    let name: StaticString?
    /// Namespace; nil is any.
    let namespace: Namespace?
    let content: Content
    /// Attributes that are secrets, with or without a prefix.
    let attributes: [Attribute]
    /// Attributes to show where content is guarded, of which all others are hidden.
    let shown: [StaticString]

    init(
        _ name: StaticString?,
        _ namespace: Namespace?,
        _ content: Content = .inherited,
        attributes: [Attribute] = [],
        shown: [StaticString] = []
    ) {
        self.name = name
        self.namespace = namespace
        self.content = content
        self.attributes = attributes
        self.shown = shown
    }
}

/// All rules, found by name.
struct SecretRules: Sendable {
    static let all: [SecretRule] = authentication + session + accounts + content

    static let table = SecretRules(all)

    /// Attributes that are secrets on every element.
    static let attributes: [SecretRule.Attribute] = [
        .init("password", .password), .init("passwd", .password), .init("pwd", .icePassword),
        .init("ufrag", .iceFragment), .init("token", .token), .init("secret", .key), .init("access_token", .token),
        .init("previd", .smID), .init("newkey", .boshKey), .init("key-params", .mediaKey),
        .init("passphrase", .password), .init("passcode", .password), .init("credential", .key),
    ]

    /// Rules by length and first letter of their names.
    private let named: [[SecretRule]]
    /// Rules without a name, by the raw values of their namespaces.
    private let unnamed: [SecretRule?]
    /// A bit for the length of each attribute that is a secret on every element.
    private let attributeLengths: UInt64

    init(_ rules: [SecretRule]) {
        var named = [[SecretRule]](repeating: [], count: 32 << 5)
        var unnamed = [SecretRule?](repeating: nil, count: 256)
        for rule in rules {
            if let name = rule.name {
                named[Self.slot(name.utf8CodeUnitCount, name.utf8Start[0])].append(rule)
            } else if let namespace = rule.namespace.map({ Int($0.rawValue) }) {
                unnamed[namespace] = unnamed[namespace] ?? rule
            }
        }
        self.named = named
        self.unnamed = unnamed
        attributeLengths = Self.attributes.reduce(0) { $0 | 1 &<< UInt64($1.name.utf8CodeUnitCount) }
    }

    /// Index of the rules whose names begin with this letter, in either case.
    @inline(__always)
    private static func slot(_ count: Int, _ first: UInt8) -> Int { min(count, 31) << 5 | Int(first & 31) }

    /// The rule for an element: one of its name and namespace, else one of its name, else one of its namespace.
    ///
    /// Names of secrets are compared without case if no rule has the name as it is written.
    func find(_ name: Span<UInt8>, _ namespace: Namespace) -> SecretRule? {
        let other = unnamed[Int(namespace.rawValue)]
        guard !name.isEmpty else { return other }
        let rules = named[Self.slot(name.count, name[0])]
        guard !rules.isEmpty else { return other }
        var found: SecretRule?
        for rule in rules {
            guard let ruleName = rule.name, name.equals(ruleName) else { continue }
            if rule.namespace == namespace { return rule }
            if rule.namespace == nil { found = rule }
        }
        return found ?? Self.findIgnoringCase(name, namespace, rules) ?? other
    }

    private static func findIgnoringCase(
        _ name: Span<UInt8>,
        _ namespace: Namespace,
        _ rules: [SecretRule]
    ) -> SecretRule? {
        // Rules have their names in small letters, or those of vCards in capitals beside them.
        guard name.indices.contains(where: { name[$0] &- 0x41 < 26 }) else { return nil }
        var found: SecretRule?
        for rule in rules {
            if case .shown = rule.content { continue }
            guard let ruleName = rule.name, name.equalsIgnoringCase(ruleName) else { continue }
            if rule.namespace == namespace { return rule }
            if rule.namespace == nil { found = rule }
        }
        return found
    }

    /// Returns the rule of an attribute with that local name on any element; nil if its name does not make it a secret.
    func find(attribute name: Span<UInt8>) -> SecretRule.Attribute? {
        guard attributeLengths &>> UInt64(min(name.count, 63)) & 1 == 1 else { return nil }
        for attribute in Self.attributes where name.equalsIgnoringCase(attribute.name) { return attribute }
        return nil
    }
}
