import Foundation
import Glibc
import Synchronization
import Testing

@testable import TapCapture

/// A separate folder for one test, removed afterwards.
final class Folder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "writer-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(fileURLWithPath: file(name))), as: UTF8.self)
    }

    func lines(_ name: String) throws -> [String] {
        try text(name).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
    }

    func append(_ text: String, _ name: String) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file(name)))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }

    func rights(_ name: String) -> UInt32 {
        var status = stat()
        return lstat(file(name), &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}

/// The events of a writer, in the order they were told.
final class Events: Sendable {
    private let all = Mutex<[RecordWriter.Event]>([])

    var list: [RecordWriter.Event] { all.withLock { $0 } }

    var faults: [WriterFault.Code] {
        list.compactMap {
            switch $0 {
            case .failed(let fault), .notice(let fault): fault.code
            default: nil
            }
        }
    }

    func add(_ event: RecordWriter.Event) { all.withLock { $0.append(event) } }

    /// Waits for an event, some seconds at most.
    func wait(_ seconds: Double = 10, for isExpected: (RecordWriter.Event) -> Bool) -> Bool {
        eventually(seconds) { list.contains(where: isExpected) }
    }
}

/// The contents of a file, decompressed if it is compressed; to its end.
func contents(_ path: String) throws -> String {
    let input = InputBytes(descriptor: open(path, O_RDONLY), owned: true)
    var bytes: [UInt8] = []
    let place = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 1)
    defer { place.deallocate() }
    let start = try #require(place.baseAddress)
    while case let count = input.read(into: start, place.count), count != 0 {
        try #require(count > 0)
        bytes += place.prefix(count)
    }
    #expect(input.takeTruncation() == nil, "\(path) has no end")
    return String(decoding: bytes, as: UTF8.self)
}

/// Waits until a condition holds, some seconds at most.
func eventually(_ seconds: Double = 10, _ condition: () -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while Date() < deadline {
        if condition() { return true }
        usleep(2000)
    }
    return condition()
}

/// Lines that can be distinguished from records: `header REASON dropped N` and `lost N`.
let markers = RecordWriter.Lines(
    header: { Array("header \($0.reason) dropped \($0.dropped.records)\n".utf8) },
    loss: { Array("lost \($0.records) records, \($0.bytes) bytes\n".utf8) }
)

/// Lines with the number of records before them: `header after N`.
let counting = RecordWriter.Lines(header: { Array("header after \($0.records)\n".utf8) })

extension RecordWriter {
    convenience init(
        _ path: String,
        rotation: Rotation? = nil,
        events: Events = Events(),
        lines: Lines = markers,
        _ adjust: (inout Options) -> Void = { _ in }
    ) throws(WriterFault) {
        var options = Options()
        options.rotation = rotation
        adjust(&options)
        try self.init(.path(path), options: options, lines: lines) { events.add($0) }
    }

    @discardableResult
    func append(_ text: String) -> Outcome { append(Array(text.utf8)) }
}

/// Both ends of a pipe, closed with the object.
final class Pipe {
    private(set) var reader: Int32
    let writer: Int32

    /// A pipe that holds `capacity` bytes.
    init(nonblocking: Bool = false, capacity: Int32 = 65_536) {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        (reader, writer) = (ends[0], ends[1])
        _ = fcntl(writer, 1031 /* F_SETPIPE_SZ */, capacity)
        if nonblocking { _ = fcntl(writer, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeReader()
        close(writer)
    }

    func closeReader() {
        if reader >= 0 { close(reader) }
        reader = -1
    }

    /// Reads until nothing has come for a while.
    func drain(patience: Int32 = 300) -> [UInt8] {
        var bytes: [UInt8] = []
        var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
        while poll(&request, 1, patience) > 0 {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = read(reader, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
