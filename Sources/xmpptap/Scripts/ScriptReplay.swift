internal import ArgumentParser
internal import Glibc
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

    /// Whether the arguments of `replay` are scripts: files that end in `.scs`, or folders.
    static func takes(_ paths: [String]) -> Bool { paths.contains { $0.hasSuffix(".scs") || isFolder($0) } }

    /// Reads scripts, and those of folders.
    ///
    /// - Throws: A ``Failure`` with every fault of every script.
    init(_ paths: [String], _ options: ScriptOptions) throws(Failure) {
        var scripts: [(path: String, script: Script)] = []
        var faults: [String] = []
        var files: [String] = []
        for path in paths { files += try Self.files(path) }
        for path in files {
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

    /// Runs them, and prints how each ended.
    ///
    /// - Parameters:
    ///   - accounts: Of the accounts file; they go before the passwords of scripts.
    /// - Throws: The ``Failure`` of the exit status.
    func run(at server: LiveServer, accounts: [ReplayRun.Account], settings: ScriptPlay.Settings) async throws(Failure)
    {
        var runs: [ScriptRun] = []
        for (path, script) in scripts {
            do throws(ScriptRunError) {
                runs.append(try ScriptRun(script, at: server, accounts: accounts, settings: settings))
            } catch {
                throw Failure(status: .preparation, message: "\(path): \(error)")
            }
        }
        var worst = ExitStatus.success
        var passed = 0
        for ((path, script), run) in zip(scripts, runs) {
            let title = script.title.map { "  \($0)" } ?? ""
            switch await run.run(on: MultiThreadedEventLoopGroup.singleton) {
            case .passed:
                passed += 1
                Console.show(LineBuffer.escaped("passed  \(path)\(title)"))
            case .failed(let failure):
                Console.show(LineBuffer.escaped("failed  \(path)\(title)"))
                Console.show(LineBuffer.escaped("  \(path):\(failure.line): \(failure.step): \(failure.reason)"))
                if let received = failure.received { Console.show(LineBuffer.escaped("  received: \(received)")) }
                if worst != .preparation { worst = failure.isBehaviour ? .checkFailed : .preparation }
            }
        }
        Console.show("\(passed) of \(scripts.count) scripts passed")
        guard worst == .success else { throw .reported(worst) }
    }

    // MARK: Files

    private static func bytes(_ path: String) throws(ScriptFault) -> [UInt8] {
        do throws(Failure) {
            return try TextFile.bytes(path, limit: 4 << 20)
        } catch {
            throw ScriptFault(file: path, error.message)
        }
    }

    private static func isFolder(_ path: String) -> Bool {
        guard let listing = opendir(path) else { return false }
        closedir(listing)
        return true
    }

    /// A file, or the scripts of a folder in the order of their names.
    private static func files(_ path: String) throws(Failure) -> [String] {
        guard isFolder(path) else {
            guard path.hasSuffix(".scs") else {
                throw .usage("\(path) is not a script; play recordings and scripts with a command each")
            }
            return [path]
        }
        guard let listing = opendir(path) else {
            throw .file("cannot read \(path): \(String(cString: strerror(errno)))")
        }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { name in
                String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".scs") { names.append(path.hasSuffix("/") ? path + name : "\(path)/\(name)") }
        }
        return names.sorted()
    }
}
