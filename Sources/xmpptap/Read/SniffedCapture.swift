internal import TapCapture
internal import TapCore
internal import TapRecord
internal import TapSecurity

/// The capture that `sniff` writes in addition to its output.
struct SniffedCapture {
    /// The file.
    let sink: LogSink
    private let name: String
    private let path: CapturePath

    /// Opens the file of `--capture`.
    ///
    /// - Parameters:
    ///   - path: The file or folder, as typed.
    ///   - header: The header for the captured records.
    init(_ path: String, _ trigger: CaptureTrigger?, of header: RecordHeader) throws(Failure) {
        try CapturePath.check(path)
        guard !CapturePath.isPerSession(path) else {
            throw .usage("--capture: sniff writes one file for all sessions; leave %s and %j out")
        }
        guard let word = try? OpenSSLCryptography().randomBytes(count: 8) else {
            throw Failure(status: .checkFailed, message: "OpenSSL cannot generate random numbers; see 'xmpptap doctor'")
        }
        var log = LogPlan.Log(path: path, form: .json, spec: LogSpec(level: .verbose), flag: "--capture")
        log.trigger = trigger
        log.appends = false
        name = path
        var configuration = OpenLogs.configuration(log)
        configuration.writer.appends = false
        self.path = CapturePath(path, time: header.time)
        configuration.destination = self.path.destination
        configuration.isPartial = true
        let run = LoggedRun(
            tool: TapRun.tool,
            word: word.hexadecimal,
            redaction: header.redaction,
            run: Run(),
            now: { Run.Instant(time: header.time, monotonic: 0) }
        )
        do throws(WriterFault) {
            sink = try LogSink(configuration, run: run) { [log] in OpenLogs.report($0, of: log) }
        } catch {
            throw .file("--capture: \(error)")
        }
    }

    /// Writes all records, closes the file, and prints its name and the command that explains it.
    ///
    /// - Throws: A ``Failure`` if records were lost.
    func close() throws(Failure) {
        let lost = sink.close(within: .seconds(60))
        OpenLogs.printCapture(name, path, sink.counters)
        guard lost.isEmpty else { throw .file("--capture: \(lost.records) records could not be written to \(name)") }
    }
}
