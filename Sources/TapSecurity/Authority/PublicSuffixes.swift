internal import Glibc
internal import Synchronization

/// Domains under which unrelated parties register names, such as `com` or `co.uk`. An authority for a public suffix
/// could sign for all of these parties.
///
/// Uses the Public Suffix List (https://publicsuffix.org/list/, both sections) if installed: the package
/// `publicsuffix`, which libcurl depends on in Debian. Otherwise a stricter built-in rule applies: names of one label
/// are suffixes, except those reserved for private use (RFC 6761, RFC 6762, `.internal`). Common second-level labels,
/// such as `co`, under two-letter top-level domains are suffixes too.
package struct PublicSuffixes: Sendable {
    /// The path of the list in Linux distributions.
    package static let usualPath = "/usr/share/publicsuffix/public_suffix_list.dat"

    /// Maximum size of the list in bytes; it had 250 KB in 2026.
    private static let largestList = 4 << 20

    private let file: File
    private let ownName: String

    /// Creates the check for this machine.
    ///
    /// - Parameters:
    ///   - path: The path of the list, which is read on first use.
    ///   - ownName: The host name; its first label is not a suffix for the built-in rule.
    package init(path: String = usualPath, ownName: String = "") {
        file = File(path)
        self.ownName = String(ownName.lowercased().prefix { $0 != "." })
    }

    /// Returns whether a name is a public suffix; false for addresses.
    package func contains(_ name: CertificateName) -> Bool {
        guard case .domain(let domain) = name else { return false }
        return file.list.map { Self.isListed(domain, in: $0) } ?? isSuffixByRule(domain)
    }

    // MARK: The list

    /// The list file, read once.
    private final class File: Sendable {
        private let path: String
        /// Outer nil until the file is read; inner nil if that failed.
        private let content = Mutex<[UInt8]??>(nil)

        init(_ path: String) { self.path = path }

        var list: [UInt8]? {
            content.withLock { content in
                let list = content ?? PublicSuffixes.list(path)
                content = .some(list)
                return list
            }
        }
    }

    private static func list(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard let bytes = OpenFile.read(file, limit: largestList) else { return nil }
        return bytes.isEmpty || bytes.count > largestList ? nil : bytes
    }

    /// Returns whether a rule of the list matches the domain: the rule is the domain, the rule is `*.` and the domain,
    /// or its `*` matches the domain's first label. An exception rule (`!`) for the domain has precedence.
    ///
    /// The implicit rule `*` for unknown top-level domains is left out, because internal networks use names of one
    /// label.
    static func isListed(_ domain: String, in list: [UInt8]) -> Bool {
        let wanted = Array(domain.utf8)
        let above = wanted.firstIndex(of: UInt8(ascii: ".")).map { wanted[($0 + 1)...] } ?? []
        // Rules contain U-labels, which are converted to A-labels for comparison.
        let mayBeForeign = domain.contains("xn--")
        var isSuffix = false
        for line in list.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            var rule = line.prefix { $0 != 0x20 && $0 != 0x09 }
            guard let first = rule.first, first != UInt8(ascii: "/") else { continue }
            let isException = first == UInt8(ascii: "!")
            if isException { rule = rule.dropFirst() }
            let isWild = rule.starts(with: "*.".utf8)
            if isWild { rule = rule.dropFirst(2) }
            var written = rule
            if rule.contains(where: { $0 >= 0x80 }) {
                guard mayBeForeign, let name = try? CertificateName(String(decoding: rule, as: UTF8.self)) else {
                    continue
                }
                written = Array("\(name)".utf8)[...]
            }
            if isException, written.elementsEqual(wanted) { return false }
            guard !isException else { continue }
            if written.elementsEqual(wanted) || isWild && written.elementsEqual(above) { isSuffix = true }
        }
        return isSuffix
    }

    // MARK: The built-in rule

    func isSuffixByRule(_ domain: String) -> Bool {
        let labels = domain.split(separator: ".")
        guard let top = labels.last else { return true }
        switch labels.count {
        case 1: return !Self.privateNames.contains(domain) && domain != ownName
        case 2: return top.utf8.count == 2 && labels.first.map { Self.kinds.contains(String($0)) } == true
        default: return false
        }
    }

    private static let privateNames: Set = [
        "localhost", "local", "test", "example", "invalid", "internal", "lan", "home", "intranet",
    ]

    /// Common second-level labels under country-code top-level domains.
    private static let kinds: Set = [
        "ac", "asn", "asso", "biz", "co", "com", "coop", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt",
        "gv", "id", "idv", "info", "int", "lg", "ltd", "me", "med", "mil", "mod", "ne", "net", "nhs", "nom", "or",
        "org",
        "plc", "police", "pro", "sch", "school", "tm", "web",
    ]
}
