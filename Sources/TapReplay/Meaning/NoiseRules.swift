internal import TapCore
internal import XMPPCore

/// What may differ between two sessions that mean the same, by place: the built-in rules, and those of noise files before them.
///
/// A noise file has one rule a line, a ``Locator`` and what is done there; `#` begins a comment.
///
///     # The server's version is of no interest here.
///     iq/{jabber:iq:version}query/version/text() present
///     message/body/text() regex ^Your code is [0-9]{6}$
///     iq/{urn:example:load}load/@value number ± 0.5
///     message/{urn:example:trace}trace ignore
///     **/{urn:example:ticket}ticket/@id bind token
public struct NoiseRules: Sendable {
    /// What is done with a value or element of some place.
    public enum Action: Sendable {
        /// As if it were not there, whether it is or not.
        case ignore
        /// It has to be there, with whatever value.
        case present
        /// Both sides have to match a regular expression, as `body~` of rule files has it.
        case matches(Expression)
        /// The numbers may differ by so much.
        case number(within: Double)
        /// Differs from session to session, and has to agree with where it stands elsewhere.
        case bind(ValueClass)
        /// What follows the last `#` differs from session to session; without one the value is as any other.
        case bindSuffix(ValueClass)
        /// A JID: accounts and domains as they are bound, the resource from session to session.
        case address
    }

    /// A regular expression with its text.
    public struct Expression: Sendable {
        /// As it was written.
        public let text: String
        private let compiled: RegularExpression

        init(_ text: String) throws(PatternFault) {
            compiled = try RegularExpression(Array(text.utf8))
            self.text = text
        }

        /// Whether a value matches; one that is too complex to tell does not.
        func matches(_ value: [UInt8]) -> Bool { (try? compiled.matches(value)) ?? false }
    }

    /// A place and what is done there.
    public struct Rule: Sendable {
        /// The place.
        public let locator: Locator
        /// What is done.
        public let action: Action

        /// Puts both together.
        public init(_ locator: Locator, _ action: Action) {
            self.locator = locator
            self.action = action
        }
    }

    /// In the order in which they are asked; the first one for a place holds.
    public private(set) var rules: [Rule] = []
    /// Rules of which the last element's namespace is in the table, of the streams' content under ``Namespace/client``.
    private var byNamespace: [[Int]] = Array(repeating: [], count: 256)
    /// The others.
    private var anywhere: [Int] = []

    /// The rules of noise files, and behind them the built-in ones.
    public init(_ own: [Rule] = []) {
        for rule in own + BuiltInNoise.rules { add(rule) }
    }

    init(only rules: [Rule]) {
        for rule in rules { add(rule) }
    }

    private mutating func add(_ rule: Rule) {
        let index = rules.count
        rules.append(rule)
        switch rule.locator.lastNamespace {
        case .content: byNamespace[Int(Namespace.client.rawValue)].append(index)
        case .one(let key) where key.namespace != .other: byNamespace[Int(key.namespace.rawValue)].append(index)
        case .one, .any: anywhere.append(index)
        }
    }

    /// The rules that may speak of the last element of `path`, whose first is the stanza: for ``action(forAttribute:_:_:)`` and
    /// its like.
    func fill(_ found: inout [Int], for path: [Element]) {
        found.removeAll(keepingCapacity: true)
        guard let element = path.last else { return }
        let space = element.isContent ? Namespace.client : element.namespace
        let own = byNamespace[Int(space.rawValue)]
        for index in own where rules[index].locator.matches(path) { found.append(index) }
        guard !anywhere.isEmpty else { return }
        let count = found.count
        for index in anywhere where rules[index].locator.matches(path) { found.append(index) }
        if count > 0, found.count > count { found.sort() }
    }

    /// What is done with an attribute; nil where no rule speaks of it.
    func action(forAttribute name: Span<UInt8>, _ uri: Span<UInt8>, _ found: [Int]) -> (Int, Action)? {
        for index in found {
            if case .attribute(let ownURI, let ownName) = rules[index].locator.target, ownName.span.equals(name),
                ownURI.span.equals(uri)
            {
                return (index, rules[index].action)
            }
        }
        return nil
    }

    /// What is done with the text, or with the element itself; nil where no rule speaks of it.
    func action(for target: Locator.Target, _ found: [Int]) -> (Int, Action)? {
        for index in found where rules[index].locator.target == target { return (index, rules[index].action) }
        return nil
    }
}
