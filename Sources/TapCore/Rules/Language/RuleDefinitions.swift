internal import TapRecord
internal import XMPPCore

/// What the `%` lines of all files of a rule set define.
struct RuleDefinitions: Sendable {
    /// Domains and JIDs.
    struct Zone: Sendable {
        var members: Set<[UInt8]> = []
        /// `$local`: the domain of the session's account, and of its stream.
        var isLocal = false
    }

    /// A list of texts that rules may add to.
    struct List: Sendable {
        enum Filter: String, Sendable, CaseIterable { case upper, lower, prep, bare }

        /// The definition as it was written, without its name.
        var source = ""
        var items: Set<[UInt8]> = []
        /// The most texts that rules can add; nil is ``RuleTables/mostAdded``.
        var limit: Int?
        var filters: [Filter] = []

        /// A text as it is stored and looked up.
        func filtered(_ text: [UInt8]) -> [UInt8] {
            var text = text
            for filter in filters {
                switch filter {
                case .lower: text = text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
                case .upper: text = text.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }
                case .prep: text = RuleAddress(String(decoding: text, as: UTF8.self)).full
                case .bare: text = RuleAddress(String(decoding: text, as: UTF8.self)).bare
                }
            }
            return text
        }
    }

    /// A token bucket.
    struct Rate: Sendable {
        /// As of a list.
        var source = ""
        /// Events a second.
        var rate = 1.0
        /// Seconds over which they may be spread.
        var burst = 1.0
        /// Buckets of `LIMIT … on`.
        var entries = 1000
        /// With no bucket free, events pass.
        var allowsOverflow = false
    }

    /// Definitions of one kind, found by name.
    struct Named<Value: Sendable>: Sendable {
        private(set) var names: [String] = []
        var values: [Value] = []
        private var numbers: [String: Int] = [:]

        func index(of name: String) -> Int? { numbers[name] }

        /// Defines a name anew, or again: the last one counts, as in mod_firewall.
        mutating func define(_ name: String, _ value: Value) {
            if let index = index(of: name) {
                values[index] = value
            } else {
                numbers[name] = names.count
                names.append(name)
                values.append(value)
            }
        }
    }

    var zones = Named<Zone>()
    var lists = Named<List>()
    var rates = Named<Rate>()
    var searches = Named<StanzaPath>()
    var patterns = Named<TextPattern>()

    init() { zones.define("$local", Zone(isLocal: true)) }
}

/// The contents of a file that a definition names.
public enum RuleResource: Sendable {
    /// What the file holds.
    case contents([UInt8])
    /// There is none.
    case missing
    /// It cannot be read, and why.
    case unreadable(String)
}
