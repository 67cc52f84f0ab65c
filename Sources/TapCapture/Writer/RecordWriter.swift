package import TapRecord

internal import Glibc

/// Writes the lines of a log or capture. They are appended from any thread and written by one dedicated thread.
///
/// ```
/// event loops ── append ──→ [ filling ]  ⇄  [ writing ] ── writer thread ──→ file, pipe or terminal
///                  ↑ congested                                 every 20 ms or 256 KiB
/// ```
///
/// A record is one or several complete lines. Rotation never splits a record, and records keep the order in which
/// they were appended. Appended records are lost only if the process is killed before the next flush (20 ms), or if
/// the destination fails: then records are buffered up to ``Options/capacity``, and later ones are dropped and
/// counted. When writing works again, a line that reports the loss follows, and a header line that marks the file as
/// incomplete. A slow destination causes no loss: ``isCongested`` asks the sources to stop reading.
///
/// A header line is written whenever a file is opened: at the start, when an existing file is appended to, after a
/// rotation and when the file is reopened. A writer can be used from any thread and is closed once;
/// ``close(within:removingUnused:)`` writes everything.
package final class RecordWriter: Sendable {
    /// The functions that format the writer's own lines. They are called on its thread, and return an empty array for
    /// no line.
    package struct Lines: Sendable {
        let header: @Sendable (Opening) -> [UInt8]
        let loss: @Sendable (Loss) -> [UInt8]
        /// Called on the writer's thread: with true before lines are written to a terminal, and with false after
        /// that.
        package var onWriting: (@Sendable (Bool) -> Void)?

        /// Creates the functions that return the header of an opening, and the record that reports a loss.
        package init(
            header: @escaping @Sendable (Opening) -> [UInt8] = { _ in [] },
            loss: @escaping @Sendable (Loss) -> [UInt8] = { _ in [] }
        ) {
            self.header = header
            self.loss = loss
        }
    }

    private let queue: RecordQueue

    /// Opens the destination and starts the thread.
    ///
    /// - Parameters:
    ///   - destination: The destination. A new file gets the permissions 0600. An existing destination is appended
    ///     to if it is a regular file of the effective user, a pipe, terminal or device. A symbolic link is refused.
    ///   - lines: Formats headers and loss reports.
    ///   - onEvent: Called on the writer's thread with its events. It may append records, but must not flush or
    ///     close.
    ///   - onOpeningFailure: For callers that must not wait for the file system: if it is not nil, the thread opens
    ///     the destination, and calls this function if that fails. Records are then discarded and not counted as
    ///     dropped.
    /// - Throws: ``WriterFault`` if the destination cannot be opened, the header cannot be written or the thread
    ///   cannot be started.
    package init(
        _ destination: Destination,
        options: Options = Options(),
        lines: Lines = Lines(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in },
        onOpeningFailure: (@Sendable (WriterFault) -> Void)? = nil
    ) throws(WriterFault) {
        let queue = RecordQueue(options: options)
        self.queue = queue
        @Sendable func open() throws(WriterFault) -> WriterLoop {
            try WriterLoop(queue: queue, destination: destination, options: options, lines: lines, onEvent: onEvent)
        }
        // Used only by the writer thread from here on.
        nonisolated(unsafe) let opened = onOpeningFailure == nil ? try open() : nil
        let result = WorkerThread.start(named: "log-writer") {
            do throws(WriterFault) {
                let loop = if let opened { opened } else { try open() }
                loop.run()
            } catch {
                queue.discardAll()
                onOpeningFailure?(error)
            }
        }
        guard result == 0 else { throw WriterFault(.cannotOpen, "a writer thread", result) }
    }

    deinit {
        // No records can be appended any more: the thread writes the pending ones and ends.
        queue.requestClose()
    }

    /// Appends one record of complete lines; adds the last newline if it is missing.
    ///
    /// Blocks only if the buffer is full and writing works. Sources that stop reading when ``isCongested`` is true do
    /// not reach that limit.
    @discardableResult
    package func append(_ record: RawSpan) -> Outcome {
        queue.append(record)
    }

    /// Appends one record; see ``append(_:)-(RawSpan)``.
    @discardableResult
    package func append(_ record: [UInt8]) -> Outcome {
        queue.append(record.span.bytes)
    }

    /// Appends the content of a line buffer as one record.
    @discardableResult
    package func append(_ record: borrowing LineBuffer) -> Outcome {
        queue.append(record.span)
    }

    /// Appends several records.
    @discardableResult
    package func append(_ lines: MergedLines) -> Outcome {
        queue.append(lines)
    }

    /// Whether so many bytes are pending that the sources should stop reading until ``Event/room``. Takes no lock.
    package var isCongested: Bool { queue.isCongested }

    /// The writer's counts so far.
    package var counters: Counters { queue.counters }

    /// Waits until all records appended before are written to the destination by write(2).
    ///
    /// - Returns: Whether they were written within `time`; false if writing fails.
    @discardableResult
    package func flush(within time: Duration = .seconds(10)) -> Bool {
        queue.flush(until: Monitor.now + time.wholeNanoseconds)
    }

    /// Continues in a new file after the old one was moved (SIGHUP after logrotate). Records appended before are
    /// still written to the old file. A destination that is not a path is not reopened.
    package func reopen() {
        queue.requestReopen()
    }

    /// Renames the file after the records appended before are written to it. If the name exists, a number is added.
    /// Does nothing if the destination is not a path.
    package func rename(to name: String) {
        queue.requestRename(to: name)
    }

    /// Asks the thread to write everything and end, without waiting for it; see ``close(within:removingUnused:)``.
    package func finish() {
        queue.requestClose()
    }

    /// Whether the thread has ended.
    package var isFinished: Bool { queue.isClosed }

    /// Writes everything and ends the thread; records appended later are dropped.
    ///
    /// - Parameters:
    ///   - time: The maximum time to wait for a slow destination; the remaining records are then dropped and counted.
    ///   - removingUnused: Whether to remove the file if it was empty and got no records.
    /// - Returns: The total loss since the writer was created; empty if there is none.
    @discardableResult
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> Loss {
        queue.requestClose(removingUnused: removingUnused)
        queue.waitForEnd(until: Monitor.now + time.wholeNanoseconds)
        return queue.counters.dropped
    }
}
