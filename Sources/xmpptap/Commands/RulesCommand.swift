internal import ArgumentParser
internal import TapCapture
internal import TapNetwork
internal import TapRecord
internal import TapRules

struct RulesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract: "Check rule files, dry-run them, and follow them in a running proxy.",
        discussion: """
            Rule files are written in the language of Prosody's mod_firewall, with additional terms for proxies. \
            filters/README.md is the reference. Rules before the first chain line (::NAME) see both directions; with \
            --chain deliver they see what the server sends, as in mod_firewall.

            Examples:

              xmpptap rules check filters/no-typing.pfw
              xmpptap rules run filters/no-typing.pfw yesterday.xtap
              xmpptap rules reload
            """,
        subcommands: [Check.self, Run.self, Reload.self, Hits.self, Trace.self]
    )

    struct Check: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check rule files and report all mistakes.",
            discussion: """
                Reports every mistake as FILE:LINE:COLUMN with what was expected. The files are checked together: a \
                definition of one can be used in another. Lists are read too. The exit code is 1 if a file has a \
                mistake.

                Examples:

                  xmpptap rules check filters/no-typing.pfw
                  xmpptap rules check filters/no-typing.pfw staff.pfw
                  xmpptap rules check staff.pfw --json | jq -r .message
                """
        )

        @Argument(help: ArgumentHelp("Rule file.", valueName: "file"), completion: .ruleFiles)
        var files: [String]

        @OptionGroup var chain: DefaultChainOption

        @Flag(help: "Print JSON: one mistake or warning per line, or the counts.")
        var json = false

        @OptionGroup var config: ConfigOption

        func run() throws {
            try RuleFiles.checkInputs(files)
            let rules = try RuleFiles.load(files, defaultChain: chain.chain, isJSON: json)
            if json {
                return Console.print(
                    LineBuffer.object { line in
                        line.field("rules", rules.count)
                        line.field("files", files.count)
                    }
                )
            }
            Console.print("\(Plural.of(rules.count, "rule")) in \(Plural.of(files.count, "file")), no mistakes")
        }
    }

    struct Run: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Show which rules hit which stanzas of recordings.",
            discussion: """
                Evaluates the rules for every stanza and nonza of captures, logs or packets. Prints those that \
                a rule hit, what it would do, and for an edit the original (-) and the edited stanza (+). Nothing is \
                sent. The XML is in captures and in logs at level verbose. Each stanza is judged as it was recorded, \
                redacted secrets included. The exit code is 1 if a rule file has a mistake.

                Name the rule files first, then the recordings. "-" is standard input. Several recordings are \
                merged by time.

                Examples:

                  xmpptap rules run filters/no-typing.pfw yesterday.xtap
                  xmpptap rules run filters/no-typing.pfw monday.xtap tuesday.pcap --keylog keys.txt
                  xmpptap rules run a.pfw b.pfw today.xtap --json | jq -r .rule | sort | uniq -c
                """
        )

        @Argument(help: ArgumentHelp("Rule files, then the recordings.", valueName: "file"), completion: .file())
        var files: [String]

        @OptionGroup var chain: DefaultChainOption

        @Flag(help: "Print JSON, one stanza per line.")
        var json = false

        @Option(
            help: ArgumentHelp("Judge only this session; repeatable.", valueName: "number"),
            transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
        )
        var session: [UInt64] = []

        @OptionGroup var keylog: KeyLogOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try RuleFiles.checkInputs(files)
            // The last file is always treated as a recording, so that reading it reports any error.
            let count = files.dropLast().firstIndex(where: Self.isRecording) ?? files.count - 1
            guard count > 0 else {
                throw Failure.usage(
                    files.count > 1
                        ? "\(files[0]) is a recording; name the rule files first"
                        : "rules run takes rule files and a recording, as in rules run typing.pfw today.xtap"
                )
            }
            let keys = try keylog.keys()
            let rules = try RuleFiles.load(Array(files[..<count]), defaultChain: chain.chain)
            var report = RuleReport(rules, isJSON: json)
            try report.run(Array(files[count...]), sessions: Set(session), keys: keys)
        }

        /// Returns whether a file, other than the last, is a recording, by its name or content.
        private static func isRecording(_ path: String) -> Bool {
            guard path != "-", !path.hasSuffix(".pfw") else { return false }
            return path.hasSuffix(".xtap") || (try? RecordReader([path])) != nil
        }
    }
}

// Subcommands for the rules of a running proxy.
extension RulesCommand {
    struct Reload: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "reload",
            abstract: "Reload the rule files of a running proxy.",
            discussion: """
                If a file has a mistake, all mistakes are reported as by "rules check", the rules in force stay, and the \
                exit code is 1.

                Examples:

                  xmpptap rules reload
                  xmpptap rules reload --json
                  xmpptap rules reload --control tap.sock
                """
        )

        @Flag(help: "Print the rules as JSON.")
        var json = false

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            let client = try control.client()
            let answer: JSONValue
            do throws(ControlClientError) {
                answer = try await client.ask(.init("POST", "/rules/reload"))
            } catch {
                throw Self.failure(error)
            }
            if json { return Console.print(answer.json) }
            let count = (answer["rules"]?.values.count ?? 0, answer["files"]?.values.count ?? 0)
            let off = answer["switched_on"]?.integer ?? 0
            let note = off > 0 ? "; on again: \(off)" : ""
            Console.print("\(Plural.of(count.0, "rule")) in \(Plural.of(count.1, "file")) in force\(note)")
        }

        /// Prints the errors in the files, one per line, and returns the failure.
        private static func failure(_ error: ControlClientError) -> Failure {
            guard case .refused(_, _, let answer) = error, let faults = answer["faults"]?.values else {
                return Failure(error)
            }
            for fault in faults { Console.printStandardError(fault["message"]?.text ?? fault.json) }
            return Failure(status: .checkFailed, message: "rules not reloaded; the rules in force stay")
        }
    }

    struct Hits: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "hits",
            abstract: "Count the hits of a running proxy's rules.",
            discussion: """
                Counts since the rules were loaded, in all sessions.

                Examples:

                  xmpptap rules hits
                  xmpptap rules hits --json | jq .hits
                  xmpptap rules hits --control tap.sock
                """
        )

        @Flag(help: "Print JSON, one rule per line.")
        var json = false

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            let rules = try await control.client().ask(.init("GET", "/rules"))["rules"]?.values ?? []
            if json {
                for rule in rules { Console.print(rule.json) }
                return
            }
            guard !rules.isEmpty else {
                return Console.printDiagnostic("this proxy has no rules; start it with --rules FILE")
            }
            for line in RuleHits(rules: rules).lines(width: Console.width) { Console.print(line) }
        }
    }

    struct Trace: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "trace",
            abstract: "Show the hits of a running proxy's rules, live.",
            discussion: """
                Runs until Ctrl-C or the end of the proxy.

                Examples:

                  xmpptap rules trace
                  xmpptap rules trace --session 3 --json
                  xmpptap rules trace --tag slow
                """
        )

        @Option(help: ArgumentHelp("Show only stanzas with this tag (TAG TRACE=name).", valueName: "name"))
        var tag: String?

        @Option(
            help: ArgumentHelp("Session to show (default: all).", valueName: "number"),
            completion: .sessionNumbers,
            transform: SessionNumber.parse
        )
        var session: [UInt64] = []

        @Flag(help: "Print JSON, one hit per line.")
        var json = false

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func validate() throws {
            guard session.count <= 1 else { throw ValidationError("--session given more than once") }
        }

        func run() async throws {
            let client = try control.client()
            let query = [("session", session.first.map { "\($0)" }), ("tag", tag)]
            let request = ControlClient.Request("GET", "/rules/trace", query: query)
            try await Interruption.cancels { [json] in
                try await client.follow(request) { event throws(ControlClientError) in
                    switch event.name {
                    case "hit": try show(event.data, json)
                    case "lost": RecordPrinter.reportLoss(lost: event)
                    default: break
                    }
                    return Console.fault == nil
                }
                if !Task.isCancelled, Console.fault == nil { Console.printDiagnostic("the proxy has ended") }
            }
        }

        private func show(_ data: [UInt8], _ isJSON: Bool) throws(ControlClientError) {
            if isJSON { return Console.write(data + [0x0A]) }
            let hit: JSONValue
            do throws(JSONError) { hit = try JSONValue(data.span.bytes) } catch { throw .unexpected("\(error)") }
            let session = hit["session"]?.integer.map { "[\($0)] " } ?? ""
            let place = "\(hit["file"]?.text ?? ""):\(hit["line"]?.integer ?? 0)"
            let conditions = (hit["conditions"]?.values ?? []).compactMap(\.text).joined(separator: "; ")
            let tags = (hit["tags"]?.values ?? []).compactMap(\.text).map { "#\($0)" }.joined(separator: " ")
            let parts = [
                hit["direction"]?.text, place, hit["action"]?.text, conditions.isEmpty ? nil : "(\(conditions))",
                tags.isEmpty ? nil : tags,
            ]
            Console.printEscaped(
                "\(session)\(parts.compactMap { $0 }.joined(separator: " ")): \(hit["stanza"]?.text ?? "")"
            )
        }
    }
}
