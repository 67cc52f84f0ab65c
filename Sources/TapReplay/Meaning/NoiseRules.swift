internal import TapCore
internal import XMPPCore

/// Rules for differences to ignore between sessions with the same meaning: those of noise files, then the built-in
/// ones.
///
/// A line of a noise file contains a ``Locator`` and an action; `#` begins a comment line.
///
///     # The server's version is of no interest here.
///     iq/{jabber:iq:version}query/version/text() present
///     message/body/text() regex ^Your code is [0-9]{6}$
///     iq/{urn:example:load}load/@value number ± 0.5
///     message/{urn:example:trace}trace ignore
///     **/{urn:example:ticket}ticket/@id bind token
public struct NoiseRules: Sendable {
    /// The action for a value or element.
    public enum Action: Sendable {
        /// Ignore it, whether or not it is present.
        case ignore
        /// It must be present, with any value.
        case present
        /// It must be present, with any value; a client sends the live value to which the recorded one was first bound.
        case follow(ValueClass)
        /// Both sides must match a regular expression, as for `body~` in rule files.
        case matches(Expression)
        /// Both numbers may differ by at most `within`.
        case number(within: Double)
        /// The value differs between sessions, but must correspond consistently wherever it occurs.
        case bind(ValueClass)
        /// Like `bind` for the part after the last `#`; a value without `#` is compared literally.
        case bindSuffix(ValueClass)
        /// A JID: account and domain are mapped, the resource differs between sessions.
        case address
    }

    /// A regular expression with its text.
    public struct Expression: Sendable {
        /// The expression as it was written.
        public let text: String
        private let compiled: RegularExpression

        init(_ text: String) throws(PatternFault) {
            compiled = try RegularExpression(Array(text.utf8))
            self.text = text
        }

        /// Returns whether a value matches; false if matching exceeds the complexity limit.
        func matches(_ value: [UInt8]) -> Bool { (try? compiled.matches(value)) ?? false }
    }

    /// A place and the action for it.
    public struct Rule: Sendable {
        /// The place.
        public let locator: Locator
        /// The action.
        public let action: Action

        /// Creates a rule.
        public init(_ locator: Locator, _ action: Action) {
            self.locator = locator
            self.action = action
        }
    }

    /// The rules in order; the first rule for a place applies.
    public private(set) var rules: [Rule] = []
    /// A rule prepared for lookup by hashes, which makes elements without rules cheap.
    private struct Candidate: BitwiseCopyable {
        enum Reach: BitwiseCopyable {
            /// Applies to every element with the name and namespace.
            case anywhere
            /// Applies to the stanza itself.
            case stanza
            /// Applies if the path matches.
            case path
        }

        let index: Int
        /// Hash of the element's name; 0 matches any name.
        let name: UInt64
        let reach: Reach
    }

    /// Candidates by the namespace of the last element; stream content is listed under ``Namespace/client``.
    private var byNamespace: [[Candidate]] = Array(repeating: [], count: 256)
    /// Candidates whose last element's namespace is not in the table.
    private var anywhere: [Candidate] = []
    /// The target of each rule: an attribute as ``key(_:_:)``, or one of the two constants below.
    private var targets: [UInt64] = []

    static let elementTarget: UInt64 = 1
    static let textTarget: UInt64 = 2

    /// Creates rules from those of noise files, followed by the built-in ones.
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

    /// Returns the lookup key of a target.
    static func key(_ target: Locator.Target) -> UInt64 {
        switch target {
        case .element: elementTarget
        case .text: textTarget
        case .attribute(let uri, let name): key(name.span, uri.span)
        }
    }

    /// Returns the lookup key of an attribute.
    static func key(_ name: Span<UInt8>, _ uri: Span<UInt8>) -> UInt64 {
        Hash.mix(Hash.of(name, seed: 3), uri.isEmpty ? 0 : Hash.of(uri, seed: 4))
    }

    /// Finds the rules for the last element of `path`, which starts with the stanza; the result is for
    /// ``action(for:_:)``.
    ///
    /// - Parameter name: Hash of the element's name with ``Hash/nameSeed``.
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

    /// Finds the rules for the last element of `path`, and hashes its name.
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

    /// Returns the first rule, with its index, for an attribute (given as ``key(_:_:)``), the text or the element; nil
    /// if there is none.
    func action(for target: UInt64, _ found: [Int]) -> (Int, Action)? {
        for index in found where targets[index] == target { return (index, rules[index].action) }
        return nil
    }
}
