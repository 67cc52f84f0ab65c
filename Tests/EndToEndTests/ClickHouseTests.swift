import Foundation
import TapRecord
import TapStore
import TapTestKit
import Testing

/// An audit store in a ClickHouse server, beside one in a file.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(
        if: TestProgram.areInstalled(.clickHouse) && XMPPTapBinary.path != nil,
        "clickhouse-server or xmpptap is missing"
    )
)
struct ClickHouseTests {
    /// Texts that SQL, regular expressions or RowBinary could take for something else.
    private static let texts = [
        "Where is the contract?", "It's in the 'drawer'; DROP TABLE stanza; -- \\", "élan Élan e\u{301}lan",
        "合同在这里", "Ёлка ждёт мир", "اَلْعَقْد", "한국어 계약", "a\tb\nc\\0\\x00", "{p:String} ${x} %s ?", "\u{10FFFF} 🎉 x1",
    ]

    /// Writes a recording with messages between some people, over several days.
    private static func record(into folder: TemporaryFolder) throws -> String {
        var lines = [
            #"{"xtap":1,"tool":"xmpptap 1","time":"2026-11-01T00:00:00Z","level":"verbose","complete":true,"#
                + #""redaction":"secrets","run":"0123456789abcdef"}"#
        ]
        let people = ["juliet@example.org", "romeo@example.org", "o'brien@example.org"]
        for number in 1...400 {
            let body = texts[number % texts.count]
            let escaped = body.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            let (account, peer) = (people[number % 3], people[(number + 1 + number % 2) % 3])
            let isSent = number.isMultiple(of: 2)
            // Every other message has a copy with the same id in the session of the other end.
            let xml = "<message id='m\(number)'><body>\(escaped)</body></message>"
            let day = 1 + number / 100
            let time = "2026-11-0\(day)T0\(number % 10):00:0\(number % 7).\(String(format: "%09d", number))Z"
            var fields: [String: Any] = [
                "sequence": number, "time": time, "monotonic": number, "level": "info", "kind": "stanza",
                "session": number % 3 + 1, "jid": "\(account)/x", "direction": isSent ? "send" : "recv",
                "name": "message", "id": "m\(number)", "type": "chat", "length": xml.utf8.count, "xml": xml,
            ]
            fields[isSent ? "to" : "from"] = peer
            let data = try JSONSerialization.data(withJSONObject: fields, options: [.withoutEscapingSlashes])
            lines.append(String(decoding: data, as: UTF8.self))
        }
        lines.append(
            #"{"sequence":401,"time":"2026-11-05T00:00:00Z","monotonic":500,"level":"error","kind":"session","session":9,"#
                + #""user":"o'brien","domain":"example.org","code":"login-failed","details":{"cause":"wrong-password","#
                + #""finding":"the password is wrong"}}"#
        )
        return try folder.write(lines.map { "\($0)\n" }.joined(), to: "talk.xtap")
    }

    @Test("Searches and figures of a server are those of a file and of the recording, also after rows were sent twice")
    func answersAlike() async throws {
        let server = try await ClickHouse()
        let folder = try TemporaryFolder()
        let capture = try Self.record(into: folder)
        let store = "clickhouse://127.0.0.1:\(server.port)/audit"
        let missing = try await XMPPTapBinary.run(["search", "x", store])
        #expect(missing.ending == .exited(3) && missing.error.contains("xmpptap store init"), "\(missing)")
        for _ in 0..<2 {
            let created = try await XMPPTapBinary.run(["store", "init", store])
            #expect(created.ending == .exited(0), "\(created)")
        }
        let file = folder.path(of: "audit.sqlite")
        for output in [store, store, file] {
            let converted = try await XMPPTapBinary.run(["convert", capture, output])
            #expect(converted.ending == .exited(0), "\(converted)")
        }
        let info = try await XMPPTapBinary.run(["store", "info", store])
        #expect(info.output.hasPrefix("400 stanzas, 400 messages with a body\n1 run, 3 accounts\n"), "\(info)")

        let searches = [
            ["contract"], ["contr*"], ["élan"], ["", "--account", "juliet@example.org"],
            ["", "--with", "romeo@example.org", "--since", "2026-11-03T00:00:00Z"],
            ["drawer", "--between", "juliet@example.org", "romeo@example.org"], ["contract", "-C", "1"],
            ["", "--kind", "iq"], ["nothing"], ["", "--until", "2026-11-02T00:00:00Z"],
        ]
        for search in searches {
            let arguments = ["search", search[0]]
            let found = [
                try await XMPPTapBinary.run(arguments + [capture] + search.dropFirst() + ["--json"]),
                try await XMPPTapBinary.run(arguments + [file] + search.dropFirst() + ["--json"]),
                try await XMPPTapBinary.run(arguments + [store] + search.dropFirst() + ["--json"]),
            ]
            #expect(found[0].output == found[1].output && found[1].output == found[2].output, "\(search): \(found[2])")
            #expect(found[0].ending == found[2].ending)
        }
        for form in [[], ["--json"], ["--account", "juliet@example.org"], ["--with", "romeo@example.org", "--csv"]] {
            let figures = [
                try await XMPPTapBinary.run(["stats", file] + form),
                try await XMPPTapBinary.run(["stats", store] + form),
            ]
            #expect(figures[0].output == figures[1].output && !figures[0].output.isEmpty, "\(form): \(figures)")
        }
        let kept = try await XMPPTapBinary.run(["store", "retain", store, "--keep", "100ms"])
        #expect(kept.ending == .exited(0) && kept.output.hasPrefix("400 stanzas deleted, 0 left"), "\(kept)")
    }

    @Test("A store on a server does what every store must do")
    func conforms() async throws {
        let server = try await ClickHouse()
        let result = Result { try Self.check(server) }
        // The threads of a spool keep it as long as they run.
        try await server.kill()
        try result.get()
    }

    @Test(
        "A store on a server of a current version does what every store must do",
        .enabled(if: ClickHouse.hasCurrent, "chdb is missing")
    )
    func conformsWithCurrentVersion() async throws {
        let server = try await ClickHouse(current: try TemporaryFolder())
        let result = Result { try Self.check(server) }
        try await server.kill()
        try result.get()
    }

    /// Returns a transport to a server.
    private static func transport(to server: ClickHouse) -> ClickHouseTransport {
        { request throws(ClickHouseUnreachable) in
            do {
                let answer = try server.send(request.target, fields: request.fields, body: request.body)
                return ClickHouseAnswer(status: answer.status, exception: nil, body: answer.body)
            } catch {
                throw ClickHouseUnreachable(text: "\(error)")
            }
        }
    }

    /// Compares rows that are read in pages of different sizes.
    private static func checkPages(_ server: ClickHouse) throws {
        let transport = transport(to: server)
        let address = try ClickHouseAddress("clickhouse://127.0.0.1:\(server.port)/pages")
        // As two shards, so that each has all rows.
        let twice = try ClickHouseAddress("clickhouse://127.0.0.1:\(server.port)+localhost:\(server.port)/pages")
        let folder = try TemporaryFolder()
        let spool = Spool.Configuration(folder: folder.path(of: "spool"))
        let place = StorePlace.clickHouse(address, password: nil, spool: spool) { _ in transport }
        _ = try place.initialize()
        // Times that are equal, next to each other, and at both ends of the range.
        let noon: Int64 = 1_795_348_800_000_000_000
        let times = [
            .min, .min + 1, -1, 0, 1, noon, noon, noon, noon + 1, noon + 2, noon + 3_600_000_000_000, .max - 1, .max,
        ]
        var expected: [AuditRow] = []
        for (number, time) in times.enumerated() {
            var row = AuditRow(
                run: "run",
                sequence: UInt64(number + 1),
                session: 1,
                time: Timestamp(nanoseconds: time),
                account: ["juliet@example.org", "romeo@example.org"][number % 2],
                direction: .send,
                kind: .message,
                size: 1
            )
            row.seen = Timestamp(nanoseconds: noon)
            row.peer = ["juliet@example.org", "romeo@example.org"][(number + 1) % 2]
            row.body = "contract"
            expected.append(row)
        }
        // A batch that is sent twice.
        for _ in 0..<2 {
            let writer = try place.openWriter(StorePlace.Writing(run: "pages"))
            for row in expected.reversed() { try writer.add(row) }
            try writer.finish()
        }
        // Each shard has 13 rows, or 26 until the server merges those that were sent twice.
        for (short, isDense) in [(52, true), (13, true), (6, false)] {
            var limits = ClickHouseStore.Limits()
            limits.short = short
            let store = try ClickHouseStore(ClickHouseCluster(twice, password: nil) { _ in transport }, limits)
            #expect(try store.isDense(SearchQuery(words: "contract")) == isDense, "up to \(short) rows")
        }
        for size in 1...14 {
            for words in ["", "contract"] {
                var limits = ClickHouseStore.Limits()
                (limits.page, limits.slice) = (min(size, 3), size)
                // Either the number of rows or their size divides the time.
                if size.isMultiple(of: 2) { (limits.slice, limits.sliceBytes) = (100, UInt64(size * 201)) }
                let store = try ClickHouseStore(
                    ClickHouseCluster(size.isMultiple(of: 3) ? twice : address, password: nil) { _ in transport },
                    limits
                )
                for (start, isBackwards) in [(0, false), (5, false), (6, true), (12, true), (0, true), (12, false)] {
                    var reader = store.rows(
                        of: .people("juliet@example.org", "romeo@example.org"),
                        SearchQuery(words: words),
                        from: Timestamp(nanoseconds: times[start]),
                        isBackwards: isBackwards
                    )
                    var read: [UInt64] = []
                    while let part = try reader.next() {
                        let numbers = part.map(\.sequence)
                        read = isBackwards ? numbers + read : read + numbers
                    }
                    let wanted = expected.filter {
                        isBackwards ? $0.time.nanoseconds <= times[start] : $0.time.nanoseconds >= times[start]
                    }
                    #expect(read == wanted.map(\.sequence), "from \(start), pages of \(size)")
                }
                let found = try store.rows(for: SearchQuery(words: words))
                #expect(found.map(\.sequence) == expected.map(\.sequence), "pages of \(size), words '\(words)'")
                var some: [UInt64] = []
                try store.rows(for: SearchQuery(words: words)) { row in
                    some.append(row.sequence)
                    return some.count < 5
                }
                #expect(some == [1, 2, 3, 4, 5], "pages of \(size)")
            }
        }
    }

    private static func check(_ server: ClickHouse) throws {
        try checkPages(server)
        let folder = try TemporaryFolder()
        let transport = transport(to: server)
        for (number, check) in StoreCheck.all.enumerated() {
            var spool = Spool.Configuration(folder: folder.path(of: "\(number)"))
            spool.interval = .milliseconds(1)
            let address = try ClickHouseAddress("clickhouse://127.0.0.1:\(server.port)/check\(number)")
            let place = StorePlace.clickHouse(
                address,
                password: nil,
                spool: spool
            ) { _ in transport }
            _ = try place.initialize()
            let opening = CheckedStore.Opening(
                writer: { try place.openWriter(StorePlace.Writing(run: "check")) },
                // Small pages, so that many answers consist of several, and times are divided.
                reader: {
                    let cluster = try ClickHouseCluster(address, password: nil) { _ in transport }
                    var limits = ClickHouseStore.Limits()
                    (limits.page, limits.slice, limits.short) = (100, 1000, 0)
                    return try ClickHouseStore(cluster, limits)
                },
                maintenance: { try place.open() }
            )
            do {
                let differences = try check.differences(opening)
                if !differences.isEmpty {
                    Issue.record("\(check.testDescription): \(differences.joined(separator: "; "))")
                }
            } catch {
                Issue.record("\(check.testDescription): \(error)")
            }
        }
    }

    @Test("A server is reached by TLS if its certificate is trusted, and not otherwise")
    func usesTLS() async throws {
        let certificate = try await TestCertificate()
        let server = try await ClickHouse(certificate: certificate)
        let folder = try TemporaryFolder()
        let capture = try Self.record(into: folder)
        let store = "clickhouses://localhost:\(try #require(server.securePort))/audit"
        let refused = try await XMPPTapBinary.run(["store", "init", store])
        #expect(refused.ending == .exited(3) && refused.error.contains("certificate"), "\(refused)")
        for arguments in [["store", "init", store], ["convert", capture, store]] {
            let done = try await XMPPTapBinary.run(arguments + ["--store-ca", certificate.certificate])
            #expect(done.ending == .exited(0), "\(done)")
        }
        let file = folder.path(of: "audit.sqlite")
        let converted = try await XMPPTapBinary.run(["convert", capture, file])
        #expect(converted.ending == .exited(0), "\(converted)")
        let search = ["search", "contract", store, "--store-ca", certificate.certificate]
        let found = try await XMPPTapBinary.run(search)
        #expect(found.output.contains("Where is the contract?"), "\(found)")
        // Transcripts and tables are those of the file.
        for form in [["--csv"], []] {
            let ofServer = try await XMPPTapBinary.run(search + form)
            let ofFile = try await XMPPTapBinary.run(["search", "contract", file] + form)
            #expect(ofServer.output == ofFile.output && !ofServer.output.isEmpty)
        }
        func transcript(_ arguments: [String]) async throws -> String {
            let page = try await XMPPTapBinary.run(arguments + ["--format", "html"])
            return page.output.components(separatedBy: "<section").dropFirst().joined()
        }
        let page = try await transcript(search)
        #expect(page.contains("Where is the contract?"))
        #expect(try await page == transcript(["search", "contract", file]))
        let table = folder.path(of: "table.csv")
        let export = try await XMPPTapBinary.run([
            "store", "export", store, table, "--store-ca", certificate.certificate,
        ])
        #expect(export.ending == .exited(0), "\(export)")
        // As a spreadsheet reads it: each row has all columns, and texts with quotes and line ends are whole.
        let reading = try ToolProcess(
            "/usr/bin/python3",
            [
                "-c",
                "import csv, sys; rows = list(csv.reader(open(sys.argv[1], newline='', encoding='utf-8-sig'))); "
                    + "print(len(rows), len({len(row) for row in rows}), any('DROP TABLE' in text for row in rows for text in row))",
                table,
            ]
        )
        _ = try await reading.ending()
        #expect(reading.text(of: .standardOutput) == "401 1 True\n", "\(reading.text(of: .standardError))")
    }

    @Test("A server that is away, refuses the login or has no store is named with the way out")
    func namesFaults() async throws {
        let server = try await ClickHouse(users: [("tap", "se'cret&\\ x")])
        let folder = try TemporaryFolder()
        let password = try folder.write("se'cret&\\ x\n", to: "password")
        let wrong = try folder.write("wrong\n", to: "wrong")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: password)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: wrong)
        let free = try FreePort.next()
        let host = "127.0.0.1:\(server.port)"
        // The first host is away: the second one answers.
        let both = "clickhouse://tap@127.0.0.1:\(free),\(host)/audit"
        let created = try await XMPPTapBinary.run(["store", "init", both, "--store-password-file", password])
        #expect(created.ending == .exited(3), "\(created)")
        #expect(created.error.contains("127.0.0.1:\(free)") && created.error.contains("connection refused"))
        let capture = try Self.record(into: folder)
        for (arguments, status, part) in [
            (["store", "info", "clickhouse://127.0.0.1:\(free)/audit"], 3, "connection refused"),
            (
                ["store", "info", "clickhouse://tap@\(host)/audit", "--store-password-file", wrong], 3,
                "the login was refused"
            ),
            (["store", "info", "clickhouse://\(host)/none"], 3, "store init"),
            (["store", "info", "clickhouse://tap:secret@\(host)/audit"], 2, "--store-password-file"),
            (["search", "x", "clickhouse://\(host)"], 2, "the database is missing"),
            (["search", "x", "clickhouse://\(host)/a-b"], 2, "letters, digits and underscores"),
            (["search", "x", capture, "--store-ca", "x"], 2, "clickhouse://"),
            (["convert", capture, "clickhouse://127.0.0.1:\(free)/audit"], 3, "connection refused"),
            (["store", "info", "clickhouses://\(host)/audit"], 3, "TLS"),
            // Messages of the other shard would be missing.
            (["search", "x", "clickhouse://\(host)+127.0.0.1:\(free)/default"], 3, "127.0.0.1:\(free)"),
            (["store", "init", "clickhouse://\(host)/audit", "--cluster", "none"], 3, "cluster 'none' not found"),
        ] {
            let refused = try await XMPPTapBinary.run(arguments)
            #expect(refused.ending == .exited(Int32(status)), "\(arguments): \(refused)")
            #expect(
                refused.error.contains(part) && refused.error.split(separator: "\n").count == 1
                    && !refused.error.contains("secret"),
                "\(arguments): \(refused.error)"
            )
        }
    }
}
