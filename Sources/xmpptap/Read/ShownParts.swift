internal import TapCapture
internal import TapRecord

/// Writes the parts of the files, each after its header, so that the output can be read like the files: the header
/// names the run of a session, and the missing parts.
struct ShownParts {
    private let plan: ReadPlan
    private let sink: LogSink
    /// The header that was written last.
    private var header: RecordHeader?
    /// The records that were written of each log up to that header, and since.
    private var counts: [LogIdentity: UInt64] = [:]
    private var count: UInt64 = 0
    /// The runs of which something is missing.
    private var torn: Set<String> = []
    /// Records are missing before the next header.
    private var hasGap = false

    init(_ plan: ReadPlan, _ sink: LogSink) {
        self.plan = plan
        self.sink = sink
    }

    /// Begins the records of a header in a file. The text form shows the header only if another run begins.
    mutating func begin(_ header: RecordHeader, of file: String) {
        if hasGap { torn.insert(header.run) }
        hasGap = false
        let isOtherRun = self.header.map { $0.run != header.run } ?? false
        write(
            plan.header(of: header, isWhole: !torn.contains(header.run)),
            isShown: plan.output.form == .json || isOtherRun,
            file: plan.files.count > 1 ? file : nil
        )
    }

    mutating func show(_ record: RecordLine) {
        if sink.write(record) { count += 1 }
    }

    /// Records are missing before the header that comes next.
    mutating func noteGap() { hasGap = true }

    /// A line of the run was passed over: it is not complete from here on.
    mutating func noteDamage() {
        guard var header, torn.insert(header.run).inserted, header.isComplete else { return }
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
