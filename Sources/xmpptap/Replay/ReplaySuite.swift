internal import Glibc
internal import TapCapture
internal import TapReplay

/// Scripts and captures from folders, which `replay` runs in turn, each as a test.
struct ReplaySuite {
    let scripts: [String]
    let captures: [String]

    /// Finds the scripts and captures; returns nil if the arguments are the files of a single recording.
    ///
    /// - Parameter paths: The arguments of `replay`.
    init?(_ paths: [String]) throws(Failure) {
        guard paths.contains(where: { Self.isScript($0) || Self.isFolder($0) }) else { return nil }
        var scripts: [String] = []
        var captures: [String] = []
        for path in paths {
            if Self.isFolder(path) {
                let files = try Self.files(path)
                scripts += files.filter(Self.isScript)
                captures += files.filter(Self.isCapture)
            } else {
                guard Self.isScript(path) else {
                    throw .usage("\(path) is not a script; play recordings and scripts with separate commands")
                }
                scripts.append(path)
            }
        }
        guard !scripts.isEmpty || !captures.isEmpty else {
            throw .file("\(paths.joined(separator: ", ")): no script to run, and no capture to play")
        }
        (self.scripts, self.captures) = (scripts, captures)
    }

    private static func isScript(_ path: String) -> Bool { path.hasSuffix(".scs") }

    private static func isCapture(_ path: String) -> Bool {
        ["", ".gz", ".zst"].contains { path.hasSuffix(".xtap\($0)") }
    }

    private static func isFolder(_ path: String) -> Bool {
        guard let listing = opendir(path) else { return false }
        closedir(listing)
        return true
    }

    /// Returns the paths of the entries in a folder, sorted by name.
    private static func files(_ path: String) throws(Failure) -> [String] {
        guard let names = FileStatus.names(in: path) else {
            throw .file("cannot read \(path): \(String(cString: strerror(errno)))")
        }
        return names.map { path.hasSuffix("/") ? path + $0 : "\(path)/\($0)" }.sorted()
    }

    /// Replays the captures, and reports the result of each.
    ///
    /// - Parameters:
    ///   - command: The command, whose flags apply to all captures.
    ///   - report: Receives a case for each session, and an error for each capture that could not be replayed.
    /// - Returns: The exit status, and whether the user interrupted the replay. Captures that could not be replayed
    ///   take precedence over differences.
    func play(_ command: ReplayCommand, into report: inout DivergenceReport) async throws -> (
        ExitStatus, isInterrupted: Bool
    ) {
        var end = ExitStatus.success
        var isInterrupted = false
        for path in captures where !isInterrupted {
            var one = command
            one.files = [path]
            var isPlayed = false
            do {
                let result = try await one.played()
                isPlayed = true
                if !command.json {
                    Console.printEscaped("\(path):")
                    result.printSummary()
                }
                result.add(to: &report)
                if command.update { try result.update() }
                if result.isInterrupted { isInterrupted = true }
                try result.end()
            } catch let failure as Failure {
                if !failure.message.isEmpty { Console.printDiagnostic(failure.message) }
                if !isPlayed { report.errors.append(failure.message) }
                if end == .success || end == .checkFailed { end = failure.status }
            }
        }
        return (end, isInterrupted)
    }
}
