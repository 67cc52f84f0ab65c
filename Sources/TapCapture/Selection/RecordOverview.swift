package import TapDiagnosis
internal import TapRecord

/// The sessions or the statistics of the selected records.
package struct RecordOverview {
    /// The kind of overview that is made.
    package enum Subject { case sessions, statistics }

    package let subject: Subject
    /// The selected records.
    package var selection: RecordSelection
    /// The sessions; empty if ``subject`` is `statistics`.
    package private(set) var sessions = SessionOverview()
    /// The statistics; empty if ``subject`` is `sessions`.
    package private(set) var statistics = RecordStatistics()

    package init(_ subject: Subject, of selection: RecordSelection) {
        self.subject = subject
        self.selection = selection
    }

    /// Adds an entry of the files.
    package mutating func add(_ entry: RecordReader.Entry) {
        switch entry {
        case .header(let header): sessions.add(header)
        case .record(let line):
            let isSelected = selection.includes(line)
            switch subject {
            case .sessions: sessions.add(line, isChosen: isSelected)
            case .statistics: if isSelected { statistics.add(line) }
            }
        case .damage, .gap: break
        }
    }
}
