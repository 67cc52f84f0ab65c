internal import ArgumentParser
internal import TapNetwork
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// The plan for `replay`: the recorded sessions, and the accounts.
struct ReplayPlan {
    let script: ReplayScript
    let options: ReplayOptions
    let rules: NoiseRules
    /// The accounts of each copy.
    let copies: [[ReplayRun.Account]]
    /// The recording after which the noise file is named.
    let file: String
    /// The server data on which the recording depends.
    let dependences: [RecordingDependence]

    /// Creates the plan for a recording.
    ///
    /// - Parameter advice: The advice shown if the recording cannot be replayed.
    init(_ command: ReplayCommand, advice: String) throws(Failure) {
        guard let first = command.files.first else { throw .usage("no file given; name a capture") }
        file = first
        let conversations = try RecordedSessions.read(
            command.files,
            Set(command.play.session),
            keys: command.keylog.keys(),
            refusals: true,
            advice: advice
        )
        guard let accounts = command.accounts else {
            throw .usage("a recording needs --accounts FILE, with the accounts to log in with")
        }
        let rows = try Self.accounts(accounts)
        let recorded = Set(conversations.compactMap(\.account?.normalized))
        let chosen = rows.filter { recorded.contains($0.recorded.normalized) }
        guard !chosen.isEmpty else {
            let names = recorded.map(\.description).sorted().joined(separator: ", ")
            throw Failure(
                status: .preparation,
                message: "\(accounts) has none of the recorded accounts (\(names)); add a line such as "
                    + "'user@example.org password-file as=\(recorded.map(\.description).min() ?? "JID")'"
            )
        }
        let played = conversations.filter { conversation in
            chosen.contains { $0.recorded.normalized == conversation.account?.normalized }
        }
        for name in recorded.subtracting(chosen.map(\.recorded.normalized)).map(\.description).sorted() {
            Console.printDiagnostic("\(name) is not played: \(accounts) has no password for it")
        }
        let placeholders = Set(played.lazy.flatMap(\.items).flatMap(\.placeholders))
        for value in command.value where !placeholders.contains(value.placeholder) {
            Console.printDiagnostic("--value \(value.placeholder): no stanza of \(file) has this placeholder")
        }
        let puppets = rows.filter { !recorded.contains($0.recorded.normalized) }
        script = ReplayScript(played, puppets: puppets.map(\.recorded), prepares: command.prepare)
        dependences = RecordingDependence.all(in: played)
        options = Self.options(command)
        rules = try NoiseFiles.rules(command.noise, beside: command.files)
        let all = chosen + puppets
        guard command.copies == 1 || all.allSatisfy({ $0.live.contains("%d") }) else {
            throw .usage("--copies needs an account for each copy; write %d for its number, as in user%d@example.org")
        }
        var copies: [[ReplayRun.Account]] = []
        for number in 1...command.copies {
            copies.append(try all.map { row throws(Failure) in try row.account(number) })
        }
        self.copies = copies
    }

    /// Maximum number of connections that are open at the same time.
    var connections: Int { copies.count * script.clients.count { $0.role != .preparation } }

    /// Returns a client's name in reports: its session, and the run if there are several.
    func name(of client: ReplayScript.Client) -> String {
        guard client.role == .recorded else { return "puppet \(client.jid)" }
        let hasRuns = script.clients.contains { $0.role == .recorded && $0.run != client.run }
        let refusal = client.refusal.map { ", login failed: \($0)" } ?? ""
        return "\(hasRuns ? "run \(client.run) " : "")session \(client.session) \(client.jid)\(refusal)"
    }

    // MARK: Accounts

    /// A row of the accounts file.
    private struct Row {
        let recorded: JID
        /// The account as written: with `%d` in place of the copy's number.
        let live: String
        let password: String

        func account(_ number: Int) throws(Failure) -> ReplayRun.Account {
            let text = live.replacing("%d", with: String(number))
            guard let jid = JID(text) else { throw .file("--accounts: \(text) is not an account") }
            return ReplayRun.Account(recorded: recorded, live: jid, password: password)
        }
    }

    /// Returns the accounts in a file, with their JIDs in the recording or script.
    static func accounts(in path: String) throws(Failure) -> [ReplayRun.Account] {
        try accounts(path).map { row throws(Failure) in try row.account(1) }
    }

    private static func accounts(_ path: String) throws(Failure) -> [Row] {
        let accounts: [AccountsFile.Account]
        do throws(AccountsError) {
            accounts = try AccountsFile(path: path).accounts
        } catch {
            throw .file("--accounts: \(error)")
        }
        var rows: [Row] = []
        for account in accounts {
            guard case .password(let password) = account.secret else {
                throw .file("--accounts: \(path): \(account.jid) has stored keys; replay needs its password")
            }
            let recorded = account.recorded ?? account.jid
            rows.append(Row(recorded: recorded, live: account.jid.description, password: password))
        }
        return rows
    }

    // MARK: Options

    private static func options(_ command: ReplayCommand) -> ReplayOptions {
        var options = ReplayOptions()
        options.pace = command.play.pace
        options.wait = command.wait
        options.quiet = command.quiet
        options.withoutEdits = command.withoutEdits
        for value in command.value { options.values[value.placeholder] = value.text }
        return options
    }
}

/// The flags that select the recorded sessions and the pace.
struct PlayOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Play only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @Option(
        help: ArgumentHelp(
            "When to send: causal, recorded, or xN times as fast (default: causal).",
            valueName: "causal|recorded|xN"
        ),
        completion: .list(["causal", "recorded", "x10"]),
        transform: parse
    )
    var pace = ReplayOptions.Pace.causal

    private static func parse(_ text: String) throws(Failure) -> ReplayOptions.Pace {
        switch text {
        case "causal": return .causal
        case "recorded": return .recorded(speed: 1)
        default:
            guard text.hasPrefix("x"), let speed = Double(text.dropFirst()), speed > 0, speed.isFinite else {
                throw .usage("write causal, recorded, or xN as in x2")
            }
            return .recorded(speed: speed)
        }
    }
}

/// The value of `--value NAME=@FILE`.
struct PlaceholderValue {
    /// The placeholder as written in the capture.
    let placeholder: String
    let text: String

    init(_ argument: String) throws(Failure) {
        guard let sign = argument.firstIndex(of: "="), argument[sign...].hasPrefix("=@") else {
            throw .usage("write the placeholder's name and a file, as in token#3=@token.txt")
        }
        let name = argument[..<sign]
        placeholder = name.hasPrefix("[") ? String(name) : "[redacted:\(name)]"
        text = try TextFile.read(String(argument[sign...].dropFirst(2))).passwordLine
    }
}
