extension RecordWriter {
    /// The destination of records.
    package enum Destination: Sendable, Hashable {
        case standardOutput
        /// A path. `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` name descriptors that this process already has; `-`
        /// is standard output.
        case path(String)
        /// New files `STEM-0001ENDING`, `STEM-0002ENDING` and so on; each opened file gets the next unused number.
        case numbered(stem: String, ending: String)

        /// Returns the ending of a capture's name, for example `.xtap.gz`; nil for other names.
        package static func captureEnding(of path: String) -> String? {
            [".xtap", ".xtap.gz", ".xtap.zst"].first { path.hasSuffix($0) }
        }

        /// Returns the path of a numbered file. The number has at least four digits, so that the names sort by time.
        static func path(_ stem: String, _ number: Int, _ ending: String) -> String {
            let digits = String(number)
            return "\(stem)-\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)\(ending)"
        }
    }

    /// The conditions for rotating a file, and for removing rotated files.
    package struct Rotation: Sendable, Hashable {
        /// The maximum size of a file in bytes; only a file with a single record may be larger.
        package var size: UInt64
        /// The number of rotated files that are kept beside the one being written; `Int.max` keeps all.
        package var keep: Int
        /// The age at which a file with a record is rotated, before the next record is written; nil for no limit.
        package var age: Duration?
        /// The time since its last modification after which a rotated file is removed; nil for no limit. Files are
        /// removed when another file is opened. For numbered files, those of earlier runs in the same folder are
        /// removed too.
        package var keepAge: Duration?

        /// Creates a rotation at `size` bytes with `keep` rotated files; defaults 100 MB and 10 files of any age.
        package init(
            size: UInt64 = 100_000_000,
            keep: Int = 10,
            age: Duration? = nil,
            keepAge: Duration? = nil
        ) {
            self.size = max(1, size)
            self.keep = max(0, keep)
            self.age = age
            self.keepAge = keepAge
        }
    }

    /// The buffer sizes, intervals and rotation of a writer.
    package struct Options: Sendable, Hashable {
        /// The maximum number of pending bytes in both buffers together; default 16 MiB.
        package var capacity = 16 << 20
        /// The number of pending bytes at which they are written at once; default 256 KiB. Larger writes wake the
        /// thread less often.
        package var flushSize = 256 << 10
        /// The maximum time that a record waits before it is written; default 20 ms.
        package var flushInterval = Duration.milliseconds(20)
        /// The maximum time that a record waits before it is written to a terminal; default 5 ms.
        package var terminalFlushInterval = Duration.milliseconds(5)
        /// The time between a failure and the next attempt; default 1 s.
        package var retryInterval = Duration.seconds(1)
        /// The interval at which an open file is compared with its path, to notice that it was deleted or moved;
        /// default 1 s.
        package var placeCheckInterval = Duration.seconds(1)
        /// The time for which sources are paused before a stall is reported; default 1 s.
        package var stallNotice = Duration.seconds(1)
        /// Rotation of regular files; default none.
        package var rotation: Rotation?
        /// Whether an existing regular file with content is appended to; default true. If false, it is refused.
        package var appends = true
        /// Whether written data is flushed to the disk by fdatasync(2), so that it survives a crash of the system;
        /// default false.
        package var syncs = false
        /// Whether each line ends with its value in a hash chain; default false. Lines must then be JSON objects.
        package var hasChain = false

        /// Creates options with the default values.
        package init() {}

        /// The number of pending bytes above which the sources are asked to stop reading: half the capacity, so that
        /// data that was already read still fits.
        var highWater: Int { capacity / 2 }
        /// The number of pending bytes at which paused sources may read again.
        var lowWater: Int { capacity / 4 }
    }

    /// The place at which a header line is written, for the closure that formats it.
    package struct Opening: Sendable, Hashable {
        /// The reason for writing a header.
        package enum Reason: Sendable, Hashable {
            /// A new file was created at the start.
            case start
            /// An existing file was opened at the start and is appended to.
            case append
            /// A new file was opened after the old one was rotated because of its size or age.
            case rotation
            /// The header follows a call of ``RecordWriter/reopen()``, a failure, or the deletion or move of the open
            /// file.
            case reopened
            /// Records were dropped before this header.
            case loss
        }

        /// The reason.
        package let reason: Reason
        /// The number of records that this writer has written before this header.
        package let records: UInt64
        /// The records dropped by this writer so far; if empty, the file is complete as far as the writer knows.
        package let dropped: Loss
    }

    /// Records that were not written.
    package struct Loss: Sendable, Hashable {
        /// The number of records.
        package internal(set) var records: UInt64 = 0
        /// The number of bytes of these records.
        package internal(set) var bytes: UInt64 = 0
        /// The path of the deleted file with some of the records; nil if no file was deleted.
        package internal(set) var deletedFile: String?

        package init() {}

        /// Whether nothing was lost.
        package var isEmpty: Bool { records == 0 }

        mutating func add(_ other: Loss) {
            records &+= other.records
            bytes &+= other.bytes
            if let file = other.deletedFile { deletedFile = file }
        }

        mutating func add(records: Int, bytes: Int) {
            self.records &+= UInt64(records)
            self.bytes &+= UInt64(bytes)
        }
    }

    /// Events for the owner of a writer. They are sent on the writer's thread, without its lock.
    package enum Event: Sendable, Hashable {
        /// Writing has failed. Reported once until ``recovered(_:)``; records are buffered, then dropped and counted.
        case failed(WriterFault)
        /// Writing works again; the value counts the records that were dropped meanwhile.
        case recovered(Loss)
        /// Rotation or reopening has failed; writing continues in the current file.
        case notice(WriterFault)
        /// ``RecordWriter/isCongested`` is false again: sources may resume reading.
        case room
        /// ``RecordWriter/isCongested`` has been true for ``Options/stallNotice``: the destination is too slow, and
        /// the sources are paused. Reported once until ``flowing(after:)`` or ``failed(_:)``.
        case stalled
        /// The destination accepts data again after ``stalled``; `after` is the duration of the stall.
        case flowing(after: Duration)
    }

    /// A writer's counts so far, for metrics.
    package struct Counters: Sendable, Hashable {
        /// The number of records written.
        package internal(set) var records: UInt64 = 0
        /// The records and bytes that were dropped, or written to a file that was deleted.
        package internal(set) var dropped = Loss()
        /// The number of records written to files that were deleted while they were open.
        package internal(set) var deleted: UInt64 = 0
        /// The number of records written, except those in files that were deleted while open. Records in rotated
        /// files that were deleted later still count.
        package var kept: UInt64 { records - min(records, deleted) }
        /// The number of rotations, by size or by age.
        package internal(set) var rotations: UInt64 = 0
        /// The number of times that an appender had to wait because the buffer was full.
        package internal(set) var waits: UInt64 = 0
        /// The number of pending bytes.
        package internal(set) var pending = 0
        /// The time in nanoseconds since the first record of the oldest pending batch was appended; 0 if nothing is
        /// pending.
        package internal(set) var lag: Int64 = 0
        /// The maximum number of pending bytes so far.
        package internal(set) var pendingPeak = 0
        /// The last written value of the hash chain, in hexadecimal; nil without a chain.
        package internal(set) var chain: String?

        mutating func add(_ other: Counters) {
            records &+= other.records
            dropped.add(other.dropped)
            deleted &+= other.deleted
            rotations &+= other.rotations
            waits &+= other.waits
            pending += other.pending
            pendingPeak = max(pendingPeak, other.pendingPeak)
        }
    }

    /// The result of appending a record.
    package enum Outcome: Sendable, Hashable {
        case taken
        /// The record will be written, but too many bytes are pending: stop reading until ``Event/room``.
        case congested
        /// The record was dropped: the destination fails and the buffer is full, or the writer is closed.
        case dropped
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded towards zero.
    package var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
