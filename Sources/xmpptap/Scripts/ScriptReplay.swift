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
    private let scripts: [(path: String, script: Script)]

    /// Reads scripts.
    ///
    /// - Throws: A ``Failure`` with every fault of every script.
    init(_ paths: [String], _ options: ScriptOptions) throws(Failure) {
        var scripts: [(path: String, script: Script)] = []
        var faults: [String] = []
        for path in paths {
            do throws(ScriptFault) {
                let script = try Script(Array(try Self.bytes(path)), file: path)
                if options.choose(script) { scripts.append((path, script)) }
            } catch {
                faults.append("\(error)")
            }
        }
        guard faults.isEmpty else { throw .file(faults.joined(separator: "\n")) }
        guard !scripts.isEmpty else { throw .file("\(paths.joined(separator: ", ")): no script to run") }
        self.scripts = scripts
    }

    /// Runs them, and tells how each ended.
    ///
    /// - Parameters:
    ///   - accounts: Of the accounts file; they go before the passwords of scripts.
    ///   - report: One to add to.
    ///   - tell: Takes lines for people.
    /// - Returns: The report with a case for each script, and the exit status.
    /// - Throws: A ``Failure`` if a character has no password.
    func run(
        at server: LiveServer,
        accounts: [ReplayRun.Account],
        settings: ScriptPlay.Settings,
        report: DivergenceReport,
        tell: (String) -> Void
    ) async throws(Failure) -> (DivergenceReport, ExitStatus) {
        var runs: [ScriptRun] = []
        for (path, script) in scripts {
            do throws(ScriptRunError) {
                runs.append(try ScriptRun(script, at: server, accounts: accounts, settings: settings))
            } catch {
                throw Failure(status: .preparation, message: "\(path): \(error)")
            }
        }
        var report = report
        var end = ExitStatus.success
        var passed = 0
        for ((path, script), run) in zip(scripts, runs) {
            let title = script.title.map { "  \($0)" } ?? ""
            var result = DivergenceReport.Case(name: "\(path)\(title)")
            switch await run.run(on: MultiThreadedEventLoopGroup.singleton) {
            case .passed:
                passed += 1
                report.compared += script.steps.count
                tell(LineBuffer.escaped("passed  \(path)\(title)"))
            case .failed(let failure):
                report.compared += script.steps.count { $0.line < failure.line }
                result.divergences = [Divergence(failure, file: path)]
                tell(LineBuffer.escaped("failed  \(path)\(title)"))
                tell(LineBuffer.escaped("  \(path):\(failure.line): \(failure.step): \(failure.reason)"))
                if let received = failure.received { tell(LineBuffer.escaped("  received: \(received)")) }
                // A set-up that is broken goes before a regression, and the first of either kind before others.
                if end == .success || end == .checkFailed { end = ExitStatus(failure.cause) }
            }
            report.add(result)
        }
        tell("\(passed) of \(scripts.count) scripts passed")
        return (report, end)
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
