import Foundation
import PlainSQLite
import TapStore

/// Inserts the same rows by the store and by loops in C, in turns, and compares the time of the processors.
struct InsertComparison {
    private static let chunk = 20_000
    /// Statements that give a plain loop what the store sets.
    private static let storeSettings = "PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16000"

    private enum Writer {
        case store(SQLiteStore)
        case plain(OpaquePointer)
    }

    private struct Contender {
        let name: String
        let path: String
        let hasWords: Bool
        let writer: Writer
        var seconds = 0.0
    }

    private let count: Int

    init(_ count: Int) { self.count = count }

    func run() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-benchmark-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        var contenders = try [true, false].flatMap { try Self.contenders(folder.path(), hasWords: $0) }
        var sample = SampleRows(count, days: 1)
        let plainRows = [true: PlainRows(), false: PlainRows()]
        while true {
            let rows = sample.next(Self.chunk)
            guard !rows.isEmpty else { break }
            // The index has no words of subjects.
            let others = rows.map { row in
                var row = row
                (row.subject, row.body) = (row.body, nil)
                return row
            }
            for (hasWords, made) in plainRows {
                let rows = hasWords ? rows : others
                try made.with(rows) { plain, names in
                    for index in contenders.indices where contenders[index].hasWords == hasWords {
                        let began = StoreBenchmark.processorTime
                        try Self.insert(rows, plain, names, by: contenders[index].writer)
                        contenders[index].seconds += StoreBenchmark.processorTime - began
                    }
                }
            }
        }
        for index in contenders.indices {
            let began = StoreBenchmark.processorTime
            switch contenders[index].writer {
            case .store(let store):
                try store.commit()
                store.close()
            case .plain(let loop): plain_sqlite_close(loop)
            }
            contenders[index].seconds += StoreBenchmark.processorTime - began
        }
        try report(contenders)
    }

    private static func insert(
        _ rows: [AuditRow],
        _ plain: UnsafeBufferPointer<plain_row>,
        _ names: [(String, Int64)],
        by writer: Writer
    ) throws {
        switch writer {
        case .store(let store): for row in rows { try store.add(.stanza(row)) }
        case .plain(let loop):
            for (name, number) in names {
                guard plain_sqlite_name(loop, number, name) == 0 else { throw Failure("no name was inserted") }
            }
            guard plain_sqlite_insert(loop, plain.baseAddress, plain.count) == 0 else {
                throw Failure("no row was inserted")
            }
        }
    }

    private static func contenders(_ folder: String, hasWords: Bool) throws -> [Contender] {
        let suffix = hasWords ? "" : "-without-words"
        let model = "\(folder)/store\(suffix).sqlite"
        let store = try SQLiteStore.create(model)
        var all = [Contender(name: "the store", path: model, hasWords: hasWords, writer: .store(store))]
        for (name, file, settings) in [
            ("C", "plain", ""), ("C, as the store sets SQLite", "plain-set", storeSettings),
        ] {
            let path = "\(folder)/\(file)\(suffix).sqlite"
            guard let loop = plain_sqlite_create(path, model, settings) else { throw Failure("no store in C") }
            all.append(Contender(name: name, path: path, hasWords: hasWords, writer: .plain(loop)))
        }
        return all
    }

    private func report(_ contenders: [Contender]) throws {
        for hasWords in [true, false] {
            let group = contenders.filter { $0.hasWords == hasWords }
            print("\(count) rows \(hasWords ? "with" : "without") the index of words:")
            guard let own = group.first else { continue }
            for one in group {
                let bytes = try FileManager.default.attributesOfItem(atPath: one.path)[.size] as? Int ?? 0
                print(
                    String(
                        format: "  %@ %7.0f rows per CPU second, %5.1f bytes a row; the store: %.2f times as fast",
                        one.name.padding(toLength: 28, withPad: " ", startingAt: 0) as NSString,
                        Double(count) / one.seconds,
                        Double(bytes) / Double(count),
                        one.seconds / own.seconds
                    )
                )
            }
        }
    }
}
