public import TapCore
internal import TapRecord

/// What a server has stored of an account's password instead of the password: SCRAM's keys, a set for each hash.
///
/// In a file it is one record per line, in the form of RFC 5803, the two keys and the salt in base64:
///
/// ```
/// SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE=
/// ```
///
/// With it a client's login can be checked. To log in to the server takes `ClientKey` too, which a client's proof gives away
/// to anyone with `StoredKey` (RFC 5802 §9): with such a record, one observed login is enough to log in as the account.
public struct StoredKeys: Sendable, Hashable {
    /// By the hash that they are made of; at least one.
    public let records: [HashAlgorithm: SCRAMCredentials]

    /// How often a password may have been hashed: as often as a client of this program hashes one at most.
    private static let allowedIterations = 1...SCRAMClient.allowedIterations.upperBound

    /// Combines stored keys; nil if there are none.
    public init?(_ records: [HashAlgorithm: SCRAMCredentials]) {
        guard !records.isEmpty else { return nil }
        self.records = records
    }

    /// The hashes, the strongest first.
    public var algorithms: [HashAlgorithm] { HashAlgorithm.byStrength.filter { records[$0] != nil } }

    /// The record by which a password is checked with the least work: of the fewest iterations, and of several such the
    /// strongest.
    var cheapest: (algorithm: HashAlgorithm, record: SCRAMCredentials)? {
        let all = algorithms.compactMap { algorithm in records[algorithm].map { (algorithm: algorithm, record: $0) } }
        return all.min { $0.record.iterations < $1.record.iterations }
    }

    // MARK: Files

    /// What is wrong with a line.
    struct Fault: Error, Equatable {
        /// From 1.
        let line: Int
        let words: String
    }

    /// Whether a text holds records and not a password: whether the first line that says something begins as a record does.
    ///
    /// A password may begin with `#`: it is one unless a record follows.
    static func begin(_ text: String) -> Bool {
        guard let row = rows(of: text).first?.row else { return false }
        let start = row.prefix { $0 != "$" }
        return start.hasPrefix("SCRAM-") && start.endIndex < row.endIndex
    }

    /// The lines that say something, with their numbers from 1.
    private static func rows(of text: String) -> [(number: Int, row: Substring)] {
        text.numberedRows.filter { !$0.row.isEmpty && $0.row.first != "#" }
    }

    /// The records of a text; empty lines and those that begin with `#` say nothing.
    init(parsing text: String) throws(Fault) {
        var records: [HashAlgorithm: SCRAMCredentials] = [:]
        for (number, row) in Self.rows(of: text) {
            func fault(_ words: String) -> Fault { Fault(line: number, words: words) }
            let (algorithm, record) = try Self.record(row, fault)
            guard records[algorithm] == nil else {
                throw fault("more than one stored key for \(SCRAMMechanism(algorithm)); leave one out")
            }
            records[algorithm] = record
        }
        self.records = records
    }

    private static let form = "write SCRAM-SHA-1$ITERATIONS:SALT$STOREDKEY:SERVERKEY, in base64 (RFC 5803)"

    /// Nothing of a record stands in what is said of it: it is a secret.
    private static func record(
        _ row: Substring,
        _ fault: (String) -> Fault
    ) throws(Fault) -> (HashAlgorithm, SCRAMCredentials) {
        let parts = row.split(separator: "$", omittingEmptySubsequences: false)
        let halves = parts.map { $0.split(separator: ":", omittingEmptySubsequences: false) }
        guard halves.count == 3, halves[1].count == 2, halves[2].count == 2 else {
            throw fault("not a stored key; \(form)")
        }
        guard let mechanism = SCRAMMechanism(name: String(parts[0])), !mechanism.isPlus else {
            let known = HashAlgorithm.byStrength.map { SCRAMMechanism($0).description }.joined(separator: ", ")
            throw fault("unknown mechanism; the mechanisms are \(known)")
        }
        guard let iterations = decodeIterations(Array(halves[1][0].utf8)[...]),
            allowedIterations.contains(iterations)
        else {
            throw fault(
                "the number of iterations must be from \(allowedIterations.lowerBound) to \(allowedIterations.upperBound)"
            )
        }
        guard let salt = Base64.decode(String(halves[1][1])), !salt.isEmpty else {
            throw fault("the salt is empty or not base64; \(form)")
        }
        let length = mechanism.algorithm.byteCount
        guard let storedKey = Base64.decode(String(halves[2][0])), storedKey.count == length,
            let serverKey = Base64.decode(String(halves[2][1])), serverKey.count == length
        else {
            throw fault("both keys of \(mechanism) must have \(length) bytes, in base64")
        }
        let record = SCRAMCredentials(salt: salt, iterations: iterations, storedKey: storedKey, serverKey: serverKey)
        return (mechanism.algorithm, record)
    }
}
