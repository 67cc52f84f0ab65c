internal import TapRecord
internal import XMPPCore

/// Parses rule files and collects all errors.
///
/// Makes two passes: the first reads the definitions of all files, so that rules can use definitions of other files;
/// the second reads the rules.
struct RuleParser {
    /// A line of a file, joined with its continuation lines.
    private struct Line {
        var place: RulePlace
        var text: String
    }

    private(set) var definitions = RuleDefinitions()
    private(set) var rules: [Rule] = []
    private(set) var faults: [RuleFault] = []
    private(set) var warnings: [RuleFault] = []
    /// All chains that appear in `::` lines and jumps, in order of first use.
    private(set) var chains: [RuleChain] = []
    private var chainNumbers: [RuleChain: Int] = [:]
    /// All jumps: the number of the target chain, and the reader at the name of that chain.
    private var jumps: [(chain: Int, reader: RuleReader)] = []
    /// Whether the current rule is in a `user/` chain.
    private(set) var isUserChain = false
    /// Whether the current rule is in `preroute`.
    private(set) var isPreroute = false
    /// Warnings about edits of `from` in the current rule.
    var editsOfSender: [RuleFault] = []
    /// Number of counters of `EVERY` and `NTH`.
    var counters = 0

    private let resource: (String) -> RuleResource
    private let defaultChain: RuleChain

    /// Maximum number of reported errors.
    static let maximumFaults = 200

    /// Creates a parser.
    ///
    /// - Parameters:
    ///   - defaultChain: The chain of rules before the first chain line of a file.
    ///   - resource: Returns the contents of the files that lists refer to.
    init(defaultChain: RuleChain, resource: @escaping (String) -> RuleResource) {
        self.defaultChain = defaultChain
        self.resource = resource
    }

    /// Parses the files in this order.
    mutating func read(_ files: [RuleSource]) {
        let all = files.map { file in (file, Self.lines(of: file)) }
        for (_, lines) in all {
            for line in lines where line.text.hasPrefix("%") {
                collectFaults { parser throws(RuleFault) in try parser.define(line) }
            }
        }
        for (file, lines) in all { readRules(of: file, lines) }
        checkJumps()
        let order = Dictionary(files.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        faults.sort { left, right in
            let files = (order[left.place.file] ?? 0, order[right.place.file] ?? 0)
            return (files.0, left.place.line, left.column) < (files.1, right.place.line, right.column)
        }
        if faults.count > Self.maximumFaults {
            faults[Self.maximumFaults].found = "\(faults.count - Self.maximumFaults) more mistakes"
            (faults[Self.maximumFaults].expected, faults[Self.maximumFaults].nearest) = (nil, nil)
            faults.removeLast(faults.count - Self.maximumFaults - 1)
        }
    }

    private mutating func collectFaults(_ body: (inout RuleParser) throws(RuleFault) -> Void) {
        do throws(RuleFault) { try body(&self) } catch { faults.append(error) }
    }

    /// Returns the lines without surrounding white space, including empty lines and comments.
    private static func lines(of file: RuleSource) -> [Line] {
        var lines: [Line] = []
        var held: Line?
        let text =
            file.text.unicodeScalars.first == "\u{FEFF}" ? String(file.text.unicodeScalars.dropFirst()) : file.text
        let texts = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (number, text) in texts.enumerated() {
            var text = RuleReader.trimmed(String(text))
            let continues = text.hasSuffix("\\")
            if continues { text.removeLast() }
            var line = held ?? Line(place: RulePlace(file: file.name, line: number + 1), text: "")
            line.text += text
            held = continues ? line : nil
            if !continues { lines.append(line) }
        }
        return held.map { lines + [$0] } ?? lines
    }

    // MARK: Rules

    private enum State { case between, conditions, actions }

    private mutating func readRules(of file: RuleSource, _ lines: [Line]) {
        var chain = defaultChain
        isUserChain = false
        isPreroute = chain == .preroute
        var state = State.between
        var rule: Rule?
        var settings = RuleSettings()
        var last = RulePlace(file: file.name, line: 1)
        for line in lines {
            last = line.place
            let reader = RuleReader(line.text, at: line.place)
            if line.text.hasPrefix("#") || line.text.hasPrefix(";") { continue }
            if line.text.isEmpty {
                finish(&rule, state, reader)
                state = .between
            } else if line.text.hasPrefix("::") || line.text.hasPrefix("%") || line.text.hasPrefix("@@") {
                if state == .conditions {
                    faults.append(
                        reader.fault(
                            "\"\(line.text.prefix(2))\" inside a rule",
                            "expected an action of the rule before it"
                        )
                    )
                }
                if state == .actions { finish(&rule, state, reader) }
                (rule, state) = (nil, .between)
                if line.text.hasPrefix("::") {
                    collectFaults { parser throws(RuleFault) in chain = try parser.chain(reader) }
                    if case .user = chain { isUserChain = true } else { isUserChain = false }
                    isPreroute = chain == .preroute
                }
                if line.text.hasPrefix("@@") { collectFaults { _ throws(RuleFault) in try settings.read(reader) } }
            } else if let name = Self.action(line.text) {
                if rule == nil { rule = Rule(place: line.place, chain: chain, settings) }
                if let decisive = rule?.steps.last, decisive.isDecisive, RuleActionName(rawValue: name) != nil {
                    // A warning, because mod_firewall accepts such a rule.
                    warn(reader.fault("unreachable action \(name)", "the action before it ends the rule"))
                }
                state = .actions
                collectFaults { parser throws(RuleFault) in
                    let step = try parser.step(named: name, reader)
                    if case .trace = step { rule?.isTraced = true }
                    rule?.steps.append(step)
                }
            } else {
                if state == .actions {
                    faults.append(
                        reader.fault("a condition after an action", "expected an empty line between two rules")
                    )
                    finish(&rule, state, reader)
                    rule = nil
                }
                if rule == nil { rule = Rule(place: line.place, chain: chain, settings) }
                // An action that lacks its full stop or "=" is reported only once, as an invalid condition.
                state = Self.isAction(line.text) ? .actions : .conditions
                collectFaults { parser throws(RuleFault) in rule?.conditions.append(try parser.condition(reader)) }
                rule?.conditionTexts.append(line.text)
            }
        }
        finish(&rule, state, RuleReader("", at: last))
    }

    private mutating func finish(_ rule: inout Rule?, _ state: State, _ reader: RuleReader) {
        if state == .conditions {
            faults.append(reader.fault("conditions without an action", "expected an action such as DROP."))
        } else if let rule, state == .actions {
            warn(of: rule)
            collectFaults { parser throws(RuleFault) in try parser.checkFaults(of: rule) }
            rules.append(rule)
        }
        rule = nil
    }

    private mutating func chain(_ reader: RuleReader) throws(RuleFault) -> RuleChain {
        var reader = reader
        _ = reader.consume("::")
        reader.skipSpaces()
        let start = reader
        let name = reader.consumeRest()
        guard let chain = RuleChain(name) else { throw Self.unknownChain(name, start) }
        _ = index(of: chain)
        return chain
    }

    private static func unknownChain(_ name: String, _ reader: RuleReader) -> RuleFault {
        let known = RuleChain.builtIn.map(\.name)
        return reader.fault(
            "unknown chain \"\(name)\"",
            "expected \(known.joined(separator: ", ")) or user/NAME",
            nearest: Spelling.nearest(to: name, among: known)
        )
    }

    /// Parses an address; warns of a literal `*`, which many languages use as a wildcard.
    mutating func address(_ reader: inout RuleReader) throws(RuleFault) -> AddressPattern {
        warnOfStar(
            in: RuleReader.trimmed(String(reader.rest)),
            reader,
            "write <*> for any text, as in <*>@<*.example.net>"
        )
        return try AddressPattern(&reader)
    }

    private mutating func warnOfStar(in address: some StringProtocol, _ reader: RuleReader, _ advice: String) {
        guard address.contains("*"), !address.contains("<") else { return }
        var reader = reader
        reader.skipSpaces()
        warn(reader.fault("the \"*\" in \"\(address)\" stands for itself", advice))
    }

    /// Returns the number of a chain for `JUMP CHAIN`.
    private mutating func index(of chain: RuleChain) -> Int {
        if let index = chainNumbers[chain] { return index }
        chains.append(chain)
        chainNumbers[chain] = chains.count - 1
        return chains.count - 1
    }

    /// Parses the target of `JUMP CHAIN`.
    mutating func jump(_ reader: inout RuleReader) throws(RuleFault) -> Int {
        let start = reader
        let name = RuleReader.trimmed(reader.consumeRest())
        guard let chain = RuleChain(name) else {
            // Files can define only user/NAME chains.
            if !name.contains("/"), let chain = RuleChain("user/\(name)") {
                throw start.fault("unknown chain \"\(name)\"", "expected user/NAME", nearest: chain.name)
            }
            throw Self.unknownChain(name, start)
        }
        jumps.append((index(of: chain), start))
        return index(of: chain)
    }

    /// The rules of each of ``chains``.
    var rulesOfChains: [[Int]] {
        let members = Dictionary(grouping: rules.indices) { rules[$0].chain }
        return chains.map { members[$0] ?? [] }
    }

    /// Maximum nesting depth of jumps.
    static let maximumJumpDepth = 100

    /// The result of following the jumps of a chain.
    private enum JumpEnd: Equatable {
        case open
        case loop
        /// The number of nested jumps, including the one to this chain; ``maximumJumpDepth`` + 1 means any greater depth.
        case depth(Int)
    }

    /// Reports jumps in a loop and jumps nested too deep for the stack, even if conditions would end them. A jump to an
    /// empty chain does nothing, as in mod_firewall: another script may add rules to the chain.
    private mutating func checkJumps() {
        let members = rulesOfChains
        let targets = members.map { members in
            Set(members.flatMap { rules[$0].steps.compactMap { if case .jump(let chain) = $0 { chain } else { nil } } })
        }
        var ends: [Int: JumpEnd] = [:]
        var isDepthReported = false
        let known = rules.map(\.chain.name).filter { $0.hasPrefix("user/") }
        for (chain, reader) in jumps {
            let name = chains[chain].name
            guard !members[chain].isEmpty else {
                warn(
                    reader.fault(
                        "no rules in chain \(name)",
                        "the jump does nothing without a line ::\(name) and rules below it",
                        nearest: Spelling.nearest(to: name, among: known)
                    )
                )
                continue
            }
            switch Self.end(of: chain, targets, depth: 1, &ends) {
            case .loop:
                faults.append(Self.loopFault(chain, reader, Self.loop(from: chain, targets, ends), chains.map(\.name)))
            case .depth(let depth) where depth > Self.maximumJumpDepth && !isDepthReported:
                isDepthReported = true
                faults.append(reader.fault("jumps nested deeper than \(Self.maximumJumpDepth) chains"))
            default: break
            }
        }
    }

    /// Returns the chains of a loop that the jumps of a chain lead to.
    private static func loop(from chain: Int, _ targets: [Set<Int>], _ ends: [Int: JumpEnd]) -> [Int] {
        var path = [chain]
        var places = [chain: 0]
        while let last = path.last, let next = targets[last].sorted().first(where: { ends[$0] == .loop }) {
            if let place = places[next] { return Array(path[place...]) }
            places[next] = path.count
            path.append(next)
        }
        return [chain]
    }

    private static func loopFault(_ chain: Int, _ reader: RuleReader, _ loop: [Int], _ names: [String]) -> RuleFault {
        // Rotates the loop to begin with `chain`, if the loop contains it.
        let start = loop.firstIndex(of: chain) ?? 0
        let all = (loop[start...] + loop[..<start] + [loop[start]]).map { names[$0] }
        let shown = all.count > 9 ? all.prefix(7) + ["…"] + all.suffix(1) : all[...]
        let path = shown.joined(separator: " → ")
        guard loop.contains(chain) else {
            return reader.fault("\(names[chain]) leads to a loop of jumps: \(path)", "remove one of these jumps")
        }
        return reader.fault("jump loop: \(path)", "a chain must not lead back to itself")
    }

    private static func end(of chain: Int, _ targets: [Set<Int>], depth: Int, _ ends: inout [Int: JumpEnd]) -> JumpEnd {
        if let end = ends[chain] { return end == .open ? .loop : end }
        guard depth <= maximumJumpDepth else { return .depth(maximumJumpDepth + 1) }
        ends[chain] = .open
        var longest = 0
        var isLoop = false
        for target in targets[chain] {
            switch end(of: target, targets, depth: depth + 1, &ends) {
            case .depth(let depth): longest = max(longest, depth)
            case .loop, .open: isLoop = true
            }
        }
        let end = isLoop ? JumpEnd.loop : .depth(min(longest + 1, maximumJumpDepth + 1))
        ends[chain] = end
        return end
    }

    /// Returns the name of the action in a line; nil if the line is a condition.
    private static func action(_ line: String) -> String? {
        let mark = line.drop(while: isOfName).first
        return !line.prefix(while: isOfName).isEmpty && (mark == "." || mark == "=") ? name(of: line) : nil
    }

    /// Returns the name at the beginning of a line, its words separated by one space.
    private static func name(of line: String) -> String {
        line.prefix(while: isOfName).uppercased().split(whereSeparator: { $0 == " " || $0 == "_" })
            .joined(separator: " ")
    }

    /// Returns whether a line begins with the name of an action, regardless of the rest.
    private static func isAction(_ line: String) -> Bool {
        let name = name(of: line)
        return RuleActionName.allCases.contains { name == $0.rawValue || name.hasPrefix($0.rawValue + " ") }
    }

    private static func isOfName(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_" || character == " ")
    }

    // MARK: Definitions

    private mutating func define(_ line: Line) throws(RuleFault) {
        var reader = RuleReader(line.text, at: line.place)
        _ = reader.consume("%")
        reader.skipSpaces()
        let start = reader
        let kind = reader.consume { $0.isLetter || $0 == "_" }
        let kinds = ["LIST", "PATTERN", "RATE", "SEARCH", "ZONE"]
        guard kinds.contains(kind) else {
            throw reader.fault(
                "unknown definition \"%\(kind)\"",
                "expected %\(kinds.joined(separator: ", %"))",
                nearest: Spelling.nearest(to: kind, among: kinds.map { $0.lowercased() }).map { "%\($0.uppercased())" },
                at: start
            )
        }
        reader.skipSpaces()
        let name = try reader.name(of: kind.lowercased())
        reader.skipSpaces()
        var isRegular = false
        if kind == "PATTERN", reader.consume("(") {
            let start = reader
            guard reader.consume("regex)") else {
                throw reader.fault("\"(\(reader.word())\"", "expected (regex)", at: start)
            }
            isRegular = true
            reader.skipSpaces()
        }
        guard reader.consume(":") else {
            throw reader.fault("no \":\" after \(name)", "expected %\(kind) \(name): VALUE")
        }
        if reader.consume("<") {
            let path = RuleReader.trimmed(reader.consumeRest())
            let text = try contents(of: path, reader)
            reader = RuleReader(text.split(whereSeparator: \.isNewline).joined(separator: " "), at: line.place)
        }
        reader.skipSpaces()
        guard !reader.isAtEnd else { throw reader.fault("no value of \(name)", "expected %\(kind) \(name): VALUE") }
        // As in mod_firewall, escapes such as `\n` are replaced by the characters that they represent; unknown escapes
        // are kept.
        if !isRegular, reader.rest.contains("\\") { reader = RuleReader(Self.unescaped(reader.rest), at: line.place) }
        switch kind {
        case "ZONE": defineZone(name, &reader)
        case "LIST": try defineList(name, &reader)
        case "RATE": try defineRate(name, &reader)
        case "SEARCH":
            // Defines the search even if it is invalid, so that uses of it are not reported as well.
            if let any = try? StanzaPath("#") { definitions.searches.define(name, any) }
            definitions.searches.define(name, try path(&reader, isText: true))
        default: try definePattern(name, &reader, isRegular)
        }
    }

    private static func unescaped(_ text: Substring) -> String {
        let escapes: [Character: Character] = [
            "a": "\u{7}", "b": "\u{8}", "f": "\u{C}", "n": "\n", "r": "\r", "t": "\t", "v": "\u{B}", "\\": "\\",
            "\"": "\"", "'": "'",
        ]
        var result = ""
        var characters = text.makeIterator()
        while let character = characters.next() {
            guard character == "\\", let next = characters.next() else {
                result.append(character)
                continue
            }
            if let escape = escapes[next] { result.append(escape) } else { result += "\\\(next)" }
        }
        return result
    }

    private mutating func defineZone(_ name: String, _ reader: inout RuleReader) {
        var zone = RuleDefinitions.Zone()
        for (member, start) in reader.list(isSpaced: true) {
            warnOfStar(in: member, start, "a zone lists domains and JIDs; FROM: <*.example.net> matches a pattern")
            zone.members.insert(RuleAddress(member).full)
        }
        definitions.zones.define(name, zone)
    }

    private mutating func definePattern(_ name: String, _ reader: inout RuleReader, _ isRegular: Bool) throws(RuleFault)
    {
        if let empty = try? LuaPattern([]) { definitions.patterns.define(name, .lua(empty)) }
        definitions.patterns.define(name, try pattern(&reader, isRegular: isRegular))
    }

    private mutating func defineRate(_ name: String, _ reader: inout RuleReader) throws(RuleFault) {
        // Defines the rate even if it is invalid, so that uses of it are not reported as well.
        definitions.rates.define(name, RuleDefinitions.Rate())
        var rate = RuleDefinitions.Rate(source: String(reader.rest))
        let start = reader
        rate.rate = try reader.decimal("rate")
        guard rate.rate > 0 else { throw start.fault("the rate is 0", "expected events per second, as in 2 or 0.1") }
        for var option in try reader.options() {
            let start = option
            let word = option.consume { $0.isLetter }
            option.skipSpaces()
            switch word {
            case "burst": rate.burst = try option.decimal("burst")
            case "entries": rate.entries = try option.integer("number of entries", in: 1...1_000_000)
            case "allow" where option.consume("overflow"): rate.allowsOverflow = true
            default:
                throw start.fault(
                    "unknown option \"\(start.rest)\"",
                    "expected (burst SECONDS), (entries N) or (allow overflow)",
                    nearest: Spelling.nearest(to: word, among: ["burst", "entries", "allow"])
                )
            }
            try option.end()
        }
        guard rate.rate * rate.burst >= 1 else {
            let burst = (1 / rate.rate).rounded(.up)
            throw start.fault(
                "the limit never allows an event: rate × burst is below 1",
                "expected a \(burst < 1e9 ? "burst of at least \(Int(burst))" : "larger rate")"
            )
        }
        definitions.rates.define(name, rate)
    }

    private mutating func defineList(_ name: String, _ reader: inout RuleReader) throws(RuleFault) {
        definitions.lists.define(name, RuleDefinitions.List())
        var list = RuleDefinitions.List(source: String(reader.rest))
        let start = reader
        let source = reader.word()
        // Checked before the options, because lists from HTTP or pubsub have different options.
        if source.hasPrefix("http:") || source.hasPrefix("https:") {
            throw start.fault("lists over HTTP are not supported", "download the file and use file:PATH")
        }
        if source.hasPrefix("pubsub") {
            throw start.fault("lists from pubsub are not supported", "use memory or file:PATH")
        }
        var ignoresMissing = false
        for var options in try reader.options() {
            for (text, start) in options.list() {
                let parts = text.split(separator: ":", maxSplits: 1).map { RuleReader.trimmed(String($0)) }
                switch (parts.first ?? "", parts.count > 1 ? parts[1] : "") {
                case ("limit", let value):
                    guard let limit = Int(value), limit > 0 else {
                        throw start.fault("\"\(value)\" is not a limit of a list", "expected a whole number from 1")
                    }
                    list.limit = limit
                case ("missing", "ignore"): ignoresMissing = true
                case ("missing", "string"), ("missing", "error"): break
                case ("filter", let value):
                    list.filters = try value.split(whereSeparator: { !$0.isLetter && !$0.isNumber }).map {
                        word throws(RuleFault) in
                        guard let filter = RuleDefinitions.List.Filter(rawValue: String(word)) else {
                            throw start.fault(
                                "\"\(word)\" is not a filter of a list",
                                "expected upper, lower, prep or bare"
                            )
                        }
                        return filter
                    }
                case (let word, _):
                    throw start.fault(
                        "unknown option \"\(text)\"",
                        "expected (limit: N), (missing: ignore) or (filter: NAMES)",
                        nearest: Spelling.nearest(to: word, among: ["limit", "missing", "filter"])
                    )
                }
            }
        }
        switch source {
        case "memory": break
        case _ where source.hasPrefix("file:"):
            let text = try contents(of: String(source.dropFirst(5)), start, ignoresMissing: ignoresMissing)
            for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) where !line.isEmpty {
                list.items.insert(list.filtered(Array(line.utf8)))
            }
        default:
            throw start.fault(
                "unknown kind of list \"\(source)\"",
                "expected memory or file:PATH",
                nearest: Spelling.nearest(to: source, among: ["memory", "file"])
            )
        }
        definitions.lists.define(name, list)
    }

    /// Returns the text of a file that a definition refers to.
    private func contents(of path: String, _ reader: RuleReader, ignoresMissing: Bool = false) throws(RuleFault)
        -> String
    {
        guard !path.isEmpty else { throw reader.fault("no path of a file") }
        switch resource(path) {
        case .contents(let bytes):
            guard bytes.count <= Self.maximumListBytes else {
                throw reader.fault(
                    "\(path) is larger than \(Self.maximumListBytes >> 20) MiB",
                    "that is the limit for such a file"
                )
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw reader.fault("\(path) is not UTF-8 text")
            }
            return text
        case .missing:
            guard !ignoresMissing else { return "" }
            throw reader.fault("\(path) does not exist", "create it, or append (missing: ignore)")
        case .unreadable(let reason): throw reader.fault("cannot read \(path): \(reason)")
        }
    }

    /// Maximum size of a list file, in bytes.
    static let maximumListBytes = 16 << 20
}

/// The name and text of a rule file.
package struct RuleSource: Sendable {
    /// The name in messages and records.
    package var name: String
    /// The text.
    package var text: String

    package init(name: String, text: String) {
        self.name = name
        self.text = text
    }
}

// MARK: Common values

extension RuleParser {
    mutating func warn(_ fault: RuleFault) { warnings.append(fault) }

    /// Parses a path up to white space or the end.
    mutating func path(_ reader: inout RuleReader, isText: Bool = false) throws(RuleFault) -> StanzaPath {
        reader.skipSpaces()
        let start = reader
        let source = reader.word()
        return try Self.path(source, start, isText: isText)
    }

    static func path(_ source: String, _ start: RuleReader, isText: Bool) throws(RuleFault) -> StanzaPath {
        let path: StanzaPath
        do throws(StanzaPath.PathFault) {
            path = try StanzaPath(source)
        } catch {
            throw start.fault(
                "\"\(source)\" is not a path: \(error.message)",
                "expected a path, as in {urn:xmpp:ping}ping or body#"
            )
        }
        guard !isText || path.isText else {
            throw start.fault(
                "\"\(source)\" is an element, not a text",
                "append # for the text of the element, or @name for an attribute"
            )
        }
        return path
    }

    /// Parses the rest of the line as a pattern.
    func pattern(_ reader: inout RuleReader, isRegular: Bool) throws(RuleFault) -> TextPattern {
        let start = reader
        let source = Array(reader.consumeRest().utf8)
        do throws(PatternFault) {
            return isRegular ? .regular(try RegularExpression(source)) : .lua(try LuaPattern(source))
        } catch {
            var fault = start.fault(
                "\(isRegular ? "the regular expression" : "the pattern") is wrong: \(error.message)"
            )
            fault.column += String(decoding: source.prefix(error.offset), as: UTF8.self).count
            throw fault
        }
    }

    /// Parses the name of a definition and returns its number.
    func defined<Value>(
        _ what: String,
        _ named: KeyPath<RuleDefinitions, RuleDefinitions.Named<Value>>,
        _ reader: inout RuleReader
    ) throws(RuleFault) -> Int {
        reader.skipSpaces()
        let start = reader
        let name = reader.consume { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
        let names = definitions[keyPath: named].names
        guard let index = definitions[keyPath: named].index(of: name) else {
            throw start.fault(
                name.isEmpty ? "missing name of the \(what)" : "no \(what) \"\(name)\" is defined",
                "expected a line %\(what.uppercased()) \(name.isEmpty ? "NAME" : name): … in one of the files",
                nearest: Spelling.nearest(to: name, among: names)
            )
        }
        return index
    }
}
