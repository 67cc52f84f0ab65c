internal import ArgumentParser
internal import TapCapture
internal import TapRules

/// `--capture-when` and the flags that depend on it.
struct TriggerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Capture only the records around each match of a filter.",
            discussion: """
                The filter is written as for --filter. The login and the end of a session with a match are kept too. \
                Notes in the file say how many records were left out. Records that wait for a match take up to 1 MiB per \
                session and 64 MiB in all.
                """,
            valueName: "expression"
        ),
        transform: RecordFilter.typed
    )
    var captureWhen: RecordFilter?

    @Option(
        help: ArgumentHelp("Records of the session before a match (default: 200).", valueName: "count"),
        transform: { try Number.parse($0, in: 0...1_000_000) }
    )
    var before: Int?

    @Option(
        help: ArgumentHelp("Records of the session after a match (default: 500).", valueName: "count"),
        transform: { try Number.parse($0, in: 0...1_000_000_000) }
    )
    var after: Int?

    @Option(
        help: ArgumentHelp("End the capture after this many matches.", valueName: "count"),
        transform: { try Number.parse($0, in: 1...1_000_000_000) }
    )
    var captureMatches: Int?

    @Option(
        help: ArgumentHelp("End the capture after this time, as in 10m.", valueName: "time"),
        transform: TimeSpan.age
    )
    var captureFor: Duration?

    /// Returns the trigger that the flags define; nil if there is none.
    ///
    /// - Throws: A ``Failure`` if a flag requires another one that is missing.
    func trigger(of capture: String?) throws(Failure) -> CaptureTrigger? {
        guard let captureWhen else {
            let others = [
                ("--before", before != nil), ("--after", after != nil), ("--capture-matches", captureMatches != nil),
                ("--capture-for", captureFor != nil),
            ]
            guard let lone = others.first(where: \.1)?.0 else { return nil }
            throw .usage("\(lone) needs --capture-when; add it")
        }
        guard capture != nil else { throw .usage("--capture-when needs --capture; add it") }
        var trigger = CaptureTrigger(captureWhen)
        trigger.before = before ?? trigger.before
        trigger.after = after ?? trigger.after
        trigger.matches = captureMatches
        trigger.duration = captureFor
        return trigger
    }
}
