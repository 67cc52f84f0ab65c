internal import TapRecord
internal import XMPPCore

/// The definitions (`%` lines) of all files of a rule set.
struct RuleDefinitions: Sendable {
    /// Domains and JIDs.
    struct Zone: Sendable {
        var members: Set<[UInt8]> = []
        /// `$local`: the domain of the account and of the session's stream.
        var isLocal = false
    }

    /// A list of texts that rules can extend.
    struct List: Sendable {
        enum Filter: String, Sendable, CaseIterable { case upper, lower, prep, bare }

        /// The source of the definition, without the name.
        var source = ""
        var items: Set<[UInt8]> = []
        /// Maximum number of texts that rules can add; nil means ``RuleTables/maximumAdded``.
        var limit: Int?
        var filters: [Filter] = []

        /// Returns a text in the form in which it is stored and compared.
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
        /// The source of the definition, without the name.
        var source = ""
        /// Events per second.
        var rate = 1.0
        /// Number of seconds for which unused events accumulate.
        var burst = 1.0
        /// Maximum number of keys of `LIMIT … on`.
        var entries = 1000
        /// Whether events pass if all buckets are in use.
        var allowsOverflow = false
    }

    /// Definitions of one kind, accessible by name.
    struct Named<Value: Sendable>: Sendable {
        private(set) var names: [String] = []
        var values: [Value] = []
        private var numbers: [String: Int] = [:]

        func index(of name: String) -> Int? { numbers[name] }

        /// Adds or replaces a definition. The last definition of a name applies, as in mod_firewall.
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

/// The result of reading a file that a definition refers to.
package enum RuleResource: Sendable {
    /// The contents of the file.
    case contents([UInt8])
    /// The file does not exist.
    case missing
    /// The file cannot be read, with the reason.
    case unreadable(String)
}
