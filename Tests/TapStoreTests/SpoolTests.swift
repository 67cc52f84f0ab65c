import Foundation
import Synchronization
import TapCapture
import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// Rows on their way to a server. The server is a part of these tests, so that it can fail and lie as a real one does.
struct SpoolTests {
    /// A server that keeps the rows of its insertions.
    private final class Server: Sendable {
        struct Insertion {
            var table: String
            var token: String
            var settings: [String: String]
            var body: [UInt8]
            var rows: [AuditRow]
        }

        /// How an insertion is answered; nil for a success.
        typealias Script = @Sendable (_ insertion: Insertion, _ number: Int) -> ClickHouseAnswer?

        let port: Int
        private let script: Script
        private let version: String
        /// The settings that servers have since version 22.
        private static let settings = "async_insert\ninsert_deduplication_token\n"
        private let insertions = Mutex<[Insertion]>([])
        /// The rows of all insertions that were stored.
        private let stored = Mutex<[Insertion]>([])
        let isAway = Atomic(false)

        init(port: Int = 8123, version: String = "18.16.1", _ script: @escaping Script = { _, _ in nil }) {
            (self.port, self.version, self.script) = (port, version, script)
        }

        var attempts: [Insertion] { insertions.withLock { $0 } }
        var rows: [AuditRow] { stored.withLock { $0.flatMap(\.rows) } }
        var bodies: Set<String> { Set(rows.compactMap(\.body)) }
        var gaps: [StoreGap] {
            stored.withLock { all in
                all.filter { $0.table == "gap" }.flatMap { insertion in
                    var reader = RowBinaryReader(Compression.gzip.contents(of: insertion.body, limit: 1 << 20))
                    var gaps: [StoreGap] = []
                    while !reader.isAtEnd, let gap = ClickHouseSchema.gap(&reader) { gaps.append(gap) }
                    return gaps
                }
            }
        }

        func answer(_ request: ClickHouseRequest) throws(ClickHouseUnreachable) -> ClickHouseAnswer {
            guard !isAway.load(ordering: .relaxed) else { throw ClickHouseUnreachable(text: "connection refused") }
            let query = URLComponents(string: request.target)?.queryItems ?? []
            guard let statement = query.first(where: { $0.name == "query" })?.value else {
                let text = String(decoding: request.body, as: UTF8.self)
                let answer =
                    text.contains("version()")
                    ? version : text.contains("system.settings") && version.hasPrefix("2") ? Self.settings : ""
                return ClickHouseAnswer(status: 200, exception: nil, body: Array(answer.utf8))
            }
            let table = statement.split(separator: " ").dropFirst(2).first.map(String.init) ?? ""
            let bytes = Compression.gzip.contents(of: request.body, limit: 1 << 28)
            var rows: [AuditRow] = []
            if table == "stanza" {
                var reader = RowBinaryReader(bytes)
                var texts = ClickHouseSchema.RowTexts()
                while !reader.isAtEnd, let row = ClickHouseSchema.row(&reader, &texts) { rows.append(row) }
            }
            let token = query.first { $0.name == "insert_deduplication_token" }?.value ?? ""
            let settings = Dictionary(query.map { ($0.name, $0.value ?? "") }) { first, _ in first }
            let insertion = Insertion(table: table, token: token, settings: settings, body: request.body, rows: rows)
            let number = insertions.withLock { all in
                all.append(insertion)
                return all.count
            }
            if let answer = script(insertion, number) { return answer }
            stored.withLock { $0.append(insertion) }
            return ClickHouseAnswer(status: 200, exception: nil, body: [])
        }
    }

    private static func refusal(_ code: Int, _ text: String = "no") -> ClickHouseAnswer {
        let body = "Code: \(code), e.displayText() = DB::Exception: \(text), e.what() = DB::Exception\n"
        return ClickHouseAnswer(status: 500, exception: nil, body: Array(body.utf8))
    }

    /// Returns the store of some servers, each a shard.
    private static func place(_ servers: [Server], _ folder: String, limit: Int64 = 1_000_000_000) throws -> StorePlace
    {
        let hosts = servers.map { "localhost:\($0.port)" }.joined(separator: "+")
        var spool = Spool.Configuration(folder: folder)
        spool.limit = limit
        return .clickHouse(try ClickHouseAddress("clickhouse://\(hosts)/audit"), password: nil, spool: spool) { host in
            { request throws(ClickHouseUnreachable) in
                guard let server = servers.first(where: { $0.port == host.port }) else {
                    throw ClickHouseUnreachable(text: "no such host")
                }
                return try server.answer(request)
            }
        }
    }

    /// Collects events.
    private final class Events: Sendable {
        private let all = Mutex<[Spool.Event]>([])

        func add(_ event: Spool.Event) { all.withLock { $0.append(event) } }
        var texts: [String] { all.withLock { $0.map { "\($0)" } } }
    }

    private static func writing(
        _ run: String = "run",
        whenFull: Spool.WhenFull = .drop,
        events: Events = Events()
    ) -> StorePlace.Writing {
        var writing = StorePlace.Writing(run: run)
        writing.whenFull = whenFull
        writing.onEvent = { events.add($0) }
        return writing
    }

    private static func row(_ number: Int, account: String = "juliet@example.org") -> AuditRow {
        TestRow.message("body \(number)", sequence: UInt64(number), account: account, after: Int64(number))
    }

    private static func files(_ folder: String) -> [String] {
        (FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []).filter { $0.contains(".") }
            .sorted()
    }

    @Test("Rows are sent to the shard of their account, and nothing is left of the spool")
    func sendsToShards() throws {
        let folder = try TemporaryFolder()
        let servers = [Server(port: 1), Server(port: 2), Server(port: 3)]
        let writer = try Self.place(servers, folder.path(of: "spool")).openWriter(Self.writing(whenFull: .wait))
        for number in 1...300 {
            try writer.add(.stanza(Self.row(number, account: "user\(number % 30)@example.org")))
            if number.isMultiple(of: 50) { try writer.commit() }
        }
        try writer.finish()
        #expect(servers.reduce(0) { $0 + $1.rows.count } == 300)
        for (index, server) in servers.enumerated() {
            #expect(!server.rows.isEmpty)
            #expect(server.rows.allSatisfy { ClickHouseCluster.shard($0.account, of: 3) == index })
            #expect(server.rows.map(\.sequence) == server.rows.map(\.sequence).sorted())
        }
        #expect(Self.files(folder.path(of: "spool")).isEmpty)
        // The numbers are part of the format: other versions must choose the same shards.
        #expect(["juliet@example.org", "", "é"].map { ClickHouseCluster.shard($0, of: 1000) } == [292, 37, 617])
    }

    @Test("What an ended run has left is sent by the next one, with the same batch and token")
    func sendsEarlierRuns() throws {
        let folder = try TemporaryFolder()
        let away = Server()
        let place = try Self.place([away], folder.path(of: "spool"))
        away.isAway.store(true, ordering: .relaxed)
        let events = Events()
        let first = try place.openWriter(Self.writing("first", events: events))
        for number in 1...20 { try first.add(.stanza(Self.row(number))) }
        try first.commit()
        first.close()
        #expect(events.texts.contains { $0.hasPrefix("waiting") })
        #expect(events.texts.contains { $0.hasPrefix("left(stanzas: 20") }, "\(events.texts)")
        #expect(Self.files(folder.path(of: "spool")) == ["first/0-00000001.rows"])

        // The first answer is lost after the rows were stored.
        let server = Server(version: "26.9.2") { _, number in number == 1 ? Self.refusal(209) : nil }
        let next = try Self.place([server], folder.path(of: "spool")).openWriter(Self.writing("next", whenFull: .wait))
        try next.add(.stanza(Self.row(21)))
        try next.finish()
        let sent = server.attempts
        #expect(sent.map(\.rows.count) == [20, 20, 1])
        #expect(sent[0].body == sent[1].body && sent[0].token == sent[1].token)
        #expect(sent[0].token.hasSuffix("/0-00000001/1") && sent[2].token.hasSuffix("/0-00000001/1"))
        #expect(sent[0].token != sent[2].token)
        // Servers that know the setting would confirm rows before they are stored.
        #expect(sent.allSatisfy { $0.settings["async_insert"] == "0" })
        #expect(Self.files(folder.path(of: "spool")).isEmpty)
    }

    @Test("A running program's folder is not sent by another one")
    func leavesRunsInUse() throws {
        let folder = try TemporaryFolder()
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let place = try Self.place([server], folder.path(of: "spool"))
        let writer = try place.openWriter(Self.writing())
        try writer.add(.stanza(Self.row(1)))
        try writer.commit()
        let other = Server()
        let second = try Self.place([other], folder.path(of: "spool"))
        let (figures, others, inUse) = try second.send(folder.path(of: "spool")) { _ in }
        #expect(figures.sent == 0 && others.isEmpty && other.attempts.isEmpty)
        #expect(inUse == [folder.path(of: "spool/run")])
        writer.close()
    }

    @Test("The rows of another number of shards are not sent, but named")
    func namesOtherShards() throws {
        let folder = try TemporaryFolder()
        let server = Server(port: 1)
        server.isAway.store(true, ordering: .relaxed)
        let writer = try Self.place([server], folder.path(of: "spool")).openWriter(Self.writing())
        try writer.add(.stanza(Self.row(1)))
        try writer.commit()
        writer.close()
        let two = try Self.place([Server(port: 1), Server(port: 2)], folder.path(of: "spool"))
        let (figures, others, _) = try two.send(folder.path(of: "spool")) { _ in }
        #expect(figures.sent == 0 && others == [folder.path(of: "spool/run")])
        // Another host may be another store: its rows are not sent without being asked for.
        let events = Events()
        let stranger = Server(port: 7)
        let next = try Self.place([stranger], folder.path(of: "spool")).openWriter(
            Self.writing("next", events: events)
        )
        next.close()
        #expect(stranger.attempts.isEmpty && events.texts.contains { $0.hasPrefix("skipped") })
        let one = Server(port: 1)
        let sent = try Self.place([one], folder.path(of: "spool")).send(folder.path(of: "spool/run")) { _ in }
        #expect(sent.figures.sent == 1 && one.bodies == ["body 1"])
    }

    @Test("A full spool drops its oldest rows, and the store has a row that counts them")
    func dropsOldest() throws {
        let folder = try TemporaryFolder()
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let events = Events()
        let limit: Int64 = 40_000
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool, limit: limit).openWriter(Self.writing(events: events))
        for number in 1...2000 {
            try writer.add(.stanza(Self.row(number)))
            if number.isMultiple(of: 20) { try writer.commit() }
        }
        let figures = try #require(writer.spool).figures
        #expect(figures.bytes <= limit && figures.dropped > 0 && figures.dropped < 2000)
        let sizes = try Self.files(spool).map { name in
            try FileManager.default.attributesOfItem(atPath: "\(spool)/\(name)")[.size] as? Int64 ?? 0
        }
        #expect(sizes.reduce(0, +) == figures.bytes)
        writer.close()
        server.isAway.store(false, ordering: .relaxed)
        _ = try Self.place([server], spool).send(spool) { _ in }
        let kept = server.rows.map(\.sequence).sorted()
        #expect(kept.count + Int(figures.dropped) == 2000 && kept.last == 2000)
        let gaps = server.gaps
        #expect(gaps.reduce(0) { $0 + $1.stanzas } == figures.dropped)
        #expect(gaps.allSatisfy { $0.run == "run" && $0.reason == "the spool was full" })
        // Each missing number is in a gap.
        let missing = Set(UInt64(1)...2000).subtracting(kept)
        #expect(missing.allSatisfy { number in gaps.contains { ($0.first...$0.last).contains(number) } })
        #expect(events.texts.contains { $0.hasPrefix("dropped") })
    }

    @Test("If rows must not be dropped, a full spool accepts none, and those that it has are kept")
    func refusesRows() throws {
        let folder = try TemporaryFolder()
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool, limit: 20_000).openWriter(Self.writing(whenFull: .refuse))
        var kept = 0
        do {
            for number in 1...2000 {
                try writer.add(.stanza(Self.row(number)))
                if number.isMultiple(of: 20) {
                    try writer.commit()
                    kept = number
                }
            }
            Issue.record("the spool is never full")
        } catch {
            #expect(error.code == .spoolFull && error.description.contains("--store-spool-size"))
        }
        writer.abandon()
        writer.close()
        server.isAway.store(false, ordering: .relaxed)
        _ = try Self.place([server], spool).send(spool) { _ in }
        #expect(kept > 0 && server.rows.count == kept && server.gaps.isEmpty)
    }

    @Test("A row that a server refuses is put aside with the reason, and all others are stored once")
    func putsRowsAside() throws {
        let folder = try TemporaryFolder()
        let poison: Set = ["body 7", "body 40", "body 41"]
        let server = Server { insertion, _ in
            insertion.rows.contains { poison.contains($0.body ?? "") } ? Self.refusal(395, "poison") : nil
        }
        let events = Events()
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool).openWriter(Self.writing(whenFull: .wait, events: events))
        for number in 1...100 { try writer.add(.stanza(Self.row(number))) }
        try writer.finish()
        #expect(server.rows.count == 97 && server.bodies.isDisjoint(with: poison))
        let figures = try #require(writer.spool).figures
        #expect(figures.rejected == 3 && figures.sent == 97)
        let files = Self.files(spool)
        #expect(files == ["run/rejected-0-00000001.jsonl"])
        let lines = folder.read("spool/\(files[0])").split(separator: "\n")
        #expect(lines.count == 3 && lines[0].contains(#""body":"body 7""#) && lines[0].contains("poison"))
        #expect(events.texts.contains { $0.hasPrefix("rejected(rows: 3") }, "\(events.texts)")
    }

    @Test(
        "A server that refuses all rows is at fault itself: nothing is put aside, and all are sent when it accepts them"
    )
    func keepsAllRefused() throws {
        let folder = try TemporaryFolder()
        // Each attempt needs eleven to fifteen insertions until ten rows were refused.
        let server = Server { _, number in number < 30 ? Self.refusal(27) : nil }
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool).openWriter(Self.writing(whenFull: .wait))
        for number in 1...100 { try writer.add(.stanza(Self.row(number))) }
        try writer.finish()
        #expect(server.rows.count >= 100 && server.bodies.count == 100)
        #expect(Self.files(spool).isEmpty)
        #expect(try #require(writer.spool).figures.rejected == 0)
    }

    @Test(
        "After an answer that is not ClickHouse's success, the rows are sent again",
        arguments: [
            ClickHouseAnswer(status: 200, exception: nil, body: Array("<html>Sign in</html>".utf8)),
            ClickHouseAnswer(status: 200, exception: "241", body: []),
            ClickHouseAnswer(status: 200, exception: "252", body: Array("Code: 252. Too many parts".utf8)),
            ClickHouseAnswer(status: 502, exception: nil, body: Array("Bad Gateway".utf8)), refusal(241), refusal(243),
            refusal(16), refusal(164), refusal(236), refusal(1001),
            refusal(252, "Too many parts (3000) in all partitions in total"),
        ]
    )
    func triesAgain(_ lie: ClickHouseAnswer) throws {
        let folder = try TemporaryFolder()
        let server = Server { _, number in number == 1 ? lie : nil }
        let events = Events()
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool).openWriter(Self.writing(whenFull: .wait, events: events))
        for number in 1...10 { try writer.add(.stanza(Self.row(number))) }
        try writer.finish()
        #expect(server.attempts.map(\.rows.count) == [10, 10] && server.rows.count == 10)
        #expect(events.texts.map { $0.prefix(7) } == ["waiting", "sending"], "\(events.texts)")
        #expect(try #require(writer.spool).figures.retries == 1 && Self.files(spool).isEmpty)
    }

    @Test("A few rows that are refused are put aside after some attempts only, and rows that come later are stored")
    func putsFewRowsAside() throws {
        let folder = try TemporaryFolder()
        let server = Server { insertion, _ in
            insertion.rows.contains { $0.body == "body 1" } ? Self.refusal(395, "poison") : nil
        }
        let spool = folder.path(of: "spool")
        let events = Events()
        let writer = try Self.place([server], spool).openWriter(Self.writing(whenFull: .refuse, events: events))
        try writer.add(.stanza(Self.row(1)))
        try writer.commit()
        while try #require(writer.spool).figures.retries == 0 { usleep(10_000) }
        #expect(try #require(writer.spool).figures.rejected == 0)
        try writer.add(.stanza(Self.row(2)))
        try writer.commit()
        writer.close()
        server.isAway.store(true, ordering: .relaxed)
        #expect(Self.files(spool).count { $0.hasSuffix(".rows") } > 0)
        #expect(events.texts.contains { $0.hasPrefix("waiting") })
    }

    @Test("The folder of another version is reported, and kept")
    func reportsOtherVersions() throws {
        let folder = try TemporaryFolder()
        let (server, events, spool) = (Server(port: 1), Events(), folder.path(of: "spool"))
        try FileManager.default.createDirectory(atPath: "\(spool)/old", withIntermediateDirectories: true)
        let about = "xmpptap-spool 1\nstore clickhouse://localhost:1/audit\nshards 1\nrun old\nword a\n"
        try about.write(toFile: "\(spool)/old/about", atomically: false, encoding: .utf8)
        let place = try Self.place([server], spool)
        let writer = try place.openWriter(Self.writing(events: events))
        try writer.finish()
        #expect(events.texts.contains { $0.hasPrefix("skipped") && $0.contains("\(spool)/old") })
        #expect(try place.send(spool) { _ in }.others == ["\(spool)/old"])
        #expect(FileManager.default.fileExists(atPath: "\(spool)/old/about"))
    }

    @Test("If a replica cannot store rows, another one does")
    func triesReplicas() throws {
        let folder = try TemporaryFolder()
        let (full, other) = (Server(port: 1) { _, _ in Self.refusal(243) }, Server(port: 2))
        let place = StorePlace.clickHouse(
            try ClickHouseAddress("clickhouse://localhost:1,localhost:2/audit"),
            password: nil,
            spool: Spool.Configuration(folder: folder.path(of: "spool"))
        ) { host in
            { request throws(ClickHouseUnreachable) in try (host.port == 1 ? full : other).answer(request) }
        }
        let writer = try place.openWriter(Self.writing(whenFull: .wait))
        for number in 1...10 { try writer.add(.stanza(Self.row(number))) }
        try writer.finish()
        #expect(other.rows.count == 10 && full.rows.isEmpty && full.attempts.count == 1)
        #expect(try #require(writer.spool).figures.retries == 0)
    }

    @Test("A spool that shards in use fill completely accepts no more rows, and does not hang")
    func isFullOfSegmentsInUse() throws {
        let folder = try TemporaryFolder()
        let servers = (1...8).map { Server(port: $0) }
        for server in servers { server.isAway.store(true, ordering: .relaxed) }
        let spool = folder.path(of: "spool")
        let writer = try Self.place(servers, spool, limit: 16_000).openWriter(Self.writing())
        var isFull = false
        for number in 1...4000 where !isFull {
            try writer.add(.stanza(Self.row(number, account: "user\(number)@example.org")))
            guard number.isMultiple(of: 20) else { continue }
            do { try writer.commit() } catch { isFull = true }
        }
        let figures = try #require(writer.spool).figures
        #expect(figures.bytes <= 16_000 && (isFull || figures.dropped > 0))
        writer.abandon()
        writer.close()
    }

    @Test("A block that is larger than the whole spool is refused, and drops nothing")
    func refusesLargeBlocks() throws {
        let folder = try TemporaryFolder()
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool, limit: 20_000).openWriter(Self.writing())
        try writer.add(.stanza(Self.row(1)))
        try writer.commit()
        var generator = SeededGenerator(seed: 1)
        let noise = String(
            (0..<60_000).map { _ in Character(Unicode.Scalar(UInt8.random(in: 0x30...0x7A, using: &generator))) }
        )
        try writer.add(.stanza(TestRow.message(noise, sequence: 2)))
        let fault = #expect(throws: StoreFault.self) { try writer.commit() }
        let figures = try #require(writer.spool).figures
        #expect(fault?.code == .spoolFull && figures.dropped == 0)
        writer.abandon()
        writer.close()
        #expect(Self.files(spool).count == 1)
    }

    @Test("A batch of too many days is halved until the server accepts its parts")
    func halvesManyDays() throws {
        let folder = try TemporaryFolder()
        let server = Server(version: "26.9.2") { insertion, _ in
            let days = Set(insertion.rows.map { $0.seen.nanoseconds / 86_400_000_000_000 })
            return days.count > 100 ? Self.refusal(252, "Too many partitions for single INSERT block") : nil
        }
        let writer = try Self.place([server], folder.path(of: "spool")).openWriter(Self.writing(whenFull: .wait))
        for number in 1...400 {
            // A clock that jumps: each row is of another day.
            var row = Self.row(number)
            row.seen = Timestamp(nanoseconds: Int64(number) * 86_400_000_000_000)
            try writer.add(.stanza(row))
        }
        try writer.finish()
        #expect(server.rows.count == 400 && server.bodies.count == 400)
        #expect(Set(server.attempts.map(\.token)).count == server.attempts.count)
    }

    @Test("Of a damaged file, what is whole is sent, the rest is kept under another name, and a gap is recorded")
    func sendsWhatIsWhole() throws {
        let folder = try TemporaryFolder()
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let spool = folder.path(of: "spool")
        let writer = try Self.place([server], spool).openWriter(Self.writing())
        for number in 1...60 {
            try writer.add(.stanza(Self.row(number)))
            if number.isMultiple(of: 20) { try writer.commit() }
        }
        writer.close()
        let path = "\(spool)/run/0-00000001.rows"
        var bytes = try Array(Data(contentsOf: URL(filePath: path)))
        let blocks = SpoolBlock.blocks(in: bytes, from: SpoolSegment.header.count).blocks
        #expect(blocks.map(\.facts.rows) == [20, 20, 20])
        bytes[blocks[1].payload.lowerBound + 40] ^= 1
        // The last block is torn, as by a power cut.
        try Data(bytes.dropLast(10)).write(to: URL(filePath: path))
        server.isAway.store(false, ordering: .relaxed)
        let events = Events()
        let next = try Self.place([server], spool).openWriter(Self.writing("next", whenFull: .wait, events: events))
        try next.finish()
        #expect(server.bodies == Set((1...20).map { "body \($0)" }))
        #expect(Self.files(spool) == ["run/0-00000001.rows.damaged"])
        #expect(events.texts.contains { $0.hasPrefix("damaged") }, "\(events.texts)")
        let gap = try #require(server.gaps.first)
        #expect(server.gaps.count == 1 && gap.reason == "a file of the spool was damaged")
        #expect(gap.run == "run" && gap.first == 21 && gap.last == 40 && gap.stanzas == 20)
    }

    @Test("Each byte of a segment may be damaged: whole blocks are found, and no other rows")
    func readsDamagedBytes() throws {
        let row = { (number: Int) -> [UInt8] in
            var writer = RowBinaryWriter()
            ClickHouseSchema.append(Self.row(number), to: &writer)
            let facts = SpoolBlock.Facts(
                table: .stanza,
                rows: 1,
                first: UInt64(number),
                last: UInt64(number),
                time: Timestamp(nanoseconds: 1)
            )
            return SpoolBlock.encode(facts, writer.bytes)
        }
        let whole = (1...3).flatMap(row)
        #expect(SpoolBlock.blocks(in: whole, from: 0).blocks.count == 3)
        for place in whole.indices {
            var bytes = whole
            bytes[place] ^= 0x20
            let (blocks, isDamaged, _) = SpoolBlock.blocks(in: bytes, from: 0)
            #expect(blocks.count == 2 && isDamaged, "byte \(place)")
            #expect(SpoolBlock.blocks(in: bytes + [0, 0, 0], from: 0).blocks.count == 2)
            let beginning = SpoolBlock.blocks(in: Array(whole.prefix(place)), from: 0)
            #expect(beginning.blocks.count == place * 3 / whole.count && !beginning.isDamaged)
        }
    }

    @Test("A server with a refused login, without tables or with those of another version is an error at the start")
    func failsAtStart() throws {
        let folder = try TemporaryFolder()
        for (code, part) in [(193, "login"), (60, "store init"), (47, "another version")] {
            let transport: ClickHouseTransport = { request throws(ClickHouseUnreachable) in
                let isVersion = String(decoding: request.body, as: UTF8.self).contains("version()")
                return isVersion
                    ? ClickHouseAnswer(status: 200, exception: nil, body: Array("18.16.1".utf8)) : Self.refusal(code)
            }
            let spool = folder.path(of: "spool")
            let place = StorePlace.clickHouse(
                try ClickHouseAddress("clickhouse://localhost/audit"),
                password: nil,
                spool: Spool.Configuration(folder: spool)
            ) { _ in transport }
            let fault = #expect(throws: StoreFault.self) { try place.openWriter(Self.writing()) }
            #expect(fault?.description.contains(part) == true, "\(String(describing: fault))")
            #expect(!FileManager.default.fileExists(atPath: spool))
        }
    }

    @Test("A shard that accepts connections and does not answer delays the start by seconds, and its rows wait")
    func waitsForSilentShard() throws {
        let folder = try TemporaryFolder()
        let server = Server(port: 1)
        let isSilent = Atomic(true)
        var spool = Spool.Configuration(folder: folder.path(of: "spool"))
        spool.interval = .milliseconds(1)
        let place = StorePlace.clickHouse(
            try ClickHouseAddress("clickhouse://localhost:1+localhost:2/audit"),
            password: nil,
            spool: spool
        ) { host in
            { request throws(ClickHouseUnreachable) in
                guard host.port == 2 else { return try server.answer(request) }
                while isSilent.load(ordering: .relaxed) { usleep(10_000) }
                throw ClickHouseUnreachable(text: "timed out")
            }
        }
        let events = Events()
        let writer = try place.openWriter(Self.writing(events: events))
        #expect(events.texts.contains { $0.contains("localhost:2: no answer yet") }, "\(events.texts)")
        for number in 1...60 { try writer.add(.stanza(Self.row(number, account: "user\(number)@example.org"))) }
        try writer.commit()
        let expected = (1...60).count { ClickHouseCluster.shard("user\($0)@example.org", of: 2) == 0 }
        while server.rows.count < expected { usleep(10_000) }
        #expect(expected > 0 && expected < 60 && server.rows.count == expected)
        isSilent.store(false, ordering: .relaxed)
        writer.close()
        #expect(events.texts.contains { $0.hasPrefix("left(stanzas: \(60 - expected)") }, "\(events.texts)")
    }

    @Test(
        "While the disk of the spool is full, rows wait in memory, and none is lost",
        .enabled(if: geteuid() == 0, "needs root for a small file system")
    )
    func survivesFullDisk() throws {
        guard let disk = try SmallDisk(kilobytes: 4000) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let server = Server()
        server.isAway.store(true, ordering: .relaxed)
        let writer = try Self.place([server], disk.file("spool")).openWriter(Self.writing(whenFull: .refuse))
        try writer.add(.stanza(Self.row(1)))
        try writer.commit()
        disk.fill(leaving: 4)
        var random = SeededGenerator(seed: 7)
        for number in 2...200 {
            // It cannot be compressed.
            let body = (0..<400).map { _ in String(UInt32.random(in: 0...UInt32.max, using: &random), radix: 36) }
                .joined()
            try writer.add(.stanza(TestRow.message(body, sequence: UInt64(number), after: Int64(number))))
        }
        let fault = #expect(throws: StoreFault.self) { try writer.commit() }
        #expect(fault?.code == .full, "\(String(describing: fault))")
        disk.empty()
        try writer.commit()
        server.isAway.store(false, ordering: .relaxed)
        try writer.finish()
        #expect(server.rows.map(\.sequence).sorted() == Array(1...200))
    }

    @Test("A store that lacks one of its tables is an error at the start", arguments: ["session", "gap"])
    func failsWithoutTable(name: String) throws {
        let folder = try TemporaryFolder()
        let transport: ClickHouseTransport = { request throws(ClickHouseUnreachable) in
            let text = String(decoding: request.body, as: UTF8.self)
            guard !text.contains(" \(name) ") else { return Self.refusal(60) }
            return ClickHouseAnswer(
                status: 200,
                exception: nil,
                body: Array(text.contains("version()") ? "18.16.1".utf8 : "".utf8)
            )
        }
        let place = StorePlace.clickHouse(
            try ClickHouseAddress("clickhouse://localhost/audit"),
            password: nil,
            spool: Spool.Configuration(folder: folder.path(of: "spool"))
        ) { _ in transport }
        let fault = #expect(throws: StoreFault.self) { try place.openWriter(Self.writing()) }
        #expect(fault?.description.contains("store init") == true, "\(String(describing: fault))")
    }
}
