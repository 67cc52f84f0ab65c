import Glibc
import TapCapture
import TapCore
import TapDiagnosis
import TapRecord
import XMPPCore

/// Reads an input as a file of any kind: the stored records, and those that are derived again.
enum FileTarget {
    static func run(_ input: [UInt8]) -> String? {
        guard let path = file(of: input) else { return nil }
        do throws(ReaderFault) {
            let reader = try RecordReader([path])
            let contradiction = try read(reader)
            // A file in another format has only derived records.
            guard contradiction == nil, !reader.isForeign else { return contradiction }
            return try readAnew(CaptureReanalyzer(try RecordReader([path])))
        } catch {
            return error.description.isEmpty ? "a fault without words" : nil
        }
    }

    /// A file in memory, which is rewritten for each input.
    private static let descriptor: CInt = {
        var name = Array("/dev/shm/xmpptap-fuzzer-XXXXXX".utf8CString)
        defer { unlink(name) }
        return mkstemp(&name)
    }()

    private static func file(of input: [UInt8]) -> String? {
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, input, input.count, 0) == input.count else {
            return nil
        }
        return "/proc/self/fd/\(descriptor)"
    }

    private static func read(_ reader: RecordReader) throws(ReaderFault) -> String? {
        var views = Views()
        while let entry = try reader.next() {
            if let contradiction = views.take(entry) { return contradiction }
        }
        return views.contradiction()
    }

    private static func readAnew(_ reanalysis: CaptureReanalyzer) throws(ReaderFault) -> String? {
        var views = Views()
        while let entry = try reanalysis.next() {
            if let contradiction = views.take(entry) { return contradiction }
        }
        return views.contradiction()
    }
}

/// All outputs that are made from the records of files.
private struct Views: ~Copyable {
    private var check = RecordCheck()
    private var records: UInt64 = 0
    private var statistics = RecordStatistics()
    private var overview = SessionOverview()
    private var timelines = SessionTimelines()
    private var subscriptions = SubscriptionHistory()
    private var diagrams = SequenceDiagrams(of: [])

    /// Processes an entry; returns the contradiction in it, if any.
    mutating func take(_ entry: RecordReader.Entry) -> String? {
        switch entry {
        case .record(let line):
            records += 1
            statistics.add(line)
            overview.add(line, isChosen: true)
            timelines.add(line.record)
            subscriptions.add(line.record)
            diagrams.add(line)
            return check.contradiction(line)
        case .header(let header):
            overview.add(header)
            timelines.add(header)
            subscriptions.add(header)
            diagrams.add(header)
            return nil
        case .damage(let damage): return damage.description.isEmpty ? "damage without words" : nil
        case .gap(let missing): return missing.description.isEmpty ? "a gap without words" : nil
        }
    }

    /// The contradiction in the output, if any.
    func contradiction() -> String? {
        let times = statistics.roundTrips
        let parts: [UInt64] = [0, 50, 95, 100]
        let percentiles = parts.map(times.percentile)
        if percentiles != percentiles.sorted() || percentiles.contains(where: { $0 > times.longest }) {
            return "round trips of \(percentiles) ns, the longest of \(times.longest)"
        }
        if statistics.records != records { return "\(statistics.records) of \(records) records counted" }
        if overview.all.count != timelines.all.count { return "sessions are counted in two ways" }
        _ = DiagramForm().draw(diagrams.all)
        return nil
    }
}
