import Foundation
import Synchronization
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

@Suite(.timeLimit(.minutes(1))) struct ControlClientTests {
    private typealias Server = ControlServerDouble

    private static func error(_ body: () async throws(ControlClientError) -> Void) async -> ControlClientError? {
        do throws(ControlClientError) {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a request is sent as HTTP, and its response is decoded`() async throws {
        let server = try await Server(Server.answer("200 OK", #"{"sessions":[]}"#))
        let request = ControlClient.Request(
            "PUT",
            "/level",
            query: [("jid", "a@b/ü c"), ("left", nil)],
            body: #"{"x":1}"#
        )
        let answer = try await ControlClient(path: server.path).ask(request)
        #expect(answer == .object([.init("sessions", .array([]))]))
        let sent = try #require(server.requests.first)
        #expect(sent.hasPrefix("PUT /level?jid=a%40b%2F%C3%BC%20c HTTP/1.1\r\n"))
        #expect(sent.hasSuffix("\r\n\r\n{\"x\":1}") && sent.contains("Content-Length: 7\r\n"))
        #expect(sent.contains("Connection: close\r\n") && sent.contains("Content-Type: application/json\r\n"))
    }

    @Test func `a response without a body is null, and a chunked one is joined`() async throws {
        let empty = try await Server("HTTP/1.1 204 No Content\r\n\r\n", .stay)
        #expect(try await ControlClient(path: empty.path).ask(.init("DELETE", "/sessions/1")) == .null)
        let chunked = try await Server(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n",
            .stay
        )
        #expect(try await ControlClient(path: chunked.path).ask(.init("GET", "/")).values.count == 2)
    }

    @Test(arguments: [
        (
            #"{"status":422,"code":"invalid-stanza","detail":"more than one"}"#, "more than one",
            ControlProblem.invalidStanza
        ),
        (#"{"title":"t","code":"of a later version"}"#, "t", nil), ("", "422 Unprocessable Entity", nil),
        ("<html>", "422 Unprocessable Entity", nil), ("[]", "422 Unprocessable Entity", nil),
    ])
    func `a refused request throws the reason`(body: String, words: String, problem: ControlProblem?) async throws {
        let server = try await Server(Server.answer("422 Unprocessable Entity", body))
        let error = await Self.error { () throws(ControlClientError) in
            _ = try await ControlClient(path: server.path).ask(.init("GET", "/"))
        }
        guard case .refused(problem, words, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: [
        ("", "the connection to the proxy ended"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", "the connection to the proxy ended"),
        ("garbage\r\n\r\n", "unexpected answer"), ("\u{0}\u{1}\u{2}", "unexpected answer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]", "unexpected answer"),
    ])
    func `an invalid response throws an error`(answer: String, words: String) async throws {
        let server = try await Server(answer)
        let error = await Self.error { () throws(ControlClientError) in
            _ = try await ControlClient(path: server.path).ask(.init("GET", "/"))
        }
        #expect(error.map { "\($0)" }?.hasPrefix(words) == true, "\(String(describing: error))")
    }

    @Test func `a request without a response times out`() async throws {
        let server = try await Server("", .stay)
        let error = await Self.error { () throws(ControlClientError) in
            _ = try await ControlClient(path: server.path).ask(.init("GET", "/"), timeout: .milliseconds(50))
        }
        #expect(error == .timeout(.milliseconds(50)))
    }

    @Test func `a response that arrives before a large request is fully sent is read`() async throws {
        let server = try await Server(Server.answer("413 Payload Too Large", #"{"detail":"too large"}"#), early: true)
        let body = String(repeating: "x", count: 32 << 20)
        let error = await Self.error { () throws(ControlClientError) in
            _ = try await ControlClient(path: server.path).ask(.init("POST", "/", body: body))
        }
        guard case .refused(nil, "too large", _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a missing listener throws an error`() async throws {
        let folder = try TemporaryFolder()
        for path in [folder.path(of: "none.sock"), folder.path(of: String(repeating: "x", count: 200)), folder.path] {
            let error = await Self.error { () throws(ControlClientError) in
                _ = try await ControlClient(path: path).ask(.init("GET", "/"))
            }
            guard case .unreachable(path, _)? = error else {
                Issue.record("\(path): \(String(describing: error))")
                continue
            }
        }
    }

    // MARK: Events

    private static let stream = """
        HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nevent: record\ndata: 1\n\nevent: lost\ndata: 2\n\n
        """

    @Test func `events are delivered until the proxy ends the stream`() async throws {
        let server = try await Server(Self.stream)
        let events = Mutex<[ServerSentEvent]>([])
        try await ControlClient(path: server.path).follow(.init("GET", "/records")) { event in
            events.withLock { $0.append(event) }
            return true
        }
        #expect(events.withLock { $0.map(\.name) } == ["record", "lost"])
        #expect(events.withLock { $0.map(\.data) } == [Array("1".utf8), Array("2".utf8)])
    }

    @Test func `events are delivered until the caller stops or the task is cancelled`() async throws {
        let server = try await Server(Self.stream, .stay)
        let count = Mutex(0)
        try await ControlClient(path: server.path).follow(.init("GET", "/records")) { _ in
            count.withLock { $0 += 1 }
            return false
        }
        #expect(count.withLock { $0 } == 1)
        let task = Task {
            try await ControlClient(path: server.path).follow(.init("GET", "/records")) { _ in
                count.withLock { $0 += 1 }
                return true
            }
        }
        while count.withLock({ $0 }) < 3 { await Task.yield() }
        task.cancel()
        _ = await task.result
    }

    @Test func `a refused event stream throws an error with the reason`() async throws {
        let server = try await Server(Server.answer("404 Not Found", #"{"detail":"no session 3"}"#))
        let error = await Self.error { () throws(ControlClientError) in
            try await ControlClient(path: server.path).follow(.init("GET", "/records")) { _ in true }
        }
        #expect(error.map { "\($0)" } == "no session 3")
    }

    // MARK: Finding the proxy

    @Test func `the only running proxy is found, and sockets of ended proxies are ignored`() async throws {
        let live = try await Server("", .stay, name: "control-12.sock")
        let folder = String(live.path.dropLast("/control-12.sock".count))
        // The socket file that an ended process has left.
        do {
            let dead = try await Server("", .stay, name: "control-13.sock")
            try FileManager.default.moveItem(atPath: dead.path, toPath: "\(folder)/control-13.sock")
            #expect(RunningProxy.all(in: folder).map(\.pid) == [12, 13])
            #expect(throws: ControlClientError.severalProxies(RunningProxy.all(in: folder))) {
                try ControlClient(onlyIn: folder)
            }
        }
        try Data().write(to: URL(filePath: "\(folder)/control-14.sock"))
        try Data().write(to: URL(filePath: "\(folder)/other.sock"))
        while RunningProxy.all(in: folder).count > 1 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(try ControlClient(onlyIn: folder).path == live.path)
        #expect(throws: ControlClientError.noProxy("\(folder)/none")) {
            try ControlClient(onlyIn: "\(folder)/none")
        }
    }

    @Test func `sockets in a folder that others can write to are ignored`() async throws {
        let live = try await Server("", .stay, name: "control-12.sock")
        let folder = String(live.path.dropLast("/control-12.sock".count))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        #expect(RunningProxy.all(in: folder).isEmpty)
    }
}
