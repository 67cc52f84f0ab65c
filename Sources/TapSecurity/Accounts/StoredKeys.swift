package import TapCore
internal import TapRecord

/// The keys that a server stores instead of an account's password: SCRAM keys, one set for each hash.
///
/// A file contains one record per line in the format of RFC 5803, with both keys and the salt in base64:
///
/// ```
/// SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE=
/// ```
///
/// A record is enough to verify a client's login. A login to the server also needs `ClientKey`, which a client's proof
/// reveals to anyone who has `StoredKey` (RFC 5802 §9): whoever has a record and observes one login can log in as the
/// account.
package struct StoredKeys: Sendable, Hashable {
    /// The records by hash algorithm, at least one.
    package let records: [HashAlgorithm: SCRAMCredentials]

    /// Allowed iteration counts; the maximum is that of ``SCRAMClient``.
    private static let allowedIterations = 1...SCRAMClient.allowedIterations.upperBound

    /// Creates stored keys; nil if `records` is empty.
    package init?(_ records: [HashAlgorithm: SCRAMCredentials]) {
        guard !records.isEmpty else { return nil }
        self.records = records
    }

    /// The hash algorithms, strongest first.
    package var algorithms: [HashAlgorithm] { HashAlgorithm.byStrength.filter { records[$0] != nil } }

    /// The record that verifies a password with the least work: the one with the fewest iterations; among records with
    /// equal counts, the one with the strongest hash.
    var cheapest: (algorithm: HashAlgorithm, record: SCRAMCredentials)? {
        let all = algorithms.compactMap { algorithm in records[algorithm].map { (algorithm: algorithm, record: $0) } }
        return all.min { $0.record.iterations < $1.record.iterations }
    }

    // MARK: Files

    /// An error in a line.
    struct Fault: Error, Equatable {
        /// The line, from 1.
        let line: Int
        let message: String
    }

    /// Returns whether a text contains records instead of a password: its first line that is not a comment begins like
    /// a record.
    ///
    /// A password may begin with `#`; such a line is a comment only if a record follows.
    static func begin(_ text: String) -> Bool {
        guard let row = rows(of: text).first?.row else { return false }
        let start = row.prefix { $0 != "$" }
        return start.hasPrefix("SCRAM-") && start.endIndex < row.endIndex
    }

    /// Returns the lines that are neither empty nor comments, with line numbers from 1.
    private static func rows(of text: String) -> [(number: Int, row: Substring)] {
        text.numberedRows.filter { !$0.row.isEmpty && $0.row.first != "#" }
    }

    /// Parses the records of a text; empty lines and lines that begin with `#` are ignored.
    init(parsing text: String) throws(Fault) {
        var records: [HashAlgorithm: SCRAMCredentials] = [:]
        for (number, row) in Self.rows(of: text) {
            func fault(_ message: String) -> Fault { Fault(line: number, message: message) }
            let (algorithm, record) = try Self.record(row, fault)
            guard records[algorithm] == nil else {
                throw fault("more than one stored key for \(SCRAMMechanism(algorithm)); leave one out")
            }
            records[algorithm] = record
        }
        self.records = records
    }

    private static let form = "write SCRAM-SHA-1$ITERATIONS:SALT$STOREDKEY:SERVERKEY, in base64 (RFC 5803)"

    /// Parses a record. Errors never quote it, because it is a secret.
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
