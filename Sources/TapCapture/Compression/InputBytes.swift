internal import Glibc

/// Reads an open file or pipe. Decompresses its bytes if the first ones are the signature of a compressed file, and
/// converts UTF-16 text to UTF-8.
///
/// A class, because libpcap reads through a pointer to it.
final class InputBytes {
    private let descriptor: Int32
    private let isOwned: Bool
    /// Bytes to return before the next bytes of the file.
    private var first: ArraySlice<UInt8>
    /// Whether the beginning of the file was read, so that its format is known.
    private var hasBegun = false
    private var decompressor: Decompressor?
    /// Converts UTF-16 text to UTF-8; nil if the file is not UTF-16 text.
    private var transcoder: UTF16Transcoder?
    /// Data of a compressed file, of which the decompressor has read the bytes before index `start`; `base` is the
    /// offset of the data in the file.
    private var compressed: [UInt8] = []
    private var start = 0
    private var base: UInt64 = 0
    /// The offset in the file of the current member, and whether any of it was read.
    private var memberStart: UInt64 = 0
    private var isWithinMember = false
    /// Whether the decompressor may have more output, because the last output filled the buffer.
    private var mayHaveMore = false
    private var fault: CompressionFault?
    /// The number of bytes returned so far.
    private(set) var position: UInt64 = 0
    /// The system's error number if a read has failed; nothing is read after that.
    private(set) var failure: Int32?
    /// Whether a read has failed, or a fault has not been taken by ``takeFault()`` yet.
    var hasFailed: Bool { failure != nil || fault != nil }

    private static let piece = 64 << 10
    /// The number of bytes already read that are kept, because a signature may begin in them.
    private static let kept = 3

    /// Creates a reader of an open file; closes the file at the end if it is `owned`. The bytes of `first` are
    /// returned before those of the file, unchanged.
    init(descriptor: Int32, owned: Bool, first: [UInt8] = []) {
        self.descriptor = descriptor
        self.first = first[...]
        isOwned = owned
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// Reads up to `count` of the next bytes into `place`, as many as are available at once.
    ///
    /// - Returns: The number of bytes; 0 at the end, which is temporary if the file grows. Negative if reading
    ///   fails (see ``failure``), or if ``takeFault()`` must be called first.
    func read(into place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        guard !hasFailed else { return -1 }
        let found =
            if !first.isEmpty {
                copyFirst(place, count)
            } else if !hasBegun {
                begin(place, count)
            } else if let decompressor {
                decompress(decompressor, place, count)
            } else if transcoder != nil {
                transcode(place, count)
            } else {
                readFile(place, count)
            }
        position += UInt64(max(0, found))
        return found
    }

    /// Puts bytes back, so that the next reads return them again.
    func putBack(_ bytes: ArraySlice<UInt8>) {
        position -= UInt64(bytes.count)
        first = bytes + first
    }

    /// Returns the fault of the compressed data at the current position, once; nil if there is none. Reading then
    /// continues at the next member.
    func takeFault() -> CompressionFault? {
        defer { fault = nil }
        return fault
    }

    /// Returns a fault at the end of the file, once, if its last compressed member is truncated; otherwise nil.
    func takeTruncation() -> CompressionFault? {
        guard isWithinMember else { return nil }
        isWithinMember = false
        return .truncated(at: base + UInt64(compressed.count))
    }

    /// Copies the bytes that precede those of the file. `place` is raw memory, like that of ``read(into:_:)``: the
    /// system writes to it, so that the bytes of a file are not copied again.
    private func copyFirst(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        let part = first.prefix(count)
        part.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress { place.copyMemory(from: base, byteCount: bytes.count) }
        }
        first = first.dropFirst(part.count)
        return part.count
    }

    /// Reads the beginning of the file and detects its format.
    private func begin(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        var found = 0
        var beginning = UnsafeRawBufferPointer(start: place, count: 0)
        // A read from a pipe may return less than a signature.
        repeat {
            let more = readFile(place + found, count - found)
            guard more > 0 else {
                if found == 0 { return more }
                break
            }
            found += more
            beginning = UnsafeRawBufferPointer(start: place, count: found)
        } while found < count
            && Compression.allCases.contains { found < $0.signature.count && $0.signature.starts(with: beginning) }
        hasBegun = true
        first = beginning.withMemoryRebound(to: UInt8.self) { beginTranscoding($0.span) }[...]
        if transcoder != nil { return first.isEmpty ? transcode(place, count) : copyFirst(place, count) }
        guard let compression = Compression(beginning: beginning), let decompressor = Decompressor(compression) else {
            return found
        }
        self.decompressor = decompressor
        compressed = Array(beginning)
        return decompress(decompressor, place, count)
    }

    /// Returns the beginning of a UTF-16 text as UTF-8; empty if the file is not UTF-16 text.
    private func beginTranscoding(_ beginning: Span<UInt8>) -> [UInt8] {
        transcoder = UTF16Transcoder(beginning: beginning)
        return transcoder?.transcode(beginning.extracting(2...)) ?? []
    }

    private func transcode(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        while first.isEmpty {
            let found = readFile(place, count)
            guard found > 0 else { return found }
            let bytes = UnsafeRawBufferPointer(start: place, count: found)
            first = bytes.withMemoryRebound(to: UInt8.self) { transcoder?.transcode($0.span) ?? [] }[...]
        }
        return copyFirst(place, count)
    }

    /// Whether a read returns without waiting. Waits up to 200 ms for the answer.
    var isReady: Bool {
        guard first.isEmpty, !mayHaveMore, start == compressed.count else { return true }
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, Self.pause) != 0
    }

    /// The time in milliseconds without data after which a pipe counts as having no more data for now.
    private static let pause: Int32 = 200

    private func readFile(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        while true {
            let found = Glibc.read(descriptor, place, count)
            if found < 0, errno == EINTR { continue }
            if found < 0 { failure = errno }
            return found
        }
    }

    // MARK: Compressed files

    private func decompress(_ decompressor: Decompressor, _ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        while true {
            if start == compressed.count, !mayHaveMore {
                let found = readOn()
                guard found > 0 else { return found }
            }
            let step = compressed.withUnsafeMutableBytes { bytes in
                let input = UnsafeMutableRawBufferPointer(rebasing: bytes[(mayHaveMore ? bytes.count : start)...])
                return decompressor.step(input, into: place, count)
            }
            start += step.read
            mayHaveMore = step.made == count
            switch step.result {
            case .within: isWithinMember = isWithinMember || step.read > 0
            case .end:
                decompressor.reset()
                memberStart = base + UInt64(start)
                isWithinMember = false
            case .damaged(let reason):
                guard step.made == 0 else {
                    // The next step reports it again.
                    mayHaveMore = true
                    break
                }
                resynchronise(decompressor, reason)
                return -1
            }
            if step.made > 0 { return step.made }
        }
    }

    /// Appends more data of the file to `compressed`.
    private func readOn() -> Int {
        let dropped = max(0, compressed.count - Self.kept)
        compressed.removeSubrange(..<dropped)
        base += UInt64(dropped)
        start = max(0, start - dropped)
        return compressed.append(upTo: Self.piece) { readFile($0, Self.piece) }
    }

    /// Continues at the next member. It may begin before the damage: a member without an end is decompressed into the
    /// next one before the damage is detected.
    private func resynchronise(_ decompressor: Decompressor, _ reason: String) {
        let place = base + UInt64(start)
        let signature = decompressor.compression.signature
        fault = .damaged(at: place, reason)
        isWithinMember = false
        mayHaveMore = false
        var from = memberStart < base ? 0 : Int(memberStart - base) + 1
        while true {
            if let found = Self.first(signature, in: compressed, from: from) {
                start = found
                memberStart = base + UInt64(found)
                if memberStart <= place { fault = .truncated(at: memberStart) }
                return decompressor.reset()
            }
            from = 0
            guard readOn() > 0 else {
                start = compressed.count
                return
            }
        }
    }

    private static func first(_ signature: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let first = signature.first, let base = bytes.baseAddress else { return nil }
            var place = start
            while place < bytes.count, let found = memchr(base + place, Int32(first), bytes.count - place) {
                place = UnsafeRawPointer(found) - base
                if bytes[place...].starts(with: signature) { return place }
                place += 1
            }
            return nil
        }
    }
}

extension [UInt8] {
    /// Appends up to `size` bytes.
    ///
    /// - Parameter write: Writes the bytes to the given pointer and returns their number. If it is negative,
    ///   nothing is appended.
    /// - Returns: The result of `write`.
    @discardableResult
    mutating func append(upTo size: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) -> Int {
        var written = 0
        append(addingCapacity: size) { output in
            output.withUnsafeMutableBufferPointer { free, count in
                guard let place = free.baseAddress else { return }
                written = write(place + count)
                count += Swift.max(0, written)
            }
        }
        return written
    }
}
