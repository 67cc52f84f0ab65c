package import TapRecord

internal import Glibc

/// The reason why a JSON log or capture cannot be read.
public struct ReaderFault: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        /// The file cannot be opened; `errno` is the system's error number.
        case cannotOpen(errno: Int32)
        /// Reading has failed; `errno` is the system's error number.
        case cannotRead(errno: Int32)
        /// The file is empty, or contains only an incomplete header.
        case empty
        /// The first line of the file is not a header of xmpptap.
        case notOurs
        /// The file has another format, which was recognised.
        case otherFormat(FileFormat)
        /// The file is a packet capture that cannot be read.
        case packets(PacketFault)
        /// The file is compressed, and none of its content can be read.
        case compressed(CompressionFault)
        /// The file was written by a newer xmpptap; the value is the version of its schema.
        case newerVersion(Int64)
    }

    /// The kind of problem.
    package let code: Code
    /// The path of the file; `standard input` for `-`.
    package let path: String
}

extension ReaderFault: CustomStringConvertible {
    /// The file and the cause, in one human-readable line.
    public var description: String {
        switch code {
        case .cannotOpen(let cause): "cannot open \(path): \(String(cString: strerror(cause)))"
        case .cannotRead(EISDIR): "\(path) is a folder without captures (*.xtap); name the files to read"
        case .cannotRead(let cause): "cannot read \(path): \(String(cString: strerror(cause)))"
        case .empty: "\(path) contains no records yet"
        case .notOurs:
            "\(path) is neither a log or capture of xmpptap nor a log of a client or server that shows XMPP"
        case .otherFormat(let format): "\(path) \(format.phrase)"
        case .packets(let fault): "cannot read \(path): \(fault)"
        case .compressed(let fault): "cannot read \(path): \(fault)"
        case .newerVersion(let version):
            "\(path) was written by a newer xmpptap (schema \(version), this version reads up to "
                + "\(RecordHeader.currentVersion)); use that version"
        }
    }
}

/// A line that is not a record and was skipped.
public struct DamagedLine: Sendable, Hashable {
    /// The kind of damage.
    package enum Reason: Sendable, Hashable {
        /// The line is incomplete: it was being written when the program was killed or the disk was full.
        case incomplete
        /// The line is longer than the limit.
        case tooLong
        /// The line is not a valid record; the reason.
        case other(RecordLineError)
        /// The rest of a packet capture cannot be read.
        case packets(PacketFault)
        /// The compressed data of the file is damaged or truncated at this place.
        case compressed(CompressionFault)
    }

    /// The kind of damage.
    package let reason: Reason
    /// The path of the file, `standard input`, or the name of a network interface.
    package let path: String
    /// The number of the line, from 1.
    package let line: Int

    /// Whether writing was interrupted here, and no earlier data is lost.
    package var isInterruption: Bool {
        switch reason {
        case .incomplete, .packets(.truncated), .packets(.compressed(.truncated)), .compressed(.truncated): true
        case .tooLong, .other, .packets, .compressed: false
        }
    }
}

extension DamagedLine: CustomStringConvertible {
    /// The damage, in one human-readable line.
    public var description: String {
        if case .packets(let fault) = reason { return "\(path): \(fault); the packets before it are shown" }
        if case .compressed(let fault) = reason { return "\(path): \(fault); what can be read is shown" }
        let problem =
            switch reason {
            case .incomplete: "is incomplete: xmpptap was stopped, or the disk was full, while it was written"
            case .tooLong: "is too long"
            case .other(let error): "skipped: \(error)"
            case .packets, .compressed: ""
            }
        return "line \(line) of \(path) \(problem)"
    }
}

/// Records of a run that are in none of the given files.
public struct MissingRecords: Sendable, Hashable {
    /// The number of missing records.
    package let count: UInt64
    /// The path of the file with the header before which records are missing.
    package let path: String
    /// The number of the header's line, from 1.
    package let line: Int
}

extension MissingRecords: CustomStringConvertible {
    /// The gap, in one human-readable line.
    public var description: String {
        let what = count == 1 ? "1 record is" : "\(count) records are"
        let place = line == 1 ? path : "line \(line) of \(path)"
        return "\(what) missing before \(place): in a file of the run that was not named, or that no longer exists"
    }
}

extension PacketFault: CustomStringConvertible {
    /// The fault, as a human-readable clause.
    package var description: String {
        switch self {
        case .truncated(let place): "it ends within a packet, after \(place) bytes"
        case .damaged(let place, let reason): "damaged at byte \(place): \(reason)"
        case .cannotRead(let cause): String(cString: strerror(cause))
        case .interface(let reason): "capturing ended: \(reason)"
        case .compressed(let fault): fault.description
        }
    }
}
