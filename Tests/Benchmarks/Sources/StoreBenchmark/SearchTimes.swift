import Glibc
import TapRecord
import TapStore

/// The time and the memory of searches in a store, each run twice: the first reads the file into memory.
struct SearchTimes {
    private typealias Search = (SearchQuery, (ShownMessage) -> Bool) throws -> Void

    private let search: Search

    /// Searches a file.
    init(_ path: String) {
        search = { query, show in
            try Self.search(SQLiteStore.open(path), query, show)
        }
    }

    private static func search(
        _ store: any AuditStore,
        _ query: SearchQuery,
        _ show: (ShownMessage) -> Bool
    ) throws {
        var search = StoreSearch(store, query)
        try search.show(show)
    }

    /// Searches the ClickHouse server on a port of 127.0.0.1.
    init(port: Int) throws {
        let place = try DeliveryTimes.place(port: port)
        search = { query, show in
            try Self.search(place.open(), query, show)
        }
    }

    /// Makes a store of sample rows.
    static func makeStore(_ path: String, _ count: Int, days: Int) throws {
        let store = try SQLiteStore.create(path)
        var sample = SampleRows(count, days: days)
        let began = StoreBenchmark.processorTime
        while true {
            let rows = sample.next(20_000)
            guard !rows.isEmpty else { break }
            for row in rows { try store.add(.stanza(row)) }
        }
        try store.commit()
        store.close()
        print("\(count) rows in \(Int(StoreBenchmark.processorTime - began)) s of the processors, with making them")
    }

    /// Makes a store with a limit of its size, in transactions as a proxy makes them.
    static func makeStore(_ path: String, _ count: Int, limit: Int64) throws {
        let store = try SQLiteStore.create(path)
        var sample = SampleRows(count, days: 1)
        var greatest: Int64 = 0
        func measure() {
            let sizes = [path, "\(path)-wal"].map { path in
                var status = stat()
                return stat(path, &status) == 0 ? Int64(status.st_size) : 0
            }
            greatest = max(greatest, sizes[0] + sizes[1])
        }
        while let rows = Optional(sample.next(8000)), let last = rows.last {
            for row in rows { try store.add(.stanza(row)) }
            try store.commit()
            measure()
            while try store.retain(StoreLimit(bytes: limit), at: last.seen) { measure() }
            measure()
        }
        let stanzas = try store.overview().stanzas
        print("limit \(limit / 1_000_000) MB: at most \(greatest / 1_000_000) MB, \(stanzas) of \(count) rows are left")
    }

    func run() throws {
        let words = SampleRows(0, days: 1).words
        for (name, text) in [("common", "\(words[0]) \(words[1])"), ("middling", "\(words[50]) \(words[60])")] {
            var query = SearchQuery(words: text)
            query.account = SampleRows.account
            try measure("two \(name) words, one account", query)
        }
        var query = SearchQuery(words: "")
        query.account = SampleRows.account
        try measure("one account", query)
        try measure("two middling words, all accounts", SearchQuery(words: "\(words[50]) \(words[60])"))
        try measure("all accounts, the first 1000", SearchQuery(words: ""), limit: 1000)
        try measure("all accounts", SearchQuery(words: ""))
    }

    /// Searches as `xmpptap search` does, without the output.
    private func measure(_ name: String, _ query: SearchQuery, limit: Int = .max) throws {
        for isWarm in [false, true] {
            let (began, processor) = (StoreBenchmark.now, StoreBenchmark.processorTime)
            var count = 0
            var first: Double?
            try search(query) { _ in
                first = first ?? StoreBenchmark.now
                count += 1
                return count < limit
            }
            guard isWarm else { continue }
            let (end, used) = (StoreBenchmark.now, StoreBenchmark.processorTime - processor)
            func milliseconds(_ seconds: Double) -> String { String(Int((seconds * 1000).rounded())) }
            print(
                "\(name): \(count) messages in \(milliseconds(end - began)) ms (\(milliseconds(used)) ms of the processors),",
                "the first after \(milliseconds((first ?? end) - began)) ms; at most \(Self.peak()) MiB so far"
            )
        }
    }

    /// Returns the peak memory of this process, in MiB.
    private static func peak() -> Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_maxrss / 1024
    }
}
