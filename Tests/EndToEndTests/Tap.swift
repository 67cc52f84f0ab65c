import Foundation
import TapTestKit
import Testing

/// `xmpptap proxy` as a user runs it, with one log of each kind in a temporary folder.
final class Tap: Sendable {
    /// The program.
    let binary: XMPPTapBinary
    /// The listening ports, in the order of the arguments.
    let ports: [UInt16]
    /// The folder of the log files.
    let folder: TemporaryFolder

    /// The first listening port.
    var port: UInt16 { ports[0] }
    /// The paths of the JSON log, the text log at verbose, the text log at info (story), and the capture.
    var json: String { folder.path(of: "tap.json") }
    var text: String { folder.path(of: "tap.log") }
    var story: String { folder.path(of: "story.log") }
    var capture: String { folder.path(of: "tap.xtap") }

    /// Starts the proxy with one listener for each server port on 127.0.0.1, and waits until it listens.
    convenience init(upstream: UInt16..., arguments: [String] = []) async throws {
        try await self.init(listen: upstream.map { "127.0.0.1:0=127.0.0.1:\($0)" }, arguments: arguments)
    }

    /// Starts the proxy with these listeners, and waits until it listens. TLS passes through unless the arguments
    /// contain `--tls`. Each listener is a value of the flag.
    init(
        listen: [String],
        flag: String = "--listen",
        arguments: [String] = [],
        environment: [String: String] = [:]
    ) async throws {
        folder = try TemporaryFolder()
        let listeners = listen.flatMap { [flag, $0] }
        let logs = [
            "--log", "warn",
            "--log-to", "\(folder.path(of: "tap.json")),format=json,verbose",
            "--log-to", "\(folder.path(of: "tap.log")),verbose",
            "--log-to", folder.path(of: "story.log"),
            "--capture", folder.path(of: "tap.xtap"),
        ]
        let tls = arguments.contains("--tls") ? [] : ["--tls", "passthrough"]
        binary = try XMPPTapBinary(
            ["proxy"] + listeners + logs + tls + arguments,
            environment: environment.merging(["XDG_STATE_HOME": folder.path]) { given, _ in given }
        )
        _ = try await binary.port()
        var ports: [UInt16] = []
        while ports.count < listen.count {
            ports = binary.process.lines(of: .standardError).compactMap(XMPPTapBinary.port)
            if ports.count < listen.count { try await Task.sleep(for: .milliseconds(10)) }
        }
        self.ports = ports
    }

    /// Ends the proxy with SIGTERM. Throws an error unless the exit code is 0.
    func stop() async throws {
        let ending = try await binary.process.terminate()
        guard ending == .exited(0) else { throw binary.process.failure("ended with \(ending) on SIGTERM") }
    }

    /// Waits until a file contains a text, because log files are written with a short delay.
    func wait(for text: String, in path: String, within limit: Duration = .seconds(10)) async throws {
        let deadline = ContinuousClock.now + limit
        while !Self.read(path).contains(text) {
            guard binary.process.isRunning, ContinuousClock.now < deadline else {
                throw binary.process.failure("no \(text) in \(path):\n\(Self.read(path).suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Returns the records of the JSON log.
    func records() throws -> [LogRecord] { try LogRecord.all(in: json) }

    /// Returns the number of records with a code in the JSON log and its rotated parts. It uses grep, because the files
    /// can be large.
    func count(code: String) async throws -> Int {
        let parts = ([json] + (1...10).map { "\(json).\($0)" }).filter(FileManager.default.fileExists)
        let search = try ToolProcess("/usr/bin/grep", ["-chF", "\"code\":\"\(code)\""] + parts)
        try await search.ending()
        return search.lines(of: .standardOutput).compactMap { Int($0) }.reduce(0, +)
    }

    /// Returns the lines of the text log at verbose.
    func lines() -> [String] { Self.read(text).split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init) }

    /// Returns a value of /proc/PID/status in KiB.
    func memory(_ figure: String) throws -> Int {
        let status = Self.read("/proc/\(binary.process.identifier)/status")
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(figure) })
        return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
    }

    static func read(_ path: String) -> String {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// A record of a JSON log, with the fields that the tests use.
struct LogRecord: Decodable {
    var sequence: UInt64
    var kind: String
    var level: String
    var session: UInt64?
    var jid: String?
    var remote: String?
    var direction: String?
    var origin: String?
    var epoch: Int?
    var offset: UInt64?
    var length: UInt64?
    var name: String?
    var type: String?
    var payload: String?
    var id: String?
    var summary: String?
    var answers: UInt64?
    var roundTrip: Double?
    var truncated: Bool?
    var action: String?
    var xml: String?
    var edited: String?
    var code: String?
    var condition: String?
    var message: String?
    var details: Details?

    /// The attributes of a step, a diagnosis or a wrong acknowledgement.
    struct Details: Decodable {
        var step: String?
        var outcome: String?
        /// Attributes of the beginning of a session whose client named its target.
        var request: String?
        var target: String?
        /// Attributes of the diagnosis of a failed login.
        var cause: String?
        var side: String?
        var rule: String?
        /// Attributes of a wrong acknowledgement in stream management (XEP-0198).
        var fault: String?
        var difference: Int64?
        var lastCorrect: Int64?
        var firstWrong: Int64?
        var proxyIsCause: Bool?
    }

    /// Whether the record is an item of a stream, which has an offset and a length.
    var isItem: Bool {
        ["declaration", "stream-open", "stanza", "element", "whitespace", "stream-close"].contains(kind)
    }

    /// Returns the records of a file, after the header in its first line.
    static func all(in path: String) throws -> [LogRecord] {
        let lines = Tap.read(path).split(separator: "\n", omittingEmptySubsequences: false)
        try #require(lines.first?.hasPrefix(#"{"xtap":1,"#) == true, "\(path) begins with \(lines.first ?? "nothing")")
        try #require(lines.last?.isEmpty == true, "\(path) ends in a torn line: \(lines.last ?? "")")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try lines.dropFirst().dropLast().map { try decoder.decode(LogRecord.self, from: Data($0.utf8)) }
    }
}

extension [LogRecord] {
    /// Checks that a log at verbose contains each sequence number exactly once, and the records of each session in
    /// order.
    ///
    /// Sessions run concurrently, so the records of different sessions may be out of order.
    func checkEveryNumberIsThere(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(
            map(\.sequence).sorted() == (0..<count).map { UInt64($0) + 1 },
            "a number is missing or twice there",
            sourceLocation: sourceLocation
        )
        for (session, lines) in Dictionary(grouping: self, by: \.session) where session != nil {
            let numbers = lines.map(\.sequence)
            #expect(
                numbers == numbers.sorted(),
                "lines of session \(session ?? 0) are not in order",
                sourceLocation: sourceLocation
            )
        }
    }

    /// Checks that the items of each stream follow each other without gaps, and that the length of each item is
    /// correct.
    func checkNoByteIsMissing(sourceLocation: SourceLocation = #_sourceLocation) {
        var positions: [String: UInt64] = [:]
        for record in self where record.isItem && record.origin == nil {
            let stream = "\(record.session ?? 0) \(record.direction ?? "") \(record.epoch ?? 0)"
            #expect(
                record.offset == positions[stream, default: 0],
                "record \(record.sequence) of stream \(stream): a gap before it",
                sourceLocation: sourceLocation
            )
            positions[stream] = (record.offset ?? 0) + (record.length ?? 0)
            guard let xml = record.xml, !xml.contains("[redacted:") else { continue }
            #expect(
                UInt64(xml.utf8.count) == record.length,
                "record \(record.sequence): \(xml)",
                sourceLocation: sourceLocation
            )
        }
    }
}
