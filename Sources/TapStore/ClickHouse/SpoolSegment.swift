internal import Glibc
internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// A file of a spool with blocks for one shard, which are sent as one batch: the same rows in the same order, however often.
struct SpoolSegment: Sendable {
    /// The first line of each segment. The number is that of the columns' list.
    static let header = Array("xmpptap-spool 1\n".utf8)

    let folder: SpoolFolder
    let shard: Int
    let number: Int
    /// The number of bytes of the file, and of its rows without compression.
    var bytes: Int64 = 0
    var rowBytes: Int64 = 0
    /// The number of stanzas, and of rows of every table.
    var stanzas = 0
    var rows = 0
    /// The lowest and the highest number of their records; nil without rows.
    var span: ClosedRange<UInt64>?
    /// The time at which the first row was seen.
    var time: Timestamp?

    init(_ folder: SpoolFolder, shard: Int, number: Int) {
        (self.folder, self.shard, self.number) = (folder, shard, number)
    }

    /// The name without an ending: of `rejected` rows, too.
    var name: String { Self.name(shard, number) }

    static let ending = ".rows"
    var path: String { "\(folder.path)/\(name)\(Self.ending)" }

    /// Identifies the batch at a server.
    var token: String { "\(folder.about.word)/\(name)" }

    /// Returns the shard and the number in a file's name; nil for other names.
    static func place(_ name: String) -> (shard: Int, number: Int)? {
        guard name.hasSuffix(ending) else { return nil }
        let parts = name.dropLast(ending.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let shard = Int(parts[0]), let number = Int(parts[1]), shard >= 0, number >= 0,
            name == Self.name(shard, number) + ending
        else { return nil }
        return (shard, number)
    }

    private static func name(_ shard: Int, _ number: Int) -> String {
        let digits = "\(number)"
        return "\(shard)-\(String(repeating: "0", count: max(0, 8 - digits.count)))\(digits)"
    }

    /// Whether it has only gaps.
    var isOfGaps: Bool { span == nil }

    mutating func add(_ facts: SpoolBlock.Facts) {
        rows += facts.rows
        if facts.table == .stanza { stanzas += facts.rows }
        time = time.map { min($0, facts.time) } ?? facts.time
        guard facts.table != .gap, facts.first <= facts.last else { return }
        let known = span ?? facts.first...facts.last
        span = min(known.lowerBound, facts.first)...max(known.upperBound, facts.last)
    }

    /// The contents of a segment.
    struct Contents {
        var bytes: [UInt8] = []
        var blocks: [SpoolBlock] = []
        /// Whether a part is not a block, and the known properties of lost blocks.
        var isDamaged = false
        var lost: [SpoolBlock.Facts] = []

        /// The gaps among the rows.
        var gaps: [StoreGap] {
            var reader = RowBinaryReader(Compression.gzip.contents(of: payload(.gap), limit: 16 << 20))
            var gaps: [StoreGap] = []
            while !reader.isAtEnd, let gap = ClickHouseSchema.gap(&reader) { gaps.append(gap) }
            return gaps
        }

        /// The blocks of a table, joined.
        func payload(_ table: SpoolBlock.Table) -> [UInt8] {
            var joined: [UInt8] = []
            for block in blocks where block.facts.table == table { joined += bytes[block.payload] }
            return joined
        }
    }

    /// Reads the file.
    func read() throws(StoreFault) -> Contents {
        var contents = Contents()
        contents.bytes = try FileBytes.read(path)
        guard contents.bytes.starts(with: Self.header) else {
            contents.isDamaged = !Self.header.starts(with: contents.bytes)
            return contents
        }
        let found = SpoolBlock.blocks(in: contents.bytes, from: Self.header.count)
        contents.blocks = found.blocks
        contents.isDamaged = found.isDamaged
        contents.lost = found.lost
        return contents
    }

    /// Adds the facts of the blocks in the file, as far as they can be read.
    mutating func addFacts() throws(StoreFault) {
        for block in try read().blocks { add(block.facts) }
    }
}

/// A segment to which blocks are added.
final class SpoolFile {
    private(set) var segment: SpoolSegment
    /// The time on the monotonic clock at which it was begun, and last written to the disk.
    let began = Monitor.now
    private var syncTime = Monitor.now
    private let descriptor: Int32
    /// The number of nanoseconds after which added blocks are written to the disk, if the machine must not lose more.
    private static let syncInterval: Int64 = 1_000_000_000

    init(_ segment: SpoolSegment) throws(StoreFault) {
        self.segment = segment
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW
        descriptor = open(segment.path, flags, 0o600)
        guard descriptor >= 0 else { throw FileBytes.fault(segment.path) }
        let result = write(SpoolSegment.header)
        guard result == 0 else {
            unlink(segment.path)
            throw FileBytes.fault(segment.path, result)
        }
    }

    deinit { close(descriptor) }

    /// Adds a block; if that fails, the file has only the earlier ones.
    func append(_ facts: SpoolBlock.Facts, _ block: [UInt8], syncsAlways: Bool) throws(StoreFault) {
        let result = write(block)
        guard result == 0 else { throw FileBytes.fault(segment.path, result) }
        segment.add(facts)
        segment.rowBytes += Int64(SpoolBlock.rowBytes(block))
        guard syncsAlways || Monitor.now >= syncTime + Self.syncInterval else { return }
        guard fdatasync(descriptor) == 0 else { throw FileBytes.fault(segment.path) }
        syncTime = Monitor.now
    }

    /// Writes the blocks to the disk.
    func synchronize() { fdatasync(descriptor) }

    /// Returns the system's error number, or 0.
    private func write(_ bytes: [UInt8]) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else {
                let cause = written < 0 ? errno : EIO
                ftruncate(descriptor, off_t(segment.bytes))
                return cause
            }
            rest = rest.dropFirst(written)
        }
        segment.bytes += Int64(bytes.count)
        return 0
    }
}

/// Files as a whole.
enum FileBytes {
    /// The maximum number of bytes of a file.
    private static let limit = 1 << 30

    static func read(_ path: String) throws(StoreFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw fault(path) }
        defer { close(descriptor) }
        guard let bytes = OpenFile.read(descriptor, limit: limit) else { throw fault(path) }
        guard bytes.count <= limit else { throw StoreFault(code: .other("the file is too large"), path: path) }
        return bytes
    }

    /// Writes a new file, or appends to one. A new one must not exist.
    static func write(_ bytes: [UInt8], to path: String, appends: Bool = false) throws(StoreFault) {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (appends ? O_APPEND : O_EXCL)
        let descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else { throw fault(path) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw fault(path) }
            rest = rest.dropFirst(written)
        }
        guard fdatasync(descriptor) == 0 else { throw fault(path) }
    }

    /// Returns the fault of a system call.
    static func fault(_ path: String, _ cause: Int32 = errno) -> StoreFault {
        let code: StoreFault.Code =
            switch cause {
            case ENOSPC, EDQUOT, EFBIG: .full
            case EACCES, EPERM, EROFS: .readOnly
            case ENOENT: .missing
            default: .other(String(cString: strerror(cause)))
            }
        return StoreFault(code: code, path: path)
    }
}
