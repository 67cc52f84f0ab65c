internal import Glibc
package import TapDiagnosis
package import TapRecord
package import TapSecurity

/// Files, and the ``RecordTable`` of their records.
///
/// The records are those that a diagnosis of the files has: complete captures are decoded again.
package final class RecordFiles {
    /// The size of a capture from which on its records are shown as they were recorded, because those that are made
    /// again are stored in a temporary file.
    package static let usualReanalysedBytes: UInt64 = 1 << 30

    /// The header of the first file.
    package var header: RecordHeader { reader.firstHeader }
    /// The table of the records.
    package let table: RecordTable
    private let reader: RecordReader
    private let path: String

    /// Opens files and reads their first headers; see ``RecordReader``.
    ///
    /// - Parameter reanalysedBytes: Maximum size of a single capture that is decoded again.
    package init(
        _ paths: [String],
        advice: Advice? = nil,
        keys: KeyLog = KeyLog(),
        redaction: RedactionPolicy = .secrets,
        zone: LocalZone = .utc,
        reanalysedBytes: UInt64 = usualReanalysedBytes
    ) throws(ReaderFault) {
        reader = try RecordReader(paths, advice: advice, keys: keys, redaction: redaction, zone: zone)
        let files = try CaptureFolder.files(of: paths)
        path = files.first ?? "-"
        // The lines of a single file are not copied, unless they are made again.
        var descriptor: Int32 = -1
        if files.count == 1, !reader.firstHeader.isComplete || Self.size(of: path) > reanalysedBytes {
            descriptor = Self.plainFile(path)
        }
        table = RecordTable(spills: descriptor < 0, descriptor: descriptor)
        if descriptor >= 0, reader.firstHeader.isComplete {
            table.append(
                StoredLine.Remark(
                    .header,
                    "the capture is larger than \(reanalysedBytes >> 20) MiB: its records are shown as they were recorded, and "
                        + "are not decoded again"
                )
            )
        }
    }

    private static func size(of path: String) -> UInt64 {
        FileStatus(path: path).flatMap { $0.isRegular ? $0.size : nil } ?? 0
    }

    /// Opens a regular file that begins with a header of a JSON log or capture and is not compressed; -1 if it is
    /// another one.
    private static func plainFile(_ path: String) -> Int32 {
        guard path != "-" else { return -1 }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        var status = stat()
        let beginning = Array("{\"xtap\":".utf8)
        var bytes = [UInt8](repeating: 0, count: beginning.count)
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            pread(descriptor, &bytes, bytes.count, 0) == bytes.count, bytes == beginning
        else {
            close(descriptor)
            return -1
        }
        return descriptor
    }

    /// Reads all records, and reports the progress to the inspection.
    ///
    /// - Parameter goesOn: Returns whether to continue.
    package func load(_ inspection: Inspection, while goesOn: () -> Bool) {
        if table.descriptor >= 0 {
            var status = stat()
            fstat(table.descriptor, &status)
            var index = CaptureIndex(table, of: FileName.last(of: path))
            let fault = index.read { read in
                inspection.setProgress(read, of: UInt64(clamping: max(Int(status.st_size), Int(read))))
                return goesOn()
            }
            if fault != 0 {
                inspection.setTrouble("\(ReaderFault(code: .cannotRead(errno: fault), path: path))")
            }
            return
        }
        let reanalysis = CaptureReanalyzer(reader)
        var count = 0
        do throws(ReaderFault) {
            while let entry = try reanalysis.next() {
                table.append(entry)
                count &+= 1
                guard count.isMultiple(of: 256) else { continue }
                if let progress = reader.progress { inspection.setProgress(progress.read, of: progress.size) }
                if let fault = table.spillFault { return inspection.setTrouble(fault) }
                guard goesOn() else { return }
            }
        } catch {
            inspection.setTrouble("\(error)")
        }
        if let progress = reader.progress { inspection.setProgress(progress.size, of: progress.size) }
    }
}
