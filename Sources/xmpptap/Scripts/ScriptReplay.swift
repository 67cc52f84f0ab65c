internal import ArgumentParser
internal import NIOPosix
internal import TapNetwork
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// The flags of `replay` for scansion scripts.
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

    /// Returns whether a script is selected by its tags.
    func choose(_ script: Script) -> Bool {
        (onlyTags.isEmpty || onlyTags.contains(where: script.has)) && !skipTags.contains(where: script.has)
    }
}

/// Runs scansion scripts against a server, one after another.
struct ScriptReplay {
    /// A script, or the reason why it cannot be parsed.
    private struct Entry {
        let path: String
        let script: Result<Script, ScriptFault>

        /// The path of the script, followed by its title.
        var name: String {
            guard case .success(let script) = script, let title = script.title else { return path }
            return "\(path)  \(title)"
        }
    }

    private let entries: [Entry]

    /// Reads scripts. One that cannot be parsed fails only when it is its turn, so that the others run.
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

    /// Runs the scripts, and reports the result of each.
    ///
    /// - Parameters:
    ///   - server: The live server.
    ///   - accounts: The accounts of the accounts file, which take precedence over the passwords in scripts.
    ///   - settings: Settings for all scripts.
    ///   - report: The report to extend.
    ///   - print: Called with each line for users.
    /// - Returns: The report with a case for each script, and the exit status.
    func run(
        at server: LiveServer,
        accounts: [ReplayRun.Account],
        settings: ScriptPlay.Settings,
        report: DivergenceReport,
        print: (String) -> Void
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
                print(LineBuffer.escaped("failed  \(entry.name)"))
                for line in divergence.scriptLines { print(LineBuffer.escaped("  \(line)")) }
                // A script that could not be run takes precedence over a failed one; otherwise the first failure
                // counts.
                if end == .success || end == .checkFailed { end = status }
            } else {
                passed += 1
                print(LineBuffer.escaped("passed  \(entry.name)"))
            }
            report.add(result)
        }
        print("\(passed) of \(entries.count) scripts passed")
        return (report, end)
    }

    /// Runs one script.
    ///
    /// - Returns: The divergence if the script failed, the number of steps that passed, and the exit status.
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
    /// Creates the exit status of a failed script.
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
    /// The lines for users about a failed script: place, reason, and received stanza.
    fileprivate var scriptLines: [String] {
        [title] + (live.map { ["received: \($0.text)"] } ?? [])
    }
}
