internal import Glibc
internal import TapCapture
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// One side of a comparison.
struct DiffSide: Sendable {
    /// The name of this side in reports.
    let name: String
    /// All files of the recording.
    let files: [String]
    /// The content of a key log with TLS secrets for packets. It is parsed for each reader, because several readers run
    /// in parallel.
    let keys: [UInt8]

    init(_ files: [String], keys: [UInt8]) {
        name = files.joined(separator: " ")
        self.files = files
        self.keys = keys
    }

    /// Copies standard input to an unnamed file, because a comparison reads it several times.
    init(standardInput descriptor: Int32, keys: [UInt8]) throws(Failure) {
        let folder = Console.environment("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        var path = Array("\(folder)/xmpptap-XXXXXX".utf8CString)
        let file = path.withUnsafeMutableBufferPointer { $0.baseAddress.map { mkstemp($0) } ?? -1 }
        guard file >= 0 else { throw Self.failure("cannot store standard input") }
        path.withUnsafeBufferPointer { _ = $0.baseAddress.map(unlink) }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("cannot read standard input") }
            guard count > 0 else { break }
            var rest = buffer[..<count]
            while !rest.isEmpty {
                let written = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
                if written < 0, errno == EINTR { continue }
                guard written > 0 else { throw Self.failure("cannot store standard input") }
                rest = rest.dropFirst(written)
            }
        }
        name = "-"
        self.keys = keys
        files = ["/proc/self/fd/\(file)"]
    }

    private static func failure(_ message: String) -> Failure {
        .file("\(message): \(String(cString: strerror(errno)))")
    }
}

/// Compares two recordings. Their files are read in parallel: once for the sessions, once for digests of the items, and
/// if there are differences, once more for the items that differ.
struct DiffRun: Sendable {
    let recorded: DiffSide
    let live: DiffSide
    /// Pairs of session numbers to compare; if empty, all sessions are compared.
    let sessions: [(UInt64, UInt64)]
    let rules: NoiseRules
    /// Maximum number of differences that are reported in detail; others are only counted.
    let limit: Int

    /// Returns the report, and whether both recordings could be read completely.
    func report(failingClasses: Set<Divergence.Class>) async throws -> (DivergenceReport, isWhole: Bool) {
        async let one = Self.catalogue(recorded)
        async let other = Self.catalogue(live)
        let (catalogue, liveCatalogue) = try await (one, other)
        let pairs = try self.pairs(catalogue, liveCatalogue)
        let (bindings, senders) = (pairs.bindings, pairs.senders)
        async let digests = Self.digests(
            recorded,
            RecordedDigests(
                Set(pairs.pairs.map(\.recorded.key)),
                rules: rules,
                bindings: bindings,
                senders: senders.recorded,
                isRecorded: true
            )
        )
        async let liveDigests = Self.digests(
            live,
            RecordedDigests(
                Set(pairs.pairs.map(\.live.key)),
                rules: rules,
                bindings: bindings,
                senders: senders.live,
                isRecorded: false
            )
        )
        let (first, second) = try await (digests, liveDigests)
        let difference = RecordingDifference(
            recorded: first.digests,
            live: second.digests,
            pairs: pairs,
            rules: rules,
            limit: limit
        )
        let shown = difference.findings
        let requests = (shown.filter { $0.recorded != nil }, shown.filter { $0.recorded == nil })
        async let texts = Self.texts(recorded, (shown.map(\.recorded) + requests.0.map(\.request)).compactMap(\.self))
        async let liveTexts = Self.texts(live, (shown.map(\.live) + requests.1.map(\.request)).compactMap(\.self))
        let builder = try await DivergenceBuilder(
            recorded: texts,
            live: liveTexts,
            bindings: bindings,
            rules: rules,
            played: Set(pairs.pairs.flatMap { [$0.recorded.jid, $0.live.jid] }.compactMap(\.self)),
            written: (first.digests.writtenValues, second.digests.writtenValues),
            parser: StanzaParser()
        )
        var report = DivergenceReport(
            command: "diff",
            recorded: recorded.name,
            live: live.name,
            failingClasses: failingClasses
        )
        report.compared = difference.compared
        report.undecided = difference.undecided
        let omitted = difference.omitted
        let omittedClasses: [Divergence.Class] =
            (omitted.slower > 0 ? [.timing] : [])
            + (omitted.all > omitted.slower ? [.behaviour, .state, .redacted] : [])
        report.omit(omitted.all, mayFail: omittedClasses.contains { failingClasses.contains($0) })
        if difference.compared == 0 {
            Console.printDiagnostic("nothing was compared: no stanzas in \(recorded.name) and \(live.name)")
        }
        let found = Dictionary(grouping: shown.enumerated()) {
            Sides(recorded: $0.element.recorded?.session, live: $0.element.live?.session)
        }
        for (entry, counterpart) in pairs.pairs {
            let keys = [
                Sides(recorded: entry.key, live: counterpart.key), Sides(recorded: entry.key, live: nil),
                Sides(recorded: nil, live: counterpart.key),
            ]
            // Keep the order in which they were found: the clocks of the two recordings are not related.
            let findings = keys.flatMap { found[$0] ?? [] }.sorted { $0.offset < $1.offset }.map(\.element)
            report.add(
                DivergenceReport.Case(
                    name: "\(Self.name(entry)) and \(Self.name(counterpart))",
                    divergences: findings.map(builder.divergence)
                )
            )
        }
        for entry in pairs.missing {
            report.add(Self.alone(entry, "session \(entry.key.number) is not in \(live.name)"))
        }
        for entry in pairs.unexpected {
            report.add(Self.alone(entry, "session \(entry.key.number) is not in \(recorded.name)"))
        }
        return (report, first.isWhole && second.isWhole)
    }

    /// One direction of a session.
    private struct DiffStream: Hashable {
        let session: SessionKey
        let direction: Direction
    }

    private struct Sides: Hashable {
        let recorded: SessionKey?
        let live: SessionKey?
    }

    private static func name(_ entry: SessionCatalogue.Entry) -> String {
        "session \(entry.key.number)\(entry.jid.map { " \($0)" } ?? "")"
    }

    private static func alone(_ entry: SessionCatalogue.Entry, _ message: String) -> DivergenceReport.Case {
        DivergenceReport.Case(name: name(entry), divergences: [Divergence(.behaviour, .session, message: message)])
    }

    private func pairs(_ catalogue: SessionCatalogue, _ liveCatalogue: SessionCatalogue) throws(Failure) -> SessionPairs
    {
        guard !sessions.isEmpty else { return SessionPairs(recorded: catalogue, live: liveCatalogue) }
        for (one, other) in sessions {
            for (number, entries, file) in [(one, catalogue, recorded), (other, liveCatalogue, live)]
            where !entries.entries.contains(where: { $0.key.number == number }) {
                throw .usage("--session: \(file.name) has no session \(number)")
            }
        }
        return SessionPairs(recorded: catalogue, live: liveCatalogue, numbers: sessions)
    }

    // MARK: Reading recordings

    /// Calls `body` with each header and record.
    ///
    /// - Returns: Whether every line could be read, apart from lines cut by an interrupted write.
    @discardableResult
    private static func read(
        _ side: DiffSide,
        reportsDamage: Bool = false,
        passingOver isPassedOver: ((RawSpan) -> Bool)?,
        _ body: (RecordReader.Entry) -> Void
    ) throws(Failure) -> Bool {
        var damage = DamageReport()
        defer { damage.end() }
        do throws(ReaderFault) {
            let reader = try RecordReader(side.files, keys: KeyLog(side.keys), zone: .system)
            reader.skipsLine = isPassedOver
            while let entry = try reader.next() {
                switch entry {
                case .damage(let line): damage.record(line, isReported: reportsDamage)
                case .gap(let gap): if reportsDamage { Console.printDiagnostic("\(gap)") }
                case .header, .record: body(entry)
                }
            }
        } catch {
            throw Failure(error)
        }
        return damage.isWhole
    }

    private static func catalogue(_ side: DiffSide) async throws -> SessionCatalogue {
        var catalogue = SessionCatalogue()
        // Sessions of the current run with a known JID: their stanzas add no information and are skipped.
        var known: Set<UInt64> = []
        try read(
            side,
            passingOver: { line in
                guard line.place(after: "\"kind\":\"stanza\"", within: 256) != nil,
                    let place = line.place(after: "\"session\":", within: 256), let number = line.number(at: place)
                else { return false }
                return known.contains(number)
            }
        ) { entry in
            switch entry {
            case .header(let header):
                known = []
                catalogue.add(header)
                if let filter = header.filter {
                    Console.printDiagnostic(
                        "\(side.name) was recorded with the filter \(filter); records that it left out are not compared"
                    )
                }
            case .record(let line):
                catalogue.add(line)
                if line.record.jid != nil { known.insert(line.record.session) }
            case .damage, .gap: break
            }
        }
        return catalogue
    }

    private static func digests(_ side: DiffSide, _ digests: RecordedDigests) async throws -> (
        digests: RecordedDigests, isWhole: Bool
    ) {
        let isWhole = try read(side, reportsDamage: true, passingOver: nil) { entry in
            switch entry {
            case .header(let header): digests.add(header)
            case .record(let line): digests.add(line)
            case .damage, .gap: break
            }
        }
        digests.finish()
        return (digests, isWhole)
    }

    private static func texts(_ side: DiffSide, _ places: [RecordingDifference.Place]) async throws
        -> DivergenceBuilder.Texts
    {
        guard !places.isEmpty else { return [:] }
        var wanted: [SessionKey: Set<UInt64>] = [:]
        for place in places { wanted[place.session, default: []].insert(place.sequence) }
        let sequences = Set(places.map(\.sequence))
        var texts: DivergenceBuilder.Texts = [:]
        var roots: [DiffStream: [UInt8]] = [:]
        var run = ""
        try read(
            side,
            passingOver: { line in
                guard let sequence = line.sequence, !sequences.contains(sequence) else { return false }
                return line.place(after: "\"kind\":\"stream-open\"", within: 256) == nil
            }
        ) { entry in
            switch entry {
            case .header(let header): run = header.run
            case .record(let line):
                let record = line.record
                let key = SessionKey(run: run, number: record.session)
                guard wanted[key] != nil, let direction = record.direction else { return }
                if record.kind == .streamOpen {
                    roots[DiffStream(session: key, direction: direction)] = line.declarations
                }
                guard wanted[key]?.contains(record.sequence) == true, let xml = record.delivered else { return }
                let root = roots[DiffStream(session: key, direction: direction)] ?? []
                texts[key, default: [:]][record.sequence] = DivergenceBuilder.Text(
                    bytes: Array(line.content[xml.range]),
                    root: root.isEmpty ? StanzaForm.clientDeclarations : root
                )
            case .damage, .gap: break
            }
        }
        return texts
    }
}

extension RawSpan {
    /// Returns the offset after `text`, if it occurs in the first `count` bytes.
    fileprivate func place(after text: StaticString, within count: Int) -> Int? {
        withUnsafeBytes { bytes in
            let size = text.utf8CodeUnitCount
            let end = Swift.min(count, bytes.count) - size
            guard end >= 0 else { return nil }
            for start in 0...end where bytes[start] == text.utf8Start[0] {
                if (1..<size).allSatisfy({ bytes[start + $0] == text.utf8Start[$0] }) { return start + size }
            }
            return nil
        }
    }

    /// Parses a number that is followed by a comma; nil if there is none at this offset.
    fileprivate func number(at start: Int) -> UInt64? {
        withUnsafeBytes { bytes in
            var value: UInt64 = 0
            for byte in bytes[start...] {
                guard byte >= 0x30, byte <= 0x39 else { return byte == 0x2C ? value : nil }
                value = value &* 10 &+ UInt64(byte - 0x30)
            }
            return nil
        }
    }

    /// The sequence number at the start of a record written by this program; nil for other lines.
    fileprivate var sequence: UInt64? {
        let beginning: StaticString = "{\"sequence\":"
        return place(after: beginning, within: beginning.utf8CodeUnitCount).flatMap { number(at: $0) }
    }
}
