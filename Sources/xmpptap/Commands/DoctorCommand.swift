internal import ArgumentParser

/// `xmpptap doctor`.
struct DoctorCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Say what would stop the program from working here.",
        discussion: """
            Looks at versions, libraries, ports, limits and rights. A line begins with "ok", with "note" where something \
            may be missed, or with "stop" and what to do; the exit code is 1 if there is a "stop".

            Example:

              xmpptap doctor
              xmpptap doctor --port 15223 --json | jq 'select(.outcome != "ok")'
            """
    )

    @Option(
        help: ArgumentHelp("Look at this port instead of the usual one.", valueName: "port"),
        transform: { try HostPort.port($0, isOwn: false) }
    )
    var port = ListenRequest.defaultPort

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var config: ConfigOption

    func run() throws {
        let findings = Doctor.examine(port: port)
        for finding in findings { Console.print(json ? finding.json : finding.line) }
        if findings.contains(where: { $0.outcome == .stop }) { throw Failure.told(.checkFailed) }
    }
}
