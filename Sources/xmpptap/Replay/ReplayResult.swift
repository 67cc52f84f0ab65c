internal import TapNetwork
internal import TapRecord
internal import TapReplay

/// What came of a replay: shown, written, and as an exit code.
struct ReplayResult {
    private let report: DivergenceReport
    private let progress: [Replayer.Progress]
    private let failures: [ReplayRun.Failure]

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
            for client in plan.script.clients where !client.isPuppet {
                report.cases.append(
                    DivergenceReport.Case(
                        name:
                            "session \(client.session) \(client.jid)\(outcomes.count > 1 ? ", copy \(index + 1)" : "")",
                        divergences: outcome.divergences.filter {
                            ($0.recorded?.session ?? $0.live?.session) == client.session
                        }
                    )
                )
            }
            report.compared += outcome.progress.matched + outcome.divergences.count { $0.code == .changed }
            report.undecided += outcome.divergences.count { $0.code == .undecided }
        }
        self.report = report
        progress = outcomes.map(\.progress)
        failures = outcomes.compactMap(\.failure)
    }

    /// Prints the report, and writes it where the command wants it.
    func show(_ command: ReplayCommand) throws(Failure) {
        if command.json {
            Console.print(report.json())
        } else {
            for line in report.lines(coloured: Paint.forOutput.isOn) { Console.print(line) }
            Console.show("\(progress.map(\.sent).reduce(0, +)) stanzas sent")
            if progress.count > 1 { for line in latencies() { Console.show(line) } }
        }
        if let junit = command.junit { try OutputText.write(report.junit(), to: junit) }
        if let page = command.report { try OutputText.write(report.html(), to: page) }
    }

    /// The time that answers took, by the kind of the request.
    private func latencies() -> [String] {
        var all: [String: [Int64]] = [:]
        for copy in progress { all.merge(copy.latencies) { $0 + $1 } }
        return all.sorted { $0.key < $1.key }.map { kind, times in
            let sorted = times.sorted()
            func percentile(_ share: Int) -> String {
                LineBuffer.duration(sorted[min(sorted.count - 1, sorted.count * share / 100)])
            }
            return
                "\(kind): \(times.count) answers, p50 \(percentile(50)), p95 \(percentile(95)), p99 \(percentile(99)), "
                + "most \(percentile(100))"
        }
    }

    /// Adds what differed to a noise file.
    func learn(into path: String) throws(Failure) {
        var learner = NoiseLearner()
        for divergence in report.cases.flatMap(\.divergences) { learner.learn(divergence) }
        guard !learner.rules.isEmpty else { return }
        try NoiseFiles.add(learner.rules, to: path)
        Console.complain("\(learner.rules.count) rules added to \(path)")
    }

    /// Throws the exit code.
    func end() throws(Failure) {
        if let failure = failures.first {
            let others = failures.count > 1 ? " (and \(failures.count - 1) more)" : ""
            throw Failure(status: failure.isOfNetwork ? .network : .preparation, message: failure.description + others)
        }
        if report.hasFailed { throw .reported(.checkFailed) }
    }
}
