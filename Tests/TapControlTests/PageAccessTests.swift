import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Synchronization
import TapNetwork
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture
@testable import TapControl

/// The page's port, asked as other pages, users and machines would.
@Suite(.timeLimit(.minutes(10))) struct PageAccessTests {
    private static let token = "0123456789abcdef"

    private static func inspection() -> Inspection {
        let subject = Inspection.Subject(title: "test", tool: "test", isLive: true, redaction: "secrets")
        return Inspection(subject, run: "run", RecordTable())
    }

    private static func ask(
        _ port: UInt16,
        _ target: String,
        _ fields: [(String, String)],
        method: String = "GET",
        body: String = ""
    ) async throws -> (status: Int, head: String, body: String) {
        let connection = try RawConnection(port: port)
        var head = fields.map { "\($0): \($1)\r\n" }.joined()
        if !body.isEmpty { head += "Content-Length: \(body.utf8.count)\r\n" }
        try await connection.write("\(method) \(target) HTTP/1.1\r\nConnection: close\r\n\(head)\r\n\(body)")
        // Other tests use the threads, too, so that an answer can take long; this limit only ends a test that hangs.
        let (bytes, _) = try await connection.read(within: .seconds(280)) { _ in false }
        let text = String(decoding: bytes, as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        return (Int(text.dropFirst(9).prefix(3)) ?? 0, String(parts.first ?? ""), String(parts.dropFirst().first ?? ""))
    }

    private func serving(
        _ inspection: Inspection = inspection(),
        acting: Bool = false,
        _ body: (UInt16) async throws -> Void
    ) async throws {
        let port = try TCPPort(host: "127.0.0.1", port: 0)
        let number = try #require(port.socketAddress.port.flatMap { UInt16(exactly: $0) })
        let service = PageService(
            port,
            inspection,
            token: Self.token,
            logger: Logger(label: "test"),
            acting: acting ? .test() : nil
        )
        #expect(service.url == "http://127.0.0.1:\(number)/#token=\(Self.token)")
        let run = Task { try await service.run() }
        do {
            try await body(number)
        } catch {
            run.cancel()
            throw error
        }
        run.cancel()
        #expect(try await run.ends(), "the service does not end")
    }

    /// The targets of all routes, with the parameters that they need.
    private static let targets: [String] = Route.page(PageAnswers(inspection(), on: .singleton)).map { route in
        switch route.path {
        case "/page/record": "/page/record?at=0"
        case "/page/seek": "/page/seek?at=0&filter=message"
        case "/page/messages": "/page/messages?conversation=0"
        default: route.path
        }
    }

    /// The routes by which a page acts, with the parameters and a body that they need.
    private static let actions: [(method: String, target: String, body: String)] =
        Route.actions(PageActions(.test())).map { route in
            let target = route.path.replacing("{id}", with: "1").replacing("{number}", with: "1")
            let body = ["POST", "PUT"].contains("\(route.method)") ? "{}" : ""
            return ("\(route.method)", target == "/page/held" ? "/page/held?page=a" : target, body)
        }

    @Test func `every route by which a page acts exists only if the page can act`() async throws {
        #expect(
            Set(Self.actions.map { $0.target }).isSuperset(of: [
                "/sessions", "/sessions/1/inject", "/sessions/1/ping", "/sessions/1/pause", "/sessions/1/held/1",
                "/level",
                "/rules", "/rules/state", "/rules/reload", "/page/held?page=a", "/page/closed",
            ])
        )
        for acting in [false, true] {
            try await serving(acting: acting) { port in
                let fields = [
                    ("Host", "127.0.0.1:\(port)"), ("Authorization", "Bearer \(Self.token)"),
                    ("Content-Type", "application/json"),
                ]
                for (method, target, body) in Self.actions {
                    let answer = try await Self.ask(port, target, fields, method: method, body: body)
                    let isUnknown = answer.body.contains("\"code\":\"no-such-resource\"")
                    #expect(answer.status != 403 && isUnknown == !acting, "\(method) \(target): \(answer)")
                    #expect(acting || answer.status == 404, "\(method) \(target): \(answer)")
                }
                let state = try await Self.ask(port, "/page/state", fields)
                #expect(state.body.contains("\"acts\":true") == acting)
                // Live records are for the control socket.
                for target in ["/records", "/rules/trace", "/metrics", "/openapi.json"] {
                    #expect(try await Self.ask(port, target, fields).status == 404, "\(target)")
                }
            }
        }
    }

    @Test func `a request that changes something needs a body of JSON`() async throws {
        try await serving(acting: true) { port in
            let fields = [("Host", "127.0.0.1:\(port)"), ("Authorization", "Bearer \(Self.token)")]
            let wrong = [
                nil, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a",
                "application/jsonp", "text/plain; application/json", "",
            ]
            for (method, target, body) in Self.actions where !body.isEmpty {
                for type in wrong {
                    let more = type.map { [("Content-Type", $0)] } ?? []
                    let answer = try await Self.ask(port, target, fields + more, method: method, body: body)
                    #expect(answer.status == 403, "\(method) \(target) \(type ?? "without a type"): \(answer)")
                }
                for type in ["application/json", "Application/JSON; charset=utf-8"] {
                    let more = [("Content-Type", type)]
                    let answer = try await Self.ask(port, target, fields + more, method: method, body: body)
                    #expect(answer.status != 403, "\(method) \(target) \(type): \(answer)")
                }
            }
            let deletion = try await Self.ask(port, "/sessions/1", fields, method: "DELETE")
            #expect(deletion.status == 404 && deletion.body.contains("no-such-session"), "\(deletion)")
            let body = try await Self.ask(port, "/sessions/1", fields, method: "DELETE", body: "a=b")
            #expect(body.status == 403)
            let empty = try await Self.ask(port, "/rules/reload", fields + [("Content-Length", "0")], method: "POST")
            #expect(empty.status == 403)
        }
    }

    @Test func `every route refuses a wrong host, origin, site and token`() async throws {
        try await serving(acting: true) { port in
            let host = ("Host", "127.0.0.1:\(port)")
            let authorization = ("Authorization", "Bearer \(Self.token)")
            let wrong: [(name: String, fields: [(String, String)], isForData: Bool)] = [
                ("no host", [authorization], false),
                ("another name", [("Host", "evil.example"), authorization], false),
                ("a name that resolves to this machine", [("Host", "localtest.me:\(port)"), authorization], false),
                ("another port", [("Host", "127.0.0.1:1"), authorization], false),
                ("no port", [("Host", "127.0.0.1"), authorization], false),
                ("another origin", [host, ("Origin", "https://evil.example"), authorization], false),
                ("the origin of another port", [host, ("Origin", "http://127.0.0.1:1"), authorization], false),
                ("a null origin", [host, ("Origin", "null"), authorization], false),
                ("another site", [host, ("Sec-Fetch-Site", "cross-site"), authorization], false),
                ("another port of this site", [host, ("Sec-Fetch-Site", "same-site"), authorization], false),
                ("no token", [host], true),
                ("a wrong token", [host, ("Authorization", "Bearer 0123456789abcdee")], true),
                ("a longer token", [host, ("Authorization", "Bearer \(Self.token)0")], true),
                ("a token as a cookie", [host, ("Cookie", "token=\(Self.token)")], true),
                ("a token of another scheme", [host, ("Authorization", "Basic \(Self.token)")], true),
            ]
            let routes = Self.targets.map { (method: "GET", target: $0, body: "") } + Self.actions
            for (method, target, body) in routes {
                let isData = !PageAssets.paths.keys.contains(target)
                for (name, fields, isForData) in wrong where isData || !isForData {
                    let type = body.isEmpty ? [] : [("Content-Type", "application/json")]
                    let answer = try await Self.ask(port, target, fields + type, method: method, body: body)
                    // Without a host, a request is malformed already (RFC 9112 §3.2).
                    #expect(answer.status == 403 || name == "no host" && answer.status == 400, "\(name): \(target)")
                    #expect(!answer.body.contains("\"run\""), "\(name): \(target)")
                    #expect(!answer.body.contains(Self.token) && !answer.head.contains(Self.token))
                }
            }
        }
    }

    @Test func `every route answers the page, with headers that keep other pages out`() async throws {
        try await serving { port in
            for host in ["127.0.0.1:\(port)", "localhost:\(port)", "[::1]:\(port)"] {
                for target in Self.targets {
                    let answer = try await Self.ask(
                        port,
                        target,
                        [
                            ("Host", host), ("Authorization", "Bearer \(Self.token)"),
                            ("Sec-Fetch-Site", "same-origin"),
                            ("Origin", "http://\(host)"),
                        ]
                    )
                    #expect(answer.status == 200, "\(target)")
                    let head = answer.head.lowercased()
                    #expect(head.contains("content-security-policy: default-src 'none'; script-src 'self'"))
                    #expect(head.contains("require-trusted-types-for 'script'"))
                    #expect(head.contains("x-content-type-options: nosniff"))
                    #expect(head.contains("cache-control: no-store"))
                    #expect(head.contains("cross-origin-resource-policy: same-origin"))
                }
            }
        }
    }

    @Test func `other methods, unknown paths and wrong parameters are refused`() async throws {
        try await serving { port in
            let fields = [("Host", "127.0.0.1:\(port)"), ("Authorization", "Bearer \(Self.token)")]
            let json = [("Content-Length", "0"), ("Content-Type", "application/json")]
            for target in Self.targets {
                #expect(try await Self.ask(port, target, fields + json, method: "POST").status == 405)
                #expect(try await Self.ask(port, target, fields + json.prefix(1), method: "POST").status == 403)
            }
            #expect(try await Self.ask(port, "/sessions", fields).status == 404)
            #expect(try await Self.ask(port, "/../Package.swift", fields).status == 404)
            let tooLarge = ["-9223372036854775808", "9223372036854775807", "-9007199254740993", "99999999999999999999"]
            for query in ["at=-1", "at=x", "at=1&token=x", ""] + tooLarge.map({ "at=\($0)" }) {
                #expect(try await Self.ask(port, "/page/record?\(query)", fields).status == 400, "\(query)")
            }
            for number in tooLarge {
                for target in ["rows?from=", "rows?around=", "seek?filter=iq&at=", "messages?conversation="] {
                    #expect(
                        try await Self.ask(port, "/page/\(target)\(number)", fields).status == 400,
                        "\(target)\(number)"
                    )
                }
            }
            for number in ["-9007199254740992", "9007199254740992"] {
                for target in ["rows?from=", "rows?around=", "seek?filter=iq&at=", "messages?conversation="] {
                    #expect(
                        try await Self.ask(port, "/page/\(target)\(number)", fields).status == 200,
                        "\(target)\(number)"
                    )
                }
            }
            let fault = try await Self.ask(port, "/page/rows?filter=message%20or", fields)
            #expect(fault.status == 422)
            #expect(fault.body.contains("\"code\":\"invalid-filter\""))
            #expect(fault.body.contains("\"column\":11"))
        }
    }

    @Test func `only a request for data with the token begins to record`() async throws {
        let live = LiveTable { [clock = RunClock()] in
            clock.now()
        } onChange: {
        }
        let subject = Inspection.Subject(title: "test", tool: "test", isLive: true, redaction: "secrets")
        try await serving(Inspection(subject, run: "run", live)) { port in
            let host = ("Host", "127.0.0.1:\(port)")
            #expect(try await Self.ask(port, "/", [host]).status == 200)
            #expect(try await Self.ask(port, "/page/state", [host]).status == 403)
            #expect(live.level == LiveTable.idleLevel)
            let state = try await Self.ask(port, "/page/state", [host, ("Authorization", "Bearer \(Self.token)")])
            #expect(state.body.contains("\"since\":"))
            #expect(live.level == .verbose)
            #expect(live.table.range == 0..<1)
        }
    }

    /// A lock that a thread holds until it is released.
    private final class Holder: Sendable {
        private let isWanted = Atomic(true)
        private let holds = Atomic(false)

        var isHeld: Bool { holds.load(ordering: .acquiring) }

        func hold(_ inspection: Inspection) {
            let error = WorkerThread.start(named: "holder") { [self] in
                inspection.withSurvey { _ in
                    holds.store(true, ordering: .releasing)
                    while isWanted.load(ordering: .acquiring) { usleep(10_000) }
                    holds.store(false, ordering: .releasing)
                }
            }
            #expect(error == 0)
        }

        func release() { isWanted.store(false, ordering: .releasing) }
    }

    @Test func `a long search delays neither other connections nor other tasks`() async throws {
        let inspection = Self.inspection()
        let holder = Holder()
        // A test that fails must not keep the lock.
        defer { holder.release() }
        holder.hold(inspection)
        while !holder.isHeld { try await Task.sleep(for: .milliseconds(10)) }
        try await serving(inspection) { port in
            let fields = [("Host", "127.0.0.1:\(port)"), ("Authorization", "Bearer \(Self.token)")]
            try await withThrowingTaskGroup { tasks in
                for _ in 0..<48 {
                    tasks.addTask { try await Self.ask(port, "/page/sessions", fields).status }
                }
                try await Task.sleep(for: .milliseconds(300))
                #expect(try await Self.ask(port, "/", fields).status == 200)
                #expect(holder.isHeld)
                holder.release()
                for try await status in tasks { #expect(status == 200) }
            }
        }
    }

    @Test func `a request that waits is answered when a record arrives, and ends with the service`() async throws {
        let port = try TCPPort(host: "127.0.0.1", port: 0)
        let number = try #require(port.socketAddress.port.flatMap { UInt16(exactly: $0) })
        let inspection = Self.inspection()
        let service = PageService(port, inspection, token: Self.token, logger: Logger(label: "test"))
        let run = Task { try await service.run() }
        let fields = [("Host", "127.0.0.1:\(number)"), ("Authorization", "Bearer \(Self.token)")]
        async let waiting = Self.ask(number, "/page/rows?known=0&wait=20&from=-10", fields)
        try await Task.sleep(for: .milliseconds(200))
        inspection.table.append { $0.append("{\"remark\":\"here\"}\n") }
        #expect(try await waiting.body.contains("\"text\":[\"here\"]"))
        async let unanswered = Self.ask(number, "/page/rows?known=1&wait=20", fields)
        try await Task.sleep(for: .milliseconds(200))
        let clock = ContinuousClock()
        let began = clock.now
        run.cancel()
        #expect(try await run.ends(), "the service does not end")
        #expect(clock.now - began < .seconds(10))
        _ = try? await unanswered
    }

    @Test func `the files of the page are complete, and load nothing from elsewhere`() {
        var size = 0
        for (path, asset) in PageAssets.paths {
            #expect(!asset.text.isEmpty, "\(path)")
            size += asset.text.utf8.count
            #expect(!asset.text.contains("innerHTML") && !asset.text.contains("outerHTML"), "\(path)")
            #expect(!asset.text.contains("insertAdjacentHTML") && !asset.text.contains("document.write"), "\(path)")
            for import_ in asset.text.matches(of: #/from "\.\/([a-z]+\.js)"/#) {
                #expect(PageAssets.paths["/\(import_.1)"] != nil, "\(path) imports \(import_.1)")
            }
        }
        #expect(size <= 300_000)
        // A page that is a file has other scripts.
        let bundle = PageAssets.bundle
        #expect(bundle.utf8.count + PageAssets.style.text.utf8.count <= 300_000)
        #expect(!bundle.contains("innerHTML") && !bundle.contains("insertAdjacentHTML"))
        for script in PageAssets.bundledScripts { #expect(!script.text.isEmpty, "\(script.name)") }
    }
}
