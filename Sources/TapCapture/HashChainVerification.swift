internal import TapRecord

internal import Glibc

/// Verifies the hash chain of captures, from the first line to the last; see `--hash-chain`.
///
/// The chain shows that lines were changed, removed, inserted or moved, unless all later lines were rewritten too. A
/// reader who knows the last value of the chain from elsewhere also detects rewritten later lines, and a file that
/// was cut off.
package struct HashChainVerification: Sendable {
    /// The first line that does not match the chain.
    package struct Break: Sendable, Hashable {
        /// The file.
        package let path: String
        /// The number of the line, from 1.
        package let line: Int
        /// The number of the record within its run; nil if the line is not a record.
        package let sequence: UInt64?
        /// Whether the line has no chain value, or is too long to be read.
        package let hasNoChain: Bool
    }

    /// Number of records that match the chain.
    package private(set) var records: UInt64 = 0
    /// The last value of each chain, in hexadecimal. Each log has one chain; they are in the order in which they
    /// begin.
    package private(set) var heads: [String] = []
    /// The first line that does not match the chain; later lines were not checked. Nil if all lines match.
    package private(set) var firstBreak: Break?
    /// Whether the first parts of a log are missing from the files, so that its chain is checked only from a later
    /// header on.
    package private(set) var beginsWithin = false
    /// Whether the last line of a file is incomplete: the program or the machine stopped while it was being written.
    package private(set) var isTorn = false

    private var chains: [LogIdentity: [UInt8]] = [:]
    private var order: [LogIdentity] = []
    private var current: LogIdentity?

    /// Creates the result of checking captures and JSON logs; parts of a log may come in any order.
    ///
    /// - Throws: ``ReaderFault`` if a file cannot be read or is not a capture.
    package init(_ paths: [String]) throws(ReaderFault) {
        var parts: [(header: RecordHeader, path: String)] = []
        for path in try CaptureFolder.files(of: paths) { parts.append((try Self.header(path), path)) }
        for place in parts.map(\.header).readingOrder {
            try check(parts[place].path)
            guard firstBreak == nil else { break }
        }
        heads = order.compactMap { chains[$0] }.map { String(decoding: HashChain.hex($0), as: UTF8.self) }
    }

    /// Returns whether the first line of a capture has a chain value.
    ///
    /// - Throws: ``ReaderFault`` if the file cannot be opened.
    package static func isChained(_ path: String) throws(ReaderFault) -> Bool {
        var lines = try lines(path)
        guard case .whole(let range) = lines.next() else { return false }
        return lines.withBytes(of: range) { HashChain.parts(of: $0) != nil }
    }

    private static func lines(_ path: String) throws(ReaderFault) -> LineReader {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ReaderFault(code: .cannotOpen(errno: errno), path: path) }
        return LineReader(descriptor: descriptor, owned: true, longestLine: RecordReader.maximumLineLength)
    }

    private static func header(_ path: String) throws(ReaderFault) -> RecordHeader {
        let reader = try RecordReader([path])
        guard !reader.isForeign else { throw ReaderFault(code: .notOurs, path: path) }
        return reader.firstHeader
    }

    private mutating func check(_ path: String) throws(ReaderFault) {
        var lines = try Self.lines(path)
        var number = 0
        while firstBreak == nil {
            number += 1
            switch lines.next() {
            case .end: return
            case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
            case .damaged(let fault): throw ReaderFault(code: .compressed(fault), path: path)
            case .incomplete:
                isTorn = true
                return
            case .tooLong: firstBreak = Break(path: path, line: number, sequence: nil, hasNoChain: true)
            case .whole(let range):
                guard !range.isEmpty else { continue }
                lines.withBytes(of: range) { check($0, path, number) }
            }
        }
    }

    private mutating func check(_ line: RawSpan, _ path: String, _ number: Int) {
        func broken(hasNoChain: Bool) -> Break {
            Break(
                path: path,
                line: number,
                sequence: (try? RecordLine(json: line))?.record.sequence,
                hasNoChain: hasNoChain
            )
        }
        guard let (text, chain) = HashChain.parts(of: line) else {
            firstBreak = broken(hasNoChain: true)
            return
        }
        var last = current.flatMap { chains[$0] }
        let header = RecordHeader.isHeader(line) ? try? RecordHeader(json: line) : nil
        if let header {
            let log = LogIdentity(header)
            current = log
            last = chains[log]
            if last == nil { order.append(log) }
            if last == nil, header.recordsBefore ?? 0 == 0 { last = HashChain.beginning }
        }
        guard let log = current else {
            firstBreak = broken(hasNoChain: false)
            return
        }
        if let last {
            let found = line.withUnsafeBytes { HashChain.digest(last, $0[text]) }
            guard found == chain else {
                firstBreak = broken(hasNoChain: false)
                return
            }
        } else {
            // Earlier records are missing: check from this header on.
            beginsWithin = true
        }
        chains[log] = chain
        if header == nil { records &+= 1 }
    }
}

extension HashChainVerification.Break: CustomStringConvertible {
    /// The place and the problem, in one human-readable line.
    package var description: String {
        let record = sequence.map { " (record \($0))" } ?? ""
        return hasNoChain
            ? "\(path): line \(line)\(record) has no place in the hash chain"
            : "\(path): line \(line)\(record) does not fit the hash chain: it was changed, or lines before it were changed, "
                + "removed, inserted or moved"
    }
}
