internal import Glibc

/// The part of a ``RecordWriter`` that runs on the writer thread: writes batches, opens, rotates and reopens the
/// file, and retries if writing fails. Used only by that thread once it has started.
final class WriterLoop {
    private let queue: RecordQueue
    private var files: FileSeries
    private let options: RecordWriter.Options
    private let lines: RecordWriter.Lines
    private let onEvent: @Sendable (RecordWriter.Event) -> Void

    private var output: OutputFile
    /// A header that is written before the rest of the batch; empty if there is none.
    private var prologue: [UInt8] = []
    private var prologueWritten = 0
    private var batch = RecordQueue.Batch()
    private var chain: HashChain?
    /// The number of bytes of the batch that are written, and the number of complete records among them.
    private var written = 0
    private var wholeRecords = 0
    /// The index in the batch of a header, which does not count as a record; and the number of records written so
    /// far.
    private var headerPlace: Int?
    private var records: UInt64 = 0
    /// Whether the open file has content other than this writer's header, so that it may be rotated.
    private var hasRecord: Bool
    private var isFailing = false
    /// The time since which the sources are paused, if the pause was reported; otherwise nil.
    private var stalledSince: Int64?
    /// The size in bytes at which the file is rotated. It is increased after a rotation has failed.
    private var rotationSize: UInt64
    /// The time at which the open file is old enough to be rotated, on the clock of ``Monitor``.
    private var rotationTime: Int64
    /// The time at which the open file is next compared with its path, on the clock of ``Monitor``.
    private var checkTime = Int64.max
    /// Whether the path named another file, or none, at the last check.
    private var wasMoved = false
    /// Whether it was reported that a new file cannot be opened after the open one was moved.
    private var hasReportedMove = false
    /// The complete records that this writer has written to the open file; they are lost if it is deleted.
    private var recordsInFile = RecordWriter.Loss()
    /// The records in deleted files that the new file does not report yet, and those that no event has reported yet.
    private var unwrittenLoss = RecordWriter.Loss()
    private var unreportedLoss = RecordWriter.Loss()

    /// Opens the destination and writes the header of a file, so that errors are thrown at the start.
    init(
        queue: RecordQueue,
        destination: RecordWriter.Destination,
        options: RecordWriter.Options,
        lines: RecordWriter.Lines,
        onEvent: @escaping @Sendable (RecordWriter.Event) -> Void
    ) throws(WriterFault) {
        self.queue = queue
        self.options = options
        self.lines = lines
        self.onEvent = onEvent
        files = FileSeries(destination, options.rotation)
        output = try files.open()
        files.prune()
        if !options.appends, output.kind == .file, output.size > 0 { throw WriterFault(.exists, output.path) }
        hasRecord = output.size > 0
        rotationSize = options.rotation?.size ?? .max
        rotationTime = Self.rotationTime(options)
        if options.hasChain { chain = HashChain() }
        scheduleCheck()
        prepareHeader(output.size > 0 ? .append : .start)
        guard output.kind == .file || output.kind == .device else { return }
        while prologueWritten < prologue.count {
            switch attempt(prologue, from: prologueWritten, to: prologue.count) {
            case .bytes(let count): advance(count)
            case .blocked: return
            case .failed(let cause): throw WriterFault.writing(output.path, cause, isTerminal: output.isTerminal)
            }
        }
    }

    /// The thread's body: returns when the writer is closed.
    func run() {
        queue.begin()
        writeBatch()
        while true {
            let interval = output.isTerminal ? options.terminalFlushInterval : options.flushInterval
            let requests = queue.dequeue(&batch, interval: interval.wholeNanoseconds, until: checkTime)
            written = 0
            wholeRecords = 0
            let isAsked = requests.reopens || requests.closes || requests.name != nil
            let isReplaced = (isAsked || Monitor.now >= checkTime) && replaceIfGone(isAsked: isAsked)
            sealBatch()
            writeBatch()
            if let chain { queue.store(chain: chain.head) }
            if let name = requests.name, output.isInPlace, let path = files.rename(to: name) { output.rename(to: path) }
            if requests.reopens, !requests.closes, !isReplaced {
                reopen()
                writeBatch()
            }
            if let chain { queue.store(chain: chain.head) }
            guard requests.closes else { continue }
            if replaceIfGone(isAsked: true) {
                sealBatch()
                writeBatch()
                if let chain { queue.store(chain: chain.head) }
            }
            output.finish()
            // The file has only a header: `hasRecord` would be true if the file had content when it was opened.
            if requests.removesUnused, !hasRecord, output.kind == .file, output.isInPlace { unlink(output.path) }
            if queue.end() { return }
        }
    }

    /// Adds the hash chain to a batch of which nothing is written yet.
    private func sealBatch() {
        // Count the added bytes as bytes to be written.
        if let growth = chain?.seal(&batch), growth > 0 { _ = queue.progress(bytes: -growth, records: 0) }
    }

    // MARK: - Writing

    /// Writes the pending header and the batch completely, unless writing fails permanently.
    private func writeBatch() {
        guard output.isTerminal, !prologue.isEmpty || !batch.bytes.isEmpty, let onWriting = lines.onWriting else {
            return writeLines()
        }
        onWriting(true)
        defer { onWriting(false) }
        writeLines()
    }

    private func writeLines() {
        // Only written data shows that a file which failed before can be written again.
        var hasWritten = false
        while true {
            while prologueWritten < prologue.count || written < batch.bytes.count {
                guard !queue.isAbandoned else { return giveUp(forEver: true) }
                guard writeSome() else { return }
                hasWritten = true
            }
            if options.syncs, hasWritten, case let cause = output.synchronize(), cause != 0 {
                guard persist(after: cause) else { return }
                continue
            }
            batch.clear()
            written = 0
            wholeRecords = 0
            headerPlace = nil
            guard isFailing, hasWritten else { return }
            recover()
        }
    }

    /// Writes the next part of the header or of the batch, or rotates the file.
    ///
    /// - Returns: Whether to continue.
    private func writeSome() -> Bool {
        let result: OutputFile.Written
        if prologueWritten < prologue.count {
            result = attempt(prologue, from: prologueWritten, to: prologue.count)
        } else {
            guard let end = endOfWrite() else {
                rotate()
                return true
            }
            result = attempt(batch.bytes, from: written, to: end)
        }
        // Report a stall before the written bytes are counted: a write to a disk that hangs takes long, but then
        // succeeds.
        reportStall()
        switch result {
        case .bytes(let count): advance(count)
        case .blocked: break
        case .failed(let cause): return persist(after: cause)
        }
        reportFlow()
        return true
    }

    private func reportStall() {
        guard stalledSince == nil, let since = queue.congestedSince,
            Monitor.now - since >= options.stallNotice.wholeNanoseconds
        else { return }
        stalledSince = since
        onEvent(.stalled)
    }

    private func reportFlow() {
        guard let since = stalledSince, queue.congestedSince != since else { return }
        stalledSince = nil
        onEvent(.flowing(after: .nanoseconds(Monitor.now - since)))
    }

    private func attempt(_ bytes: [UInt8], from start: Int, to end: Int) -> OutputFile.Written {
        bytes.withUnsafeBytes { output.write(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
    }

    private func advance(_ count: Int) {
        guard prologueWritten >= prologue.count else {
            prologueWritten += count
            if prologueWritten >= prologue.count { chain?.commitHeader() }
            return
        }
        written += count
        let before = wholeRecords
        while wholeRecords < batch.ends.count, batch.ends[wholeRecords] <= written { wholeRecords += 1 }
        if wholeRecords > before { chain?.commit(lines: wholeRecords) }
        let headers = headerPlace.map { (before..<wholeRecords).contains($0) ? 1 : 0 } ?? 0
        records &+= UInt64(wholeRecords - before - headers)
        if wholeRecords > before {
            let start = before == 0 ? 0 : batch.ends[before - 1]
            recordsInFile.add(records: wholeRecords - before - headers, bytes: recordStart - start)
        }
        hasRecord = hasRecord || count > 0
        if queue.progress(bytes: count, records: wholeRecords - before, headers: headers) { onEvent(.room) }
    }

    /// The offset in the batch of the record that is being written.
    private var recordStart: Int { wholeRecords == 0 ? 0 : batch.ends[wholeRecords - 1] }

    /// Returns the offset in the batch up to which it fits into the open file; nil if the file must be rotated first.
    private func endOfWrite() -> Int? {
        guard output.kind == .file, options.rotation != nil else { return batch.bytes.count }
        // A record is not split between files.
        guard written == recordStart, !output.isWithinWrite else { return batch.ends[wholeRecords] }
        if isOld { return nil }
        var size = output.size
        var end = written
        for next in batch.ends[wholeRecords...] {
            size += UInt64(next - end)
            guard size <= rotationSize else { break }
            end = next
        }
        if end > written { return end }
        // The next record does not fit. Rotating helps only if this file has a record; otherwise write the record
        // anyway.
        return hasRecord ? nil : batch.ends[wholeRecords]
    }

    /// Whether the open file has a record and has reached the age at which it is rotated.
    private var isOld: Bool { hasRecord && Monitor.now >= rotationTime }

    private static func rotationTime(_ options: RecordWriter.Options) -> Int64 {
        options.rotation?.age.map { Monitor.now + $0.wholeNanoseconds } ?? .max
    }

    private func giveUp(forEver: Bool) {
        queue.giveUp(
            records: batch.ends.count - wholeRecords,
            bytes: batch.bytes.count - recordStart,
            forEver: forEver
        )
        batch.clear()
        chain?.giveUp()
        prologue = []
        prologueWritten = 0
        written = 0
        wholeRecords = 0
        headerPlace = nil
    }

    // MARK: - Failing and recovering

    /// Handles a failed write: waits, and reopens the destination if that may help.
    ///
    /// - Returns: Whether to try again; false if everything was dropped.
    private func persist(after cause: Int32) -> Bool {
        let fault = WriterFault.writing(output.path, cause, isTerminal: output.isTerminal)
        beginFailing(fault)
        let isHopeless = !output.canReopen && fault.code != .diskFull
        if isHopeless || queue.isClosing {
            giveUp(forEver: true)
            return false
        }
        let requests = queue.pause(until: Monitor.now + options.retryInterval.wholeNanoseconds)
        // If the disk was full, the open file may be writable again. Other failures require the file to be reopened.
        let needsReopening = fault.code != .diskFull || (output.kind == .file && !output.isInPlace)
        if output.canReopen, requests.reopens || needsReopening { reopenAfterFailure() }
        return true
    }

    /// Reports that writing has failed, unless that was already reported.
    private func beginFailing(_ fault: WriterFault) {
        guard !isFailing else { return }
        isFailing = true
        stalledSince = nil
        let wasCongested = queue.fail()
        onEvent(.failed(fault))
        if wasCongested { onEvent(.room) }
    }

    private func reopenAfterFailure() {
        if output.kind == .file, output.isInPlace { return }
        guard let file = try? files.open() else { return }
        replaceOutput(by: file, .reopened)
    }

    private func recover() {
        var loss = queue.recover(&batch)
        isFailing = false
        unwrittenLoss.add(loss)
        loss.add(unreportedLoss)
        unreportedLoss = RecordWriter.Loss()
        if !unwrittenLoss.isEmpty {
            queue.add(lines.loss(unwrittenLoss), to: &batch)
            let header = header(.loss, after: batch.ends.count)
            if !header.isEmpty { headerPlace = batch.ends.count }
            queue.add(header, to: &batch)
        }
        unwrittenLoss = RecordWriter.Loss()
        sealBatch()
        onEvent(.recovered(loss))
    }

    // MARK: - Opening

    /// Returns the header line for the place after the written records and `waiting` records of the batch.
    private func header(_ reason: RecordWriter.Opening.Reason, after waiting: Int = 0) -> [UInt8] {
        let before = records &+ UInt64(waiting)
        var line = lines.header(RecordWriter.Opening(reason: reason, records: before, dropped: queue.dropped))
        if let last = line.last, last != 0x0A { line.append(0x0A) }
        return line
    }

    private func prepareHeader(_ reason: RecordWriter.Opening.Reason) {
        var line = header(reason)
        if chain != nil, let sealed = chain?.seal(header: line, before: &batch, from: wholeRecords) { line = sealed }
        prologue = (output.endsWithinLine ? [0x0A] : []) + line
        prologueWritten = 0
    }

    /// Continues in another file, which begins with a header. A partly written record is written again from its
    /// beginning.
    private func replaceOutput(by file: OutputFile, _ reason: RecordWriter.Opening.Reason) {
        output.finish()
        // A rotation that keeps no files has deleted the file on purpose.
        if reason != .rotation, output.place == .deleted { reportDeletion() }
        output = file
        recordsInFile = RecordWriter.Loss()
        (wasMoved, hasReportedMove) = (false, false)
        scheduleCheck()
        hasRecord = file.size > 0
        rotationSize = options.rotation?.size ?? .max
        rotationTime = Self.rotationTime(options)
        files.prune()
        let again = written - recordStart
        if again > 0 {
            written = recordStart
            _ = queue.progress(bytes: -again, records: 0)
        }
        prepareHeader(reason)
    }

    // MARK: - Deleted and moved files

    private func scheduleCheck() {
        guard output.kind == .file, output.canReopen else { return checkTime = .max }
        checkTime = Monitor.now + options.placeCheckInterval.wholeNanoseconds
    }

    /// Opens a new file if the open one was deleted, or if two checks in a row found that it was moved. The batch
    /// must have no hash chain yet, and none of it may be written.
    ///
    /// - Parameter isAsked: Whether a request is handled next. If so, a moved file is left to that request.
    /// - Returns: Whether a new file was opened.
    private func replaceIfGone(isAsked: Bool) -> Bool {
        guard output.kind == .file, output.canReopen, !queue.isAbandoned else { return false }
        scheduleCheck()
        switch output.place {
        case .kept:
            wasMoved = false
            return false
        case .moved:
            guard !isAsked else { return false }
            // A program that moves the file usually sends SIGHUP next, so wait for one more check.
            defer { wasMoved = true }
            return wasMoved && replaceMoved()
        case .deleted:
            reportDeletion()
            guard reopenPersistently() else { return false }
            if !unwrittenLoss.isEmpty { queue.add(lines.loss(unwrittenLoss), before: &batch) }
            unwrittenLoss = RecordWriter.Loss()
            return true
        }
    }

    private func replaceMoved() -> Bool {
        do throws(WriterFault) {
            let file = try files.open()
            onEvent(.notice(WriterFault(.moved, output.path)))
            replaceOutput(by: file, .reopened)
            return true
        } catch {
            if !hasReportedMove { onEvent(.notice(WriterFault(.cannotReopen, error.path, error.errno))) }
            hasReportedMove = true
            return false
        }
    }

    /// Counts the records of the deleted file as lost, and reports the deletion.
    private func reportDeletion() {
        recordsInFile.deletedFile = output.path
        queue.countDeleted(recordsInFile)
        unwrittenLoss.add(recordsInFile)
        unreportedLoss.add(recordsInFile)
        recordsInFile = RecordWriter.Loss()
        beginFailing(WriterFault(.deleted, output.path))
    }

    /// Tries to open the path until that succeeds; returns false if the writer is closed first.
    private func reopenPersistently() -> Bool {
        var isFirst = true
        while true {
            do throws(WriterFault) {
                replaceOutput(by: try files.open(), .reopened)
                return true
            } catch {
                if isFirst { onEvent(.notice(error)) }
                isFirst = false
            }
            guard !queue.isClosing, !queue.isAbandoned else {
                giveUp(forEver: true)
                return false
            }
            _ = queue.pause(until: Monitor.now + options.retryInterval.wholeNanoseconds)
        }
    }

    private func reopen() {
        guard output.canReopen else { return }
        // The file was not moved: reopening would open the same file.
        if output.kind == .file, output.isInPlace { return prepareHeader(.reopened) }
        do throws(WriterFault) {
            replaceOutput(by: try files.open(), .reopened)
        } catch {
            onEvent(.notice(error.code == .cannotOpen ? WriterFault(.cannotReopen, error.path, error.errno) : error))
        }
    }

    /// Rotates the file and opens a new one; if that fails, writing continues in the old one.
    private func rotate() {
        guard let rotation = options.rotation else { return }
        let next = UInt64(batch.ends[wholeRecords] - recordStart)
        output.refreshSize()
        if output.size == 0 { hasRecord = false }
        guard hasRecord, isOld || output.size + next > rotationSize else { return }
        do throws(WriterFault) {
            if output.place == .deleted { reportDeletion() }
            // If another program has already moved the file, the path may name a file that is not ours to rename.
            if output.isInPlace { try files.shift() }
            replaceOutput(by: try files.open(), .rotation)
            queue.countRotation()
        } catch {
            rotationSize = output.size + max(min(rotation.size, .max / 2), next)
            rotationTime = Self.rotationTime(options)
            onEvent(.notice(WriterFault(.cannotRotate, error.path, error.errno)))
        }
    }
}
