internal import TapCapture

/// All that files hold, for commands that look at the whole of it before they say anything.
enum StoredRecords {
    /// Gives out every entry of the files, in the order in which they were written: of complete captures the records that
    /// today's code makes of their items, else those that are stored. Damaged and missing lines are reported and skipped.
    ///
    /// - Parameter files: JSON logs, captures or clients' logs; `-` is standard input.
    /// - Returns: Whether every line was read, but those where writing was interrupted.
    /// - Throws: A ``Failure`` that names the file that cannot be read.
    static func read(_ files: [String], _ body: (RecordReader.Entry) -> Void) throws(Failure) -> Bool {
        var isWhole = true
        do throws(ReaderFault) {
            let reader = Reanalysis(try RecordReader(files, advice: AdviceTable.words(for:)))
            while let entry = try reader.next() {
                switch entry {
                case .damage(let line):
                    Console.complain("\(line)")
                    isWhole = isWhole && line.isInterruption
                case .gap(let gap): Console.complain("\(gap)")
                case .header, .record: break
                }
                body(entry)
            }
        } catch {
            throw .file(error.description)
        }
        return isWhole
    }
}
