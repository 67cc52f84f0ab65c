import Foundation

/// A measured proxy: a process between the clients and the server of this process.
final class Relay {
    /// A program and its configuration.
    struct Kind: Sendable {
        let name: String
        /// The program and its arguments; `LISTEN`, `PORT` (of `LISTEN`), `UPSTREAM` and `FOLDER` are replaced.
        /// Its standard error is the file `FOLDER/messages`.
        let command: [String]
        /// A program that captures the packets, and whose CPU time is added; it prints a line when it is ready.
        var watcher: [String] = []
        /// A program that uses the relay, whose CPU time is not measured; it prints a line when it is ready.
        var companion: [String] = []
        /// The content of the file `FOLDER/configuration`.
        var configuration = ""
        /// Whether the program writes a line for each stanza to `FOLDER/log`.
        var logs = false
    }

    let kind: Kind
    let port: UInt16
    private let folder: URL
    private let process = Process()
    private let watcher = Process()
    private let companion = Process()

    /// Starts the program and waits until it listens.
    init(_ kind: Kind, upstream: UInt16) throws {
        self.kind = kind
        // The port is free again as soon as the listener is deallocated.
        port = Listener { _ in }.port
        folder = FileManager.default.temporaryDirectory.appending(path: "xmpptap-benchmark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let (listen, folder) = (port, folder.path)
        func filled(_ text: String) -> String {
            text.replacing("LISTEN", with: "127.0.0.1:\(listen)").replacing("UPSTREAM", with: "127.0.0.1:\(upstream)")
                .replacing("FOLDER", with: folder).replacing("PORT", with: "\(listen)")
        }
        try filled(kind.configuration).write(toFile: folder + "/configuration", atomically: true, encoding: .utf8)
        process.executableURL = URL(filePath: kind.command[0])
        process.arguments = kind.command.dropFirst().map(filled)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        _ = FileManager.default.createFile(atPath: folder + "/messages", contents: nil)
        process.standardError = try FileHandle(forWritingTo: URL(filePath: folder + "/messages"))
        try process.run()
        for _ in 0..<200 {
            if let descriptor = Connection.connect(port) {
                close(descriptor)
                for (other, command) in [(watcher, kind.watcher), (companion, kind.companion)] {
                    guard let program = command.first else { continue }
                    let said = Pipe()
                    other.executableURL = URL(filePath: program)
                    other.arguments = command.dropFirst().map(filled)
                    other.standardInput = FileHandle.nullDevice
                    other.standardOutput = said
                    other.standardError = said
                    try other.run()
                    guard !said.fileHandleForReading.availableData.isEmpty, other.isRunning else {
                        throw Failure("\(kind.name): \(program) does not begin")
                    }
                    // A full pipe would stop the program.
                    said.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
                }
                return
            }
            guard process.isRunning else { break }
            usleep(25_000)
        }
        throw Failure("\(kind.name) does not listen: \(process.arguments ?? [])")
    }

    deinit { stop() }

    func stop() {
        guard process.isRunning else { return }
        for process in [companion, process, watcher] where process.isRunning {
            process.terminate()
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)
    }

    /// The path of a file in its folder.
    func path(of name: String) -> String { folder.appending(path: name).path }

    /// CPU time so far, in microseconds: user and system, of all threads, with that of the watcher.
    var cpu: Double {
        guard !kind.watcher.isEmpty else { return cpu(of: process) }
        // Forwarded data is decoded a moment later.
        usleep(500_000)
        return cpu(of: process) + cpu(of: watcher)
    }

    private func cpu(of process: Process) -> Double { scheduledTime(of: process) ?? countedTime(of: process) }

    /// Returns the CPU time by the scheduler, in nanoseconds; nil if the kernel does not provide it.
    private func scheduledTime(of process: Process) -> Double? {
        let tasks = "/proc/\(process.processIdentifier)/task"
        var sum = 0.0
        for thread in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            guard let text = try? String(contentsOfFile: "\(tasks)/\(thread)/schedstat", encoding: .utf8),
                let time = text.split(separator: " ").first.flatMap({ Double($0) })
            else { return nil }
            sum += time / 1000
        }
        return sum > 0 ? sum : nil
    }

    /// Returns the CPU time in clock ticks, which are 10 ms on nearly all systems.
    private func countedTime(of process: Process) -> Double {
        guard let text = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8),
            // The name is in parentheses and may contain anything.
            let end = text.lastIndex(of: ")")
        else { return 0 }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
        return (user + system) * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Private memory, in bytes.
    var memory: Double {
        let path = "/proc/\(process.processIdentifier)/smaps_rollup"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return 0 }
        for line in text.split(separator: "\n") where line.hasPrefix("Pss:") {
            return (line.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) * 1024
        }
        return 0
    }

    /// Number of lines in its log, after they are written.
    var logLines: Int {
        usleep(200_000)
        guard let data = try? Data(contentsOf: folder.appending(path: "log")) else { return 0 }
        return data.count { $0 == 0x0A }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
