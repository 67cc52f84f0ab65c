public import TapRecord

internal import Glibc

/// Why a JSON log or capture cannot be read.
public struct ReaderFault: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: Sendable, Hashable {
        /// The file cannot be opened; the system's error number.
        case cannotOpen(errno: Int32)
        /// Reading has failed; the system's error number.
        case cannotRead(errno: Int32)
        /// There is nothing in it, or nothing but a torn header.
        case empty
        /// Its first line is no header of ours.
        case notOurs
        /// It is something else that is known.
        case otherFormat(FileFormat)
        /// A newer program has written it; the version of its schema.
        case newerVersion(Int64)
    }

    /// What is wrong.
    public let code: Code
    /// The file.
    public let path: String
}

extension ReaderFault: CustomStringConvertible {
    /// One line for people: the file, the cause and the way out.
    public var description: String {
        switch code {
        case .cannotOpen(let cause): "cannot open \(path): \(String(cString: strerror(cause)))"
        case .cannotRead(let cause): "cannot read \(path): \(String(cString: strerror(cause)))"
        case .empty: "\(path) contains no records yet"
        case .notOurs:
            "\(path) is neither a JSON log or capture of xmpptap nor a client log with SEND: and RECV: lines; "
                + "record one with --capture FILE or --log-to FILE,format=json"
        case .otherFormat(let format): "\(path) \(format.advice)"
        case .newerVersion(let version):
            "\(path) was written by a newer xmpptap (schema \(version), this version reads up to "
                + "\(RecordHeader.currentVersion)); use that version"
        }
    }
}

/// A line that is not a record, which was passed over.
public struct DamagedLine: Sendable, Hashable {
    /// What is wrong with it.
    public enum Reason: Sendable, Hashable {
        /// It was being written when the program was killed or the disk was full.
        case torn
        /// It is over the limit of a line.
        case tooLong
        /// It is something else than a record.
        case other(RecordLineError)
    }

    /// What is wrong.
    public let reason: Reason
    /// The file.
    public let path: String
    /// The number of the line, from 1.
    public let line: Int

    /// Whether it is merely where writing was interrupted, and nothing that was written before is lost.
    public var isInterruption: Bool { reason == .torn }
}

extension DamagedLine: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        let words =
            switch reason {
            case .torn: "is incomplete: xmpptap was stopped, or the disk was full, while it was written"
            case .tooLong: "is too long"
            case .other(let error): "skipped: \(error)"
            }
        return "line \(line) of \(path) \(words)"
    }
}

/// Records of a run that are in none of the files that were named.
public struct MissingRecords: Sendable, Hashable {
    /// How many.
    public let count: UInt64
    /// The file before whose header they stood.
    public let path: String
    /// The number of the header's line, from 1.
    public let line: Int
}

extension MissingRecords: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        let what = count == 1 ? "1 record is" : "\(count) records are"
        let place = line == 1 ? path : "line \(line) of \(path)"
        return "\(what) missing before \(place): in a file of the run that was not named, or that no longer exists"
    }
}
