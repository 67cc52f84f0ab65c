internal import TapRecord

/// Reads all entries of files, and collects what commands report about them at the end.
package struct StoredEntries {
    /// The sessions and runs in the files.
    package private(set) var found = SessionsFound()
    /// Messages about packets that could not be read.
    package private(set) var packetMessages: [String] = []
    /// Messages about client logs that were understood in part.
    package private(set) var logMessages: [String] = []
    /// The sessions whose TLS could not be decrypted.
    package private(set) var undecrypted: Set<UInt64> = []

    package init() {}

    /// Calls `body` with each entry, in the order in which they were written.
    ///
    /// - Parameters:
    ///   - reader: The files.
    ///   - isReanalysed: Whether complete captures are decoded again.
    ///   - onFault: Called with each skipped line and each gap, before `body`.
    ///   - onProgress: Called regularly.
    /// - Throws: ``ReaderFault`` if a file becomes unreadable.
    package mutating func read(
        _ reader: RecordReader,
        isReanalysed: Bool,
        onFault: (RecordReader.Entry) -> Void,
        onProgress: () -> Void,
        _ body: (RecordReader.Entry) -> Void
    ) throws(ReaderFault) {
        let reanalysis = isReanalysed ? CaptureReanalyzer(reader) : nil
        var count = 0
        while let entry = reanalysis == nil ? try reader.next() : try reanalysis?.next() {
            switch entry {
            case .damage, .gap: onFault(entry)
            case .header(let header): found.add(run: header.run)
            case .record(let line):
                found.add(session: line.record.session)
                collect(line.record)
            }
            body(entry)
            count &+= 1
            if count.isMultiple(of: 1024) { onProgress() }
        }
    }

    private mutating func collect(_ record: borrowing Record) {
        switch record.code {
        case "packets-read" where record.level <= .warn: packetMessages += record.message.map { ["\($0)"] } ?? []
        case Record.Code.logUnderstoodInPart: logMessages += record.message.map { ["\($0)"] } ?? []
        case "no-secret": undecrypted.insert(record.session)
        default: break
        }
    }
}
