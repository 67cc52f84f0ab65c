internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// Reads all entries of files, for commands that need the whole recording before they print anything.
struct StoredRecords {
    /// Whether every line could be read, apart from lines cut by an interrupted write.
    var isWhole: Bool { damage.isWhole }
    private var damage = DamageReport()
    private var entries = StoredEntries()

    /// Calls `body` with each entry of the files, in the order in which they were written. Complete captures are
    /// decoded again from their items; other files yield the stored records. Malformed and missing lines are reported
    /// and skipped.
    ///
    /// - Parameters:
    ///   - files: JSON logs, captures, client logs or packets; `-` is standard input.
    ///   - isReanalysed: Whether complete captures are decoded again.
    ///   - keys: TLS secrets for packets.
    ///   - redaction: The redaction of packets and client logs; nil selects the default.
    ///   - literals: Texts of which a line must contain one; others are skipped, see ``RecordReader/requiredLiterals``.
    /// - Throws: A ``Failure`` that names the file that cannot be read.
    init(
        _ files: [String],
        isReanalysed: Bool = true,
        keys: KeyLog = KeyLog(),
        redaction: RedactionOptions? = nil,
        literals: [[UInt8]]? = nil,
        _ body: (RecordReader.Entry) -> Void
    ) throws(Failure) {
        let policy = try redaction?.policy(showsBodies: false) ?? .secrets
        let reader: RecordReader
        do throws(ReaderFault) {
            reader = try RecordReader(
                files,
                advice: AdviceTable.advice(for:),
                keys: keys,
                redaction: policy,
                zone: .system
            )
        } catch {
            throw Failure(error)
        }
        try redaction?.check(reader)
        reader.requiredLiterals = literals
        do throws(ReaderFault) {
            let progress = ProgressLine(after: .seconds(1))
            defer {
                progress.clear()
                damage.end()
            }
            try entries.read(
                reader,
                isReanalysed: isReanalysed,
                onFault: { entry in
                    switch entry {
                    case .damage(let line): damage.record(line)
                    case .gap(let gap): Console.printDiagnostic("\(gap)")
                    case .header, .record: break
                    }
                },
                onProgress: { progress.update(reader) },
                body
            )
        } catch {
            throw Failure(error)
        }
    }

    /// Prints remarks about the selected sessions, such as that one was not found.
    func remark(on wanted: Set<UInt64>) {
        if let remark = entries.found.remark(on: wanted) { Console.printDiagnostic(remark) }
        for remark in entries.packetRemarks(on: wanted) + entries.logMessages { Console.printDiagnostic(remark) }
    }

    /// Throws the exit status; does nothing on success. Incompletely read files take precedence, as in `read`.
    func end(_ wanted: Set<UInt64>, isWell: Bool = true) throws(Failure) {
        guard isWhole else { throw .reported(.file) }
        guard isWell, !entries.found.lacksAny(of: wanted) else { throw .reported(.checkFailed) }
    }
}

extension StoredEntries {
    /// Returns remarks on packets that could not be read or decrypted, for commands that do not print records.
    fileprivate func packetRemarks(on wanted: Set<UInt64>) -> [String] {
        let lacking = wanted.isEmpty ? undecrypted : undecrypted.intersection(wanted)
        guard !lacking.isEmpty else { return packetMessages }
        let names = lacking.sorted().map(String.init).joined(separator: ", ")
        return packetMessages + [
            "session\(lacking.count == 1 ? "" : "s") \(names): TLS is not decrypted, because there are no secrets for it; "
                + "add --keylog FILE"
        ]
    }
}

extension SessionsFound {
    func lacksAny(of wanted: Set<UInt64>) -> Bool { !wanted.isSubset(of: numbers) }

    /// Returns a remark for a user who selected these sessions; nil if all were found in a single run.
    func remark(on wanted: Set<UInt64>) -> String? {
        guard !wanted.isEmpty else { return nil }
        let missing = wanted.subtracting(numbers).sorted()
        guard missing.isEmpty else {
            let names = missing.map(String.init).joined(separator: ", ")
            guard let first = numbers.min(), let last = numbers.max() else {
                return "--session \(names): there are no sessions"
            }
            let there = first == last ? "the only one is \(first)" : "the first is \(first), the last \(last)"
            return "--session \(names): there is no such session; \(there)"
        }
        guard runs.count > 1 else { return nil }
        return "--session: \(runs.count) runs of xmpptap are there, and each counts its sessions from 1; all are shown "
            + "that have the number"
    }
}
