extension RecordWriter {
    /// Where records go.
    package enum Destination: Sendable, Hashable {
        case standardOutput
        /// A path; `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` mean descriptors this process already has, and `-`
        /// is standard output.
        case path(String)
        /// New files `STEM-0001ENDING`, `STEM-0002ENDING` and so on, the next number for each that is opened.
        case numbered(stem: String, ending: String)

        /// The ending of a capture's name; nil of another name.
        package static func captureEnding(of path: String) -> String? {
            [".xtap", ".xtap.gz", ".xtap.zst"].first { path.hasSuffix($0) }
        }

        /// The path of a numbered file, with four digits or more: a listing in order of names is in order of time.
        static func path(_ stem: String, _ number: Int, _ ending: String) -> String {
            let digits = String(number)
            return "\(stem)-\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)\(ending)"
        }
    }

    /// When a file is put aside and a new one begun.
    package struct Rotation: Sendable, Hashable {
        /// The size in bytes that a file does not exceed, unless a single record does.
        package var size: UInt64
        /// How many full files are kept beside the one being written; `Int.max` keeps all.
        package var keep: Int
        /// The age at which a file with a record gets no more; nil is any. The next record begins another file.
        package var age: Duration?
        /// Full files that were last written so long ago are removed when a file is opened; nil keeps them. In a folder of
        /// numbered files these are also the files of earlier runs.
        package var keepAge: Duration?

        /// Rotation at `size` bytes with `keep` full files; defaults 100 MB and 10, whatever their age.
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

    /// Sizes and times of a writer.
    package struct Options: Sendable, Hashable {
        /// The most bytes that wait to be written, both buffers together; default 16 MiB.
        package var capacity = 16 << 20
        /// As soon as so many bytes wait, they are written; default 256 KiB. Larger writes wake the thread less often.
        package var flushSize = 256 << 10
        /// The longest that a record waits before it is written; default 20 ms.
        package var flushInterval = Duration.milliseconds(20)
        /// The same on a terminal; default 5 ms.
        package var terminalFlushInterval = Duration.milliseconds(5)
        /// How long after a failure the next attempt is made; default 1 s.
        package var retryInterval = Duration.seconds(1)
        /// How often an open file is compared with its path, to notice that it was deleted or moved; default 1 s.
        package var placeCheckInterval = Duration.seconds(1)
        /// How long sources are paused before that is reported; default 1 s.
        package var stallNotice = Duration.seconds(1)
        /// Rotation of regular files; default none.
        package var rotation: Rotation?
        /// Whether a regular file with content is added to; default true. If not, it is refused.
        package var appends = true
        /// Whether each write to a file is followed by fdatasync(2), so that it outlives a crash of the system; default
        /// false.
        package var syncs = false
        /// Whether each line, which must be a JSON object, ends with its place in a hash chain; default false.
        package var hasChain = false

        /// The defaults.
        package init() {}

        /// With so many waiting bytes the sources are asked to stop reading: half the capacity, so that data read
        /// already still fits.
        var highWater: Int { capacity / 2 }
        /// Down to so many waiting bytes the sources may read again.
        var lowWater: Int { capacity / 4 }
    }

    /// Why a file is opened, for the closure that writes its header line.
    package struct Opening: Sendable, Hashable {
        /// The reason of a header.
        package enum Reason: Sendable, Hashable {
            /// A new file at the start.
            case start
            /// A file that was there at the start and is added to.
            case append
            /// A new file after the old one was put aside for its size.
            case rotation
            /// ``RecordWriter/reopen()``, a new attempt after a failure, or a new file after the open one was deleted or
            /// moved.
            case reopened
            /// Records were dropped before this line.
            case loss
        }

        /// Why.
        package let reason: Reason
        /// How many records this writer has written before this line.
        package let records: UInt64
        /// The records dropped by this writer so far; if empty, the file is complete as far as the writer knows.
        package let dropped: Loss
    }

    /// Records that were not written.
    package struct Loss: Sendable, Hashable {
        /// How many records.
        package internal(set) var records: UInt64 = 0
        /// How many bytes of them.
        package internal(set) var bytes: UInt64 = 0
        /// The path of the file that was deleted with some of them; nil if they were never written.
        package internal(set) var deletedFile: String?

        /// Nothing lost.
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

    /// Events for the owner of a writer, on the writer's thread and outside its lock.
    package enum Event: Sendable, Hashable {
        /// Writing has failed. Told once until ``recovered(_:)``; records wait, then are dropped and counted.
        case failed(WriterFault)
        /// Writing works again; so much was dropped in between.
        case recovered(Loss)
        /// Rotation or reopening has failed; writing continues in the current file.
        case notice(WriterFault)
        /// There is room again after ``RecordWriter/isCongested`` was true: sources may read on.
        case room
        /// ``RecordWriter/isCongested`` has been true for ``Options/stallNotice``: the destination takes too little, and
        /// the sources stand still. Told once until ``flowing(after:)`` or ``failed(_:)``.
        case stalled
        /// There is room again after ``stalled``; for how long there was none.
        case flowing(after: Duration)
    }

    /// A writer's counts so far, for metrics.
    package struct Counters: Sendable, Hashable {
        /// Records written.
        package internal(set) var records: UInt64 = 0
        /// Records and bytes dropped, or written to a file that was deleted.
        package internal(set) var dropped = Loss()
        /// Records written to files that were deleted while they were open.
        package internal(set) var deleted: UInt64 = 0
        /// Records in the files, unless full files were deleted.
        package var kept: UInt64 { records - min(records, deleted) }
        /// Files put aside for their size.
        package internal(set) var rotations: UInt64 = 0
        /// Times that an appender had to wait because the buffer was full.
        package internal(set) var waits: UInt64 = 0
        /// Bytes that wait to be written now.
        package internal(set) var pending = 0
        /// Nanoseconds that the first of them has waited for, or a record that came with it.
        package internal(set) var lag: Int64 = 0
        /// The most that ever waited.
        package internal(set) var pendingPeak = 0
        /// The end of the hash chain as far as it is written, in hexadecimal; nil without a chain.
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

    /// What became of an appended record.
    package enum Outcome: Sendable, Hashable {
        case taken
        /// It will be written, but too much waits: stop reading until ``Event/room``.
        case congested
        /// It was dropped and counted: the destination fails and the buffer is full, or the writer is closed.
        case dropped
    }
}

extension Duration {
    /// Whole nanoseconds, rounded down.
    package var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
