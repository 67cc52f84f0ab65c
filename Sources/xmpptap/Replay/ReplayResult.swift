internal import TapNetwork
internal import TapRecord
internal import TapReplay

/// The result of a replay, and its output as a report, a noise file and an exit code.
struct ReplayResult {
    let report: DivergenceReport
    private let progress: [Replayer.Progress]
    /// The copies that did not reach their end, with their numbers from 1.
    private let failures: [(copy: Int, failure: ReplayRun.Failure)]
    /// A placeholder whose missing value prevented a stanza from being sent.
    private let placeholder: String?
    /// The recording that was replayed, after which the noise file is named.
    let file: String
    /// The server data on which the recording depends.
    let dependences: [RecordingDependence]

    init(
        _ outcomes: [ReplayRun.Outcome],
        _ plan: ReplayPlan,
        server: String,
        failing: Set<Divergence.Class>
    ) {
        var report = DivergenceReport(
            command: "replay",
            recorded: plan.file,
            live: server,
            failingClasses: failing
        )
        for (index, outcome) in outcomes.enumerated() {
            for (number, client) in plan.script.clients.enumerated() {
                let divergences = outcome.divergences.filter { $0.client == number }
                guard client.role == .recorded || !divergences.isEmpty else { continue }
                let name = plan.name(of: client) + (outcomes.count > 1 ? ", copy \(index + 1)" : "")
                report.add(DivergenceReport.Case(name: name, divergences: divergences))
            }
            report.compared += outcome.progress.matched + outcome.divergences.count { $0.code == .changed }
            report.undecided += outcome.divergences.count { $0.code == .undecided }
        }
        for outcome in outcomes {
            report.add(times: outcome.progress.latencies, timeline: outcome.progress.timeline)
            report.add(outcome.optionalElements)
            report.omit(outcome.omitted)
        }
        let unsent = outcomes.lazy.flatMap(\.divergences).first { $0.code == .undecided && $0.live == nil }?.recorded
        placeholder = unsent.flatMap { Placeholder.all(in: Array($0.text.utf8).span).first }
        failures = outcomes.enumerated().compactMap { index, outcome in outcome.failure.map { (index + 1, $0) } }
        report.errors = failures.map { copy, failure in
            outcomes.count > 1 ? "copy \(copy): \(failure)" : failure.description
        }
        self.report = report
        file = plan.file
        dependences = plan.dependences
        progress = outcomes.map(\.progress)
    }

    /// Prints the report, preceded by the failures and followed by the number of stanzas that were sent. For several
    /// copies, also prints latencies and the timeline.
    func printSummary() {
        for line in progress.count > 1 ? failureLines : report.errors.map({ LineBuffer.escaped($0) }) {
            Console.print(line)
        }
        for line in report.lines(coloured: Paint.forOutput().isOn) { Console.print(line) }
        if let placeholder { Console.printEscaped(AdviceTable.missingValue(placeholder)) }
        Console.printEscaped("\(progress.map(\.sent).reduce(0, +)) stanzas sent")
        if progress.count > 1 { for line in report.latencyLines + report.timelineLines { Console.printEscaped(line) } }
    }

    /// The copies that did not reach their end: one line for each reason, ordered by the first copy.
    private var failureLines: [String] {
        let byReason = Dictionary(grouping: failures) { $0.failure.reason }
        return byReason.sorted { ($0.value.first?.copy ?? 0) < ($1.value.first?.copy ?? 0) }
            .map { reason, failures in
                let copies = "\(failures.count == 1 ? "copy" : "copies") \(Self.ranges(failures.map(\.copy)))"
                return LineBuffer.escaped("\(copies) not played to the end: \(reason)")
            }
    }

    /// Formats ascending numbers as ranges: `1, 3-5`.
    private static func ranges(_ numbers: [Int]) -> String {
        var ranges: [ClosedRange<Int>] = []
        for number in numbers {
            if let last = ranges.last, last.upperBound == number - 1 {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            .joined(separator: ", ")
    }

    /// Adds the sessions of this result to a report on several files.
    func add(to all: inout DivergenceReport) {
        for entry in report.cases {
            all.add(DivergenceReport.Case(name: "\(file): \(entry.name)", divergences: entry.divergences))
        }
        all.compared += report.compared
        all.undecided += report.undecided
        all.omit(report.omitted, mayFail: report.omittedMayFail)
        all.addFigures(of: report)
        all.errors += report.errors.map { "\(file): \($0)" }
    }

    /// Adds rules for the differences to the noise file beside the recording.
    func update() throws(Failure) {
        let path = NoiseFiles.path(beside: file)
        let (rules, unlearned) = try learn(into: path)
        if rules > 0 { Console.printDiagnostic("\(rules) rules added to \(path)") }
        if unlearned > 0 { Console.printDiagnostic(AdviceTable.unlearned(unlearned, path)) }
    }

    /// Whether the user interrupted the replay.
    var isInterrupted: Bool { failures.contains { $0.failure.code == .interrupted } }

    /// The size and the result of the comparison, as text.
    var summary: String { report.summary }

    /// Adds rules for the differences to a noise file.
    ///
    /// - Parameter onlyFailing: Whether to ignore differences that do not fail the replay.
    /// - Returns: The number of rules added, and the number of differences that noise rules cannot allow.
    func learn(into path: String, onlyFailing: Bool = false) throws(Failure) -> (rules: Int, unlearned: Int) {
        var learner = NoiseLearner()
        for divergence in report.cases.flatMap(\.divergences)
        where !onlyFailing || divergence.isOf(report.failingClasses) {
            learner.learn(divergence)
        }
        if !learner.rules.isEmpty { try NoiseFiles.add(learner.rules, to: path) }
        return (learner.rules.count, learner.unlearned.count)
    }

    /// Throws the exit status; does nothing on success.
    func end() throws(Failure) {
        try checkPlayed()
        if report.hasFailed { throw .reported(.checkFailed) }
    }

    /// Throws a failure if a copy did not reach its end.
    func checkPlayed() throws(Failure) {
        if let (_, failure) = failures.first, let error = report.errors.first {
            let others = failures.count > 1 ? " (and \(failures.count - 1) more)" : ""
            let advice = AdviceTable.advice(for: failure.code).map { "; \($0)" } ?? ""
            // Text from a server may end with a full stop.
            let message = error.hasSuffix(".") ? error.dropLast() : error[...]
            throw Failure(status: ExitStatus(failure.code), message: message + others + advice)
        }
    }
}

extension ExitStatus {
    /// Creates the exit status of a replay that did not reach its end.
    fileprivate init(_ code: ReplayRun.Failure.Code) {
        self =
            switch code {
            case .unreachable: .network
            case .untrusted, .silent, .incomplete, .notAuthorized, .other: .preparation
            case .interrupted: .checkFailed
            }
    }
}
