internal import TapCapture
internal import TapControl
internal import TapCore
internal import TapRecord
internal import TapReplay
internal import TapSecurity

/// A page with its records as one file, which needs no server.
///
/// The browser runs only the script whose hash the page names, and loads nothing. The records are compressed, in base64,
/// so that no text from the wire can end the element that contains them.
struct PageFile {
    /// Maximum size of the records of a page, before compression.
    static let maximumSize = 50 << 20
    /// Maximum number of sessions that are listed for browsers without scripts.
    private static let maximumLines = 1000

    private var table = RecordTable()
    /// The names of the files. Their folders are not for the readers of the page.
    private let files: [String]
    private let sessions: Set<UInt64>
    private let view: View
    private var report: DivergenceReport?
    private var hasBothSides = false
    /// Why a report has no records; nil if it has them.
    private(set) var omission: String?

    /// The view that a page shows first.
    enum View: String {
        case records, diagram, report
    }

    /// Creates a page without records.
    ///
    /// - Parameters:
    ///   - sessions: The sessions to show; empty for all.
    ///   - view: The view that is shown first.
    init(of files: [String], sessions: Set<UInt64>, view: View) {
        self.files = files.map(FileName.last)
        self.sessions = sessions
        self.view = view
    }

    /// A recording of a report.
    struct Recording {
        let files: [String]
        /// The compared sessions, of which the page has the records; empty for all.
        let sessions: Set<UInt64>
    }

    /// Creates the page of a report, with the records of the recordings if they fit; otherwise ``omission`` says why it has
    /// none.
    ///
    /// - Parameter recordings: The recording of each side.
    init(_ report: DivergenceReport, of recordings: [Recording], keys: KeyLog) {
        let names = recordings.map { $0.files.map(FileName.last).joined(separator: ", ") }
        var report = report
        if let first = names.first { report.recorded = first }
        if names.count > 1 { report.live = names[1] }
        self.init(of: [report.recorded, report.live], sessions: [], view: .report)
        self.report = report
        hasBothSides = recordings.count > 1
        do throws(ReaderFault) {
            try add(recordings, keys)
            guard !fits else { return }
            let most = "\(Self.maximumSize >> 20) MiB"
            omission = "the records are larger than \(most) and are left out; choose sessions with --session"
        } catch {
            omission = "the records are left out, because \(FileName.last(of: error.path)) cannot be read again"
        }
        table = RecordTable()
    }

    /// Adds the records of both sides. Those of a recording that is compared with itself are added once.
    private mutating func add(_ recordings: [Recording], _ keys: KeyLog) throws(ReaderFault) {
        var sides = recordings
        if let first = sides.first, sides.allSatisfy({ $0.files == first.files }) {
            let all = sides.allSatisfy { !$0.sessions.isEmpty }
            let sessions = all ? sides.reduce(into: Set()) { $0.formUnion($1.sessions) } : []
            sides = [Recording(files: first.files, sessions: sessions)]
        }
        var runs: Set<String> = []
        for side in sides where fits {
            var own: Set<String> = []
            let reader = try RecordReader(side.files, keys: keys, zone: .system)
            let reanalysis = CaptureReanalyzer(reader)
            while fits, var entry = try reanalysis.next() {
                if case .header(var header) = entry {
                    own.insert(header.run)
                    // A copy of the other side's file has other sessions, so that no figure is counted twice.
                    while runs.contains(header.run) { header.run += "'" }
                    entry = .header(header)
                }
                add(entry, side.sessions)
            }
            runs.formUnion(own)
        }
    }

    /// Number of records.
    var count: Int { table.range.count }

    /// Whether the records fit a page.
    var fits: Bool { table.byteCount <= Self.maximumSize }

    /// Adds an entry of a recording; does nothing if there are too many already.
    func add(_ entry: RecordReader.Entry) { add(entry, sessions) }

    private func add(_ entry: RecordReader.Entry, _ sessions: Set<UInt64>) {
        guard fits else { return }
        if case .record(let line) = entry, !sessions.isEmpty, !sessions.contains(line.record.session) { return }
        table.append(entry)
    }

    /// Writes the page of a report to a file, and says if it has no records.
    func write(to path: String) throws(Failure) {
        try OutputText.write(drawn(), to: path)
        if let omission { Console.printDiagnostic("\(path == "-" ? "the page" : path): \(omission)") }
    }

    /// Returns the page.
    ///
    /// - Throws: A ``Failure`` if the records do not fit.
    func drawn() throws(Failure) -> String {
        guard fits else {
            throw .usage(
                "the records are larger than \(Self.maximumSize >> 20) MiB, too large for a page; choose sessions with "
                    + "--session, or see all with 'xmpptap view'"
            )
        }
        let title = files.joined(separator: ", ")
        var subject = Inspection.Subject(
            title: title,
            files: files,
            tool: TapRun.tool,
            isLive: false,
            redaction: RedactionPolicy.secrets.rawValue
        )
        let words = files.map { ShellWords.quoted($0.hasPrefix("-") ? "./\($0)" : $0) }.joined(separator: " ")
        if !files.contains("-") { subject.recording = { Inspection.Recording(words: words) } }
        let inspection = Inspection(subject, run: "file", table)
        if let omission { inspection.setTrouble("This page has no records: \(omission).") }
        guard let compressor = Compressor(.gzip) else {
            throw Failure(status: .checkFailed, message: "zlib cannot compress; see 'xmpptap doctor'")
        }
        let records = inspection.export(
            build: PageAssets.build,
            view: view.rawValue,
            report: report?.page(hasBoth: hasBothSides)
        )
        guard var packed = compressor.compress(records.span.bytes) else {
            throw Failure(status: .checkFailed, message: "the memory does not suffice to compress the page")
        }
        packed += compressor.finish()
        let texts = report?.lines(coloured: false) ?? inspection.sessionLines(limit: Self.maximumLines)
        let lines = texts.map { "<p>\(HTMLText.escaped($0))</p>\n" }
        let data = LineBuffer.text { $0.append(base64: packed.span.bytes) }
        let (style, script) = (PageAssets.style.text, PageAssets.bundle)
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '\(try Self.hash(script))'; \
            style-src '\(try Self.hash(style))'; img-src data: blob:; base-uri 'none'; form-action 'none'; \
            require-trusted-types-for 'script'; trusted-types 'none'">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(HTMLText.escaped(title)) – xmpptap</title>
            <link rel="icon" href="data:,">
            <style>\(style)</style>
            </head>
            <body>
            <noscript>
            <h1>xmpptap</h1>
            <p>This page of \(HTMLText.escaped(TapRun.tool)) needs JavaScript to show the records of these sessions.</p>
            \(lines.joined())</noscript>
            <script type="text/plain" id="data">\(data)</script>
            <script type="module">\(script)</script>
            </body>
            </html>

            """
    }

    /// Returns the hash of an inline script or style for the policy of the page.
    private static func hash(_ text: String) throws(Failure) -> String {
        let bytes = Array(text.utf8)
        guard let digest = try? OpenSSLCryptography().digest(.sha256, of: bytes.span) else {
            throw Failure(status: .checkFailed, message: "OpenSSL cannot compute a hash; see 'xmpptap doctor'")
        }
        return "sha256-" + LineBuffer.text { $0.append(base64: digest.span.bytes) }
    }
}
