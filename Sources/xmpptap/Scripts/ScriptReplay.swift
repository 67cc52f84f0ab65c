internal import ArgumentParser
internal import NIOPosix
internal import TapNetwork
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// The flags of `replay` that are about scansion scripts.
struct ScriptOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Run only scripts with this tag; repeatable.", valueName: "tag"),
        transform: { Script.Tag($0) }
    )
    var onlyTags: [Script.Tag] = []

    @Option(
        help: ArgumentHelp("Leave out scripts with this tag; repeatable.", valueName: "tag"),
        transform: { Script.Tag($0) }
    )
    var skipTags: [Script.Tag] = []

    /// Whether a script is to be run.
    func choose(_ script: Script) -> Bool {
        (onlyTags.isEmpty || onlyTags.contains(where: script.has)) && !skipTags.contains(where: script.has)
    }
}

/// Runs scansion scripts against a server, one after the other.
struct ScriptReplay {
    /// A script, or why it cannot be parsed.
    private struct Entry {
        let path: String
        let script: Result<Script, ScriptFault>

        /// Its path, and its title.
        var name: String {
            guard case .success(let script) = script, let title = script.title else { return path }
            return "\(path)  \(title)"
        }
    }

    private let entries: [Entry]

    /// Reads scripts. One that cannot be parsed fails when it is its turn, so that the others run.
    init(_ paths: [String], _ options: ScriptOptions) throws(Failure) {
        entries = paths.compactMap { path in
            let script = Self.read(path)
            if case .success(let script) = script, !options.choose(script) { return nil }
            return Entry(path: path, script: script)
        }
        guard !entries.isEmpty else { throw .file("\(paths.joined(separator: ", ")): no script to run") }
    }

    private static func read(_ path: String) -> Result<Script, ScriptFault> {
        Result { () throws(ScriptFault) in try Script(Array(try bytes(path)), file: path) }
    }

    /// Runs them, and tells how each ended.
    ///
    /// - Parameters:
    ///   - accounts: Of the accounts file; they go before the passwords of scripts.
    ///   - report: One to add to.
    ///   - tell: Takes lines for people.
    /// - Returns: The report with a case for each script, and the exit status.
    func run(
        at server: LiveServer,
        accounts: [ReplayRun.Account],
        settings: ScriptPlay.Settings,
        report: DivergenceReport,
        tell: (String) -> Void
    ) async -> (DivergenceReport, ExitStatus) {
        var report = report
        var end = ExitStatus.success
        var passed = 0
        for entry in entries {
            var result = DivergenceReport.Case(name: entry.name)
            let (divergence, steps, status) = await run(entry, at: server, accounts, settings)
            report.compared += steps
            if let divergence {
                result.divergences = [divergence]
                tell(LineBuffer.escaped("failed  \(entry.name)"))
                for line in divergence.scriptLines { tell(LineBuffer.escaped("  \(line)")) }
                // A set-up that is broken goes before a regression, and the first of either kind before others.
                if end == .success || end == .checkFailed { end = status }
            } else {
                passed += 1
                tell(LineBuffer.escaped("passed  \(entry.name)"))
            }
            report.add(result)
        }
        tell("\(passed) of \(entries.count) scripts passed")
        return (report, end)
    }

    /// - Returns: The divergence of a failed script, the number of steps that passed, and the exit status.
    private func run(
        _ entry: Entry,
        at server: LiveServer,
        _ accounts: [ReplayRun.Account],
        _ settings: ScriptPlay.Settings
    ) async -> (Divergence?, steps: Int, ExitStatus) {
        let script: Script
        switch entry.script {
        case .success(let parsed): script = parsed
        case .failure(let fault): return (Divergence(fault), 0, .file)
        }
        do throws(ScriptRunError) {
            let run = try ScriptRun(script, at: server, accounts: accounts, settings: settings)
            switch await run.run(on: MultiThreadedEventLoopGroup.singleton) {
            case .passed: return (nil, script.steps.count, .success)
            case .failed(let failure):
                let steps = script.steps.count { $0.line < failure.line }
                return (Divergence(failure, file: entry.path), steps, ExitStatus(failure.cause))
            }
        } catch {
            let divergence = Divergence(unplayable: "\(error)", file: entry.path, line: error.line)
            return (divergence, 0, .preparation)
        }
    }

    // MARK: Files

    private static func bytes(_ path: String) throws(ScriptFault) -> [UInt8] {
        do throws(Failure) {
            return try TextFile.bytes(path, limit: 4 << 20)
        } catch {
            throw ScriptFault(file: path, error.message)
        }
    }
}

extension ExitStatus {
    /// Of a script that failed.
    fileprivate init(_ cause: ScriptPlay.Failure.Cause) {
        self =
            switch cause {
            case .behaviour: .checkFailed
            case .login: .preparation
            case .network: .network
            }
    }
}

extension Divergence {
    /// A failed script for people: the place, the reason, and the received stanza.
    fileprivate var scriptLines: [String] {
        [title] + (live.map { ["received: \($0.text)"] } ?? [])
    }
}
