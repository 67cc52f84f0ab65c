internal import TapCapture
internal import TapRecord

/// Writes the records of each file after its header, so that the output can be read like the files: the header
/// identifies the run, and says whether records are missing.
struct ShownParts {
    private let plan: ReadPlan
    private let sink: LogSink
    /// The last header that was written.
    private var header: RecordHeader?
    /// The number of records written for each log up to the last header, and since then.
    private var counts: [LogIdentity: UInt64] = [:]
    private var count: UInt64 = 0
    /// The runs of which records are missing.
    private var incompleteRuns: Set<String> = []
    /// Whether records are missing before the next header.
    private var hasGap = false

    init(_ plan: ReadPlan, _ sink: LogSink) {
        self.plan = plan
        self.sink = sink
    }

    /// Starts the records of a header. In the text form, the header is shown only if the run changes.
    mutating func begin(_ header: RecordHeader, of file: String) {
        if hasGap { incompleteRuns.insert(header.run) }
        hasGap = false
        let isOtherRun = self.header.map { $0.run != header.run } ?? false
        write(
            plan.header(of: header, isWhole: !incompleteRuns.contains(header.run)),
            isShown: plan.output.form == .json || isOtherRun,
            file: plan.files.count > 1 ? file : nil
        )
    }

    /// Adds the number of records that were written since the last call.
    mutating func add(_ count: UInt64) { self.count += count }

    /// Records that records are missing before the next header.
    mutating func recordGap() { hasGap = true }

    /// Records that a line was skipped, so that the run is incomplete from here on.
    mutating func recordDamage() {
        guard var header, incompleteRuns.insert(header.run).inserted, header.isComplete else { return }
        header.isComplete = false
        write(header, isShown: plan.output.form == .json)
    }

    private mutating func write(_ header: RecordHeader, isShown: Bool, file: String? = nil) {
        if let last = self.header { counts[LogIdentity(last), default: 0] += count }
        count = 0
        var header = header
        header.recordsBefore = counts[LogIdentity(header)] ?? 0
        self.header = header
        if isShown { sink.write(header: header, file: file) }
    }
}
