package import TapRecord

internal import Glibc

/// Why a JSON log or capture cannot be read.
public struct ReaderFault: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        /// The file cannot be opened; the system's error number.
        case cannotOpen(errno: Int32)
        /// Reading has failed; the system's error number.
        case cannotRead(errno: Int32)
        /// There is nothing in it, or nothing but a torn header.
        case empty
        /// Its first line is not a header of xmpptap.
        case notOurs
        /// It is something else that is known.
        case otherFormat(FileFormat)
        /// It is a file of packets of which nothing can be read.
        case packets(PacketFault)
        /// It is compressed, and nothing of it can be read.
        case compressed(CompressionFault)
        /// A newer program has written it; the version of its schema.
        case newerVersion(Int64)
    }

    /// The kind of problem.
    package let code: Code
    /// The file.
    package let path: String
}

extension ReaderFault: CustomStringConvertible {
    /// One line for people: the file and the cause.
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

/// A line that is not a record, which was passed over.
public struct DamagedLine: Sendable, Hashable {
    /// The kind of damage.
    package enum Reason: Sendable, Hashable {
        /// It was being written when the program was killed or the disk was full.
        case torn
        /// It is over the limit of a line.
        case tooLong
        /// It is something else than a record.
        case other(RecordLineError)
        /// It is not a line: the rest of a file of packets.
        case packets(PacketFault)
        /// It is not a line: a place of a compressed file.
        case compressed(CompressionFault)
    }

    /// The kind of damage.
    package let reason: Reason
    /// The file.
    package let path: String
    /// The number of the line, from 1.
    package let line: Int

    /// Whether it is merely where writing was interrupted, and nothing that was written before is lost.
    package var isInterruption: Bool {
        switch reason {
        case .torn, .packets(.truncated), .packets(.compressed(.truncated)), .compressed(.truncated): true
        case .tooLong, .other, .packets, .compressed: false
        }
    }
}

extension DamagedLine: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        if case .packets(let fault) = reason { return "\(path): \(fault); the packets before it are shown" }
        if case .compressed(let fault) = reason { return "\(path): \(fault); what can be read is shown" }
        let words =
            switch reason {
            case .torn: "is incomplete: xmpptap was stopped, or the disk was full, while it was written"
            case .tooLong: "is too long"
            case .other(let error): "skipped: \(error)"
            case .packets, .compressed: ""
            }
        return "line \(line) of \(path) \(words)"
    }
}

/// Records of a run that are in none of the files that were named.
public struct MissingRecords: Sendable, Hashable {
    /// How many.
    package let count: UInt64
    /// The file before whose header they stood.
    package let path: String
    /// The number of the header's line, from 1.
    package let line: Int
}

extension MissingRecords: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        let what = count == 1 ? "1 record is" : "\(count) records are"
        let place = line == 1 ? path : "line \(line) of \(path)"
        return "\(what) missing before \(place): in a file of the run that was not named, or that no longer exists"
    }
}

extension PacketFault: CustomStringConvertible {
    /// A clause for people.
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
