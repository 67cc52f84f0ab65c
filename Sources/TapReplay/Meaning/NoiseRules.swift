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
        /// It has to be there, with whatever value; a client sends the live value for which it was first seen to stand.
        case follow(ValueClass)
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
    /// A rule as it is looked up: by hashes, so that an element without rules costs a few comparisons.
    private struct Candidate: BitwiseCopyable {
        enum Reach: BitwiseCopyable {
            /// Every element of the name and namespace.
            case anywhere
            /// The stanza itself.
            case stanza
            /// The path decides.
            case path
        }

        let index: Int
        /// Hash of the element's name; 0 is any.
        let name: UInt64
        let reach: Reach
    }

    /// Rules of which the last element's namespace is in the table, of the streams' content under ``Namespace/client``.
    private var byNamespace: [[Candidate]] = Array(repeating: [], count: 256)
    /// The others.
    private var anywhere: [Candidate] = []
    /// For each rule what of its element it speaks of, as ``key(_:_:)``, or one of the two below.
    private var targets: [UInt64] = []

    static let elementTarget: UInt64 = 1
    static let textTarget: UInt64 = 2

    /// The rules of noise files, and behind them the built-in ones.
    public init(_ own: [Rule] = []) {
        for rule in own + BuiltInNoise.rules { add(rule) }
    }

    private mutating func add(_ rule: Rule) {
        let index = rules.count
        rules.append(rule)
        targets.append(Self.key(rule.locator.target))
        var name: UInt64 = 0
        var reach = Candidate.Reach.path
        if case .element(let space, .one(let bytes)) = rule.locator.steps.last {
            name = Hash.of(bytes.span, seed: Hash.nameSeed)
            switch (space, rule.locator.steps.count) {
            case (.content, 1): reach = .stanza
            case (.one(let key), 2)
            where rule.locator.steps[0] == .depth && key.namespace != .other && key.namespace != .client:
                reach = .anywhere
            default: break
            }
        }
        let candidate = Candidate(index: index, name: name, reach: reach)
        switch rule.locator.lastNamespace {
        case .content: byNamespace[Int(Namespace.client.rawValue)].append(candidate)
        case .one(let key) where key.namespace != .other: byNamespace[Int(key.namespace.rawValue)].append(candidate)
        case .one, .any: anywhere.append(candidate)
        }
    }

    /// What a part of an element is looked up by.
    static func key(_ target: Locator.Target) -> UInt64 {
        switch target {
        case .element: elementTarget
        case .text: textTarget
        case .attribute(let uri, let name): key(name.span, uri.span)
        }
    }

    /// What an attribute is looked up by.
    static func key(_ name: Span<UInt8>, _ uri: Span<UInt8>) -> UInt64 {
        Hash.mix(Hash.of(name, seed: 3), uri.isEmpty ? 0 : Hash.of(uri, seed: 4))
    }

    /// The rules that may speak of the last element of `path`, whose first is the stanza: for ``action(for:_:)``.
    ///
    /// - Parameter name: A hash of the element's name, with ``Hash/nameSeed``.
    func fill(_ found: inout [Int], for path: [Element], name: UInt64) {
        found.removeAll(keepingCapacity: true)
        guard let element = path.last else { return }
        let space = element.isContent ? Namespace.client : element.namespace
        add(byNamespace[Int(space.rawValue)], path, name, to: &found)
        guard !anywhere.isEmpty else { return }
        let count = found.count
        add(anywhere, path, name, to: &found)
        if count > 0, found.count > count { found.sort() }
    }

    /// The same, without a hash at hand.
    func fill(_ found: inout [Int], for path: [Element]) {
        let name = path.last?.withName { Hash.of($0, seed: Hash.nameSeed) }
        fill(&found, for: path, name: name ?? 0)
    }

    private func add(_ candidates: [Candidate], _ path: [Element], _ name: UInt64, to found: inout [Int]) {
        for candidate in candidates where candidate.name == name || candidate.name == 0 {
            let isMeant =
                switch candidate.reach {
                case .anywhere: true
                case .stanza: path.count == 1
                case .path: rules[candidate.index].locator.matches(path)
                }
            if isMeant { found.append(candidate.index) }
        }
    }

    /// What is done with an attribute, of which ``key(_:_:)`` is given, with the text or the element; nil where no rule speaks of
    /// it.
    func action(for target: UInt64, _ found: [Int]) -> (Int, Action)? {
        for index in found where targets[index] == target { return (index, rules[index].action) }
        return nil
    }
}
