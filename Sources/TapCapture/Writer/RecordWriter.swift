package import TapRecord

internal import Glibc

/// Writes the lines of a log or capture: appended from any thread, written by one dedicated thread.
///
/// ```
/// event loops ── append ──→ [ filling ]  ⇄  [ writing ] ── writer thread ──→ file, pipe or terminal
///                  ↑ congested                                 every 20 ms or 256 KiB
/// ```
///
/// A record is one or several finished lines and stays whole: it is never split by rotation, and records keep the
/// order in which they were appended. Appended records are lost only if the process is killed before the next flush
/// (20 ms), or if the destination fails: then records wait up to ``Options/capacity``, after that they are dropped and
/// counted. When writing works again, a line that tells the loss follows, and a header line that marks the file
/// incomplete. A slow destination drops nothing: ``isCongested`` asks the sources to stop reading.
///
/// Every opening (start, adding to a file, rotation, reopening) begins with a header line. A writer is used from any
/// thread, opened once and closed once; ``close(within:)`` writes everything.
package final class RecordWriter: Sendable {
    /// The lines that a writer needs beside those appended to it; called on its thread, empty for none.
    package struct Lines: Sendable {
        let header: @Sendable (Opening) -> [UInt8]
        let loss: @Sendable (Loss) -> [UInt8]
        /// Called on its thread with true before it writes whole lines to a terminal, and with false behind them.
        package var onWriting: (@Sendable (Bool) -> Void)?

        /// The header of an opening, and the record that tells a loss.
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
    ///   - destination: Where to write. A new file gets the rights 0600; one that is there is added to if it is a
    ///     regular file of the user we run as, or a pipe, terminal or device; a symbolic link is refused.
    ///   - lines: Makes headers and loss lines.
    ///   - onEvent: Told of failures and of room, on the writer's thread; may append, must not flush or close.
    ///   - onOpeningFailure: Given by callers that must not wait for the file system: the thread opens the destination, and
    ///     calls it if that fails. Records are discarded then, and not counted as dropped.
    /// - Throws: ``WriterFault`` if the destination cannot be opened or takes no header, or there can be no thread.
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
        // Confined to the thread from here on.
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
        // Nothing can be appended any more: the thread writes what it has and ends.
        queue.requestClose()
    }

    /// Appends one record: complete lines, with the last newline (added if missing).
    ///
    /// Never blocks, except if the buffer is full long after ``isCongested`` became true.
    @discardableResult
    package func append(_ record: RawSpan) -> Outcome {
        queue.append(record)
    }

    /// Appends one record; see ``append(_:)-(RawSpan)``.
    @discardableResult
    package func append(_ record: [UInt8]) -> Outcome {
        queue.append(record.span.bytes)
    }

    /// Appends what a line buffer holds as one record.
    @discardableResult
    package func append(_ record: borrowing LineBuffer) -> Outcome {
        queue.append(record.span)
    }

    /// Appends several records.
    @discardableResult
    package func append(_ lines: MergedLines) -> Outcome {
        queue.append(lines)
    }

    /// Whether so much waits that the sources should stop reading until ``Event/room``. Cheap: no lock.
    package var isCongested: Bool { queue.isCongested }

    /// The writer's counts so far.
    package var counters: Counters { queue.counters }

    /// Waits until everything appended before is with the system.
    ///
    /// - Returns: `false` if it was not within the time, or if writing fails.
    @discardableResult
    package func flush(within time: Duration = .seconds(10)) -> Bool {
        queue.flush(until: Monitor.now + time.wholeNanoseconds)
    }

    /// Continues in a new file after the old one was moved away (SIGHUP after logrotate). Records appended before are
    /// still written to the old one; a destination that is not a path stays open.
    package func reopen() {
        queue.requestReopen()
    }

    /// Renames the file, after the records appended before are written to it; a taken name gets a number. Does nothing
    /// if the destination is not a path.
    package func rename(to name: String) {
        queue.requestRename(to: name)
    }

    /// Writes everything and ends the thread, without waiting for it: see ``close(within:)``.
    package func finish() {
        queue.requestClose()
    }

    /// Whether the thread has ended.
    package var isFinished: Bool { queue.isClosed }

    /// Writes everything and ends the thread; records appended later are dropped.
    ///
    /// - Parameters:
    ///   - time: The maximum time to wait for a slow destination; the remaining records are then dropped and counted.
    ///   - removingUnused: Whether to remove the file if it was empty and got no record.
    /// - Returns: The total loss; empty if there is none.
    @discardableResult
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> Loss {
        queue.requestClose(removingUnused: removingUnused)
        queue.waitForEnd(until: Monitor.now + time.wholeNanoseconds)
        return queue.counters.dropped
    }
}
