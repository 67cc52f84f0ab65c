internal import Glibc

/// The bytes of an open file or pipe, in order, decompressed if its first bytes are those of a compressed file.
///
/// A class, since libpcap reads through it by a pointer.
final class InputBytes {
    private let descriptor: Int32
    private let isOwned: Bool
    /// Bytes that come before the next ones of the file.
    private var first: ArraySlice<UInt8>
    /// Whether it is known if the file is compressed.
    private var hasBegun = false
    private var decompressor: Decompressor?
    /// Makes UTF-8 of a text in UTF-16.
    private var transcoder: UTF16Transcoder?
    /// Data read from a compressed file, consumed by the decompressor up to `start`, and its offset in the file.
    private var compressed: [UInt8] = []
    private var start = 0
    private var base: UInt64 = 0
    /// Where in the file the member begins that is being read, and whether something was read of it.
    private var memberStart: UInt64 = 0
    private var isWithinMember = false
    /// The decompressor may have more output than fitted.
    private var mayHaveMore = false
    private var fault: CompressionFault?
    /// Bytes given out so far.
    private(set) var position: UInt64 = 0
    /// The system's error number of the read that failed; nothing is read after it.
    private(set) var failure: Int32?
    /// Whether the last read failed.
    var hasFailed: Bool { failure != nil || fault != nil }

    private static let piece = 64 << 10
    /// So many bytes that were taken stay: a signature may have begun in them.
    private static let kept = 3

    /// The bytes of an open file, which is closed in the end if it is `owned`. Those of `first` come before, as they are.
    init(descriptor: Int32, owned: Bool, first: [UInt8] = []) {
        self.descriptor = descriptor
        self.first = first[...]
        isOwned = owned
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// Writes the next bytes to a place, as many as are there at once; 0 at the end, for now of a file that grows.
    /// Negative where reading fails, with ``failure``, or where ``takeFault()`` has to be asked first.
    func read(into place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        guard !hasFailed else { return -1 }
        let found =
            if !first.isEmpty {
                takeFirst(place, count)
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

    /// Puts bytes back, to be returned again.
    func putBack(_ bytes: ArraySlice<UInt8>) {
        position -= UInt64(bytes.count)
        first = bytes + first
    }

    /// Returns the problem of the compressed data after the bytes read, once. Reading then continues at the next
    /// member.
    func takeFault() -> CompressionFault? {
        defer { fault = nil }
        return fault
    }

    /// At the end of the file, whether it comes before that of its compressed data; once.
    func takeTruncation() -> CompressionFault? {
        guard isWithinMember else { return nil }
        isWithinMember = false
        return .truncated(at: base + UInt64(compressed.count))
    }

    private func takeFirst(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        let part = first.prefix(count)
        part.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress { place.copyMemory(from: base, byteCount: bytes.count) }
        }
        first = first.dropFirst(part.count)
        return part.count
    }

    /// Reads the beginning of the file, and finds out what it is.
    private func begin(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        var found = 0
        var beginning = UnsafeRawBufferPointer(start: place, count: 0)
        // A pipe may give less than a signature at once.
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
        if transcoder != nil { return first.isEmpty ? transcode(place, count) : takeFirst(place, count) }
        guard let compression = Compression(beginning: beginning), let decompressor = Decompressor(compression) else {
            return found
        }
        self.decompressor = decompressor
        compressed = Array(beginning)
        return decompress(decompressor, place, count)
    }

    /// Returns the UTF-8 of the beginning of a text in UTF-16; nothing of any other.
    private func beginTranscoding(_ beginning: Span<UInt8>) -> [UInt8] {
        transcoder = UTF16Transcoder(beginning: beginning)
        return transcoder?.take(beginning.extracting(2...)) ?? []
    }

    private func transcode(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        while first.isEmpty {
            let found = readFile(place, count)
            guard found > 0 else { return found }
            let bytes = UnsafeRawBufferPointer(start: place, count: found)
            first = bytes.withMemoryRebound(to: UInt8.self) { transcoder?.take($0.span) ?? [] }[...]
        }
        return takeFirst(place, count)
    }

    /// Whether a read would not wait.
    var isReady: Bool {
        guard first.isEmpty, !mayHaveMore, start == compressed.count else { return true }
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, Self.pause) != 0
    }

    /// Milliseconds without a byte after which a pipe has nothing more for now.
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

    /// Reads more after the last available bytes.
    private func readOn() -> Int {
        let dropped = max(0, compressed.count - Self.kept)
        compressed.removeSubrange(..<dropped)
        base += UInt64(dropped)
        start = max(0, start - dropped)
        return compressed.append(upTo: Self.piece) { readFile($0, Self.piece) }
    }

    /// Goes on at the next member, which may have begun before the damage was found: one without an end is read on into it.
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
    /// Appends up to `size` bytes, which `write` writes to a place.
    ///
    /// - Parameter write: Returns how many it has written; none if that is negative.
    /// - Returns: What `write` returns.
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
