internal import Glibc
internal import Synchronization

/// Domains under which strangers register theirs, as `com` or `co.uk`: an authority for one could vouch for all of them.
///
/// Decided by the Public Suffix List (https://publicsuffix.org/list/, both of its sections), where this machine has it:
/// the file of the package `publicsuffix`, which libcurl brings along on Debian. Elsewhere by a built-in rule, which knows
/// less and is rather too careful: a name of one label, but for those that RFC 6761, RFC 6762 and ICANN's `.internal` set
/// aside for private use, and under a top-level domain of two letters the labels that registries use for kinds of owners.
public struct PublicSuffixes: Sendable {
    /// Where distributions keep the list.
    public static let usualPath = "/usr/share/publicsuffix/public_suffix_list.dat"

    /// More than the list has; 250 KB in 2026.
    private static let largestList = 4 << 20

    private let file: File
    private let ownName: String

    /// The judge of this machine.
    ///
    /// - Parameters:
    ///   - path: The list; read when it is first asked.
    ///   - ownName: What this machine calls itself. Its first label is no suffix for the built-in rule.
    public init(path: String = usualPath, ownName: String = "") {
        file = File(path)
        self.ownName = String(ownName.lowercased().prefix { $0 != "." })
    }

    /// Whether a name is a public suffix. An address is none.
    public func contains(_ name: CertificateName) -> Bool {
        guard case .domain(let domain) = name else { return false }
        return file.list.map { Self.isListed(domain, in: $0) } ?? isSuffixByRule(domain)
    }

    // MARK: The list

    /// The file of the list, read once.
    private final class File: Sendable {
        private let path: String
        /// Nil until it is read, and nil inside if that failed.
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

    /// Whether a rule of the list makes the domain a suffix: the domain itself, a `*` in place of its first label unless an
    /// exception (`!`) names it, or a `*` below it.
    ///
    /// The implied rule that each unknown label is a suffix is left out: names of one label are used inside networks.
    static func isListed(_ domain: String, in list: [UInt8]) -> Bool {
        let wanted = Array(domain.utf8)
        let above = wanted.firstIndex(of: UInt8(ascii: ".")).map { wanted[($0 + 1)...] } ?? []
        // Rules are written in U-labels, and names are compared in A-labels.
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

    /// Labels that stand for kinds of owners under the domains of countries.
    private static let kinds: Set = [
        "ac", "asn", "asso", "biz", "co", "com", "coop", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt",
        "gv", "id", "idv", "info", "int", "lg", "ltd", "me", "med", "mil", "mod", "ne", "net", "nhs", "nom", "or",
        "org",
        "plc", "police", "pro", "sch", "school", "tm", "web",
    ]
}
