internal import ArgumentParser
internal import TapNetwork

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
        help: ArgumentHelp("Look at this port (default: 15222).", valueName: "port"),
        transform: { try UInt16(Number.parse($0, in: 1...65535)) }
    )
    var port = UInt16(ListenSpec.defaultPort)

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var config: ConfigOption

    func run() throws {
        let findings = Doctor.examine(port: port)
        for finding in findings { Console.print(json ? finding.json : finding.line) }
        if findings.contains(where: { $0.outcome == .stop }) { throw Failure.told(.checkFailed) }
    }
}
