internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import Synchronization
internal import TapNetwork
internal import TapRecord

/// Live records for one client as server-sent events. This sink never blocks a session.
///
/// Records beyond ``capacity`` pending bytes are dropped; an event `lost` contains their number.
final class EventStream: Sink {
    /// Maximum number of pending bytes.
    private static let capacity = 1 << 20
    private static let heartbeat = Duration.seconds(15)

    /// Appends the data of an event, one line of JSON; returns false if the record is not sent.
    typealias Form = @Sendable (_ record: borrowing Record, _ content: Span<UInt8>, _ data: inout LineBuffer) -> Bool

    private struct State: ~Copyable {
        var waiting = LineBuffer(capacity: 0)
        var data = LineBuffer()
        var lost = 0
        var isOver = false

        /// Appends an event with the prepared data.
        mutating func event(_ name: StaticString, _ run: String?, _ sequence: UInt64) {
            waiting.append("event: ")
            waiting.append(name)
            if let run {
                waiting.append("\nid: ")
                waiting.append(string: run)
                waiting.append("-")
                waiting.append(decimal: sequence)
            }
            waiting.append("\ndata: ")
            waiting.append(0..<data.count, of: data)
            waiting.append("\n")
        }

        /// Appends an event with the number of dropped records.
        mutating func loss() {
            waiting.append("event: lost\ndata: {\"records\":")
            waiting.append(decimal: lost)
            waiting.append("}\n\n")
            lost = 0
        }
    }

    let level: Level
    /// The name of the events.
    private let name: StaticString
    /// The prefix of event ids, followed by `-` and the record number; nil for events without ids.
    private let run: String?
    private let form: Form
    private let state = Mutex(State())
    private let signals: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(_ name: StaticString, level: Level, run: String? = nil, form: @escaping Form) {
        self.name = name
        self.level = level
        self.run = run
        self.form = form
        (signals, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var isCongested: Bool { false }

    func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let isFirst = state.withLock { state in
            guard !state.isOver else { return false }
            let isFirst = state.waiting.isEmpty && state.lost == 0
            state.data.removeAll()
            guard form(redacted.record, content, &state.data) else { return false }
            // A single record may exceed the capacity.
            if !state.waiting.isEmpty, state.waiting.count + state.data.count > Self.capacity {
                state.lost += 1
            } else {
                if state.lost > 0 { state.loss() }
                state.event(name, run, redacted.record.sequence)
            }
            return isFirst
        }
        if isFirst { continuation.yield() }
    }

    /// Ends the response after the pending events.
    func finish() {
        state.withLock { $0.isOver = true }
        continuation.finish()
    }

    /// Returns the response, which ends when the client disconnects or at ``finish()``.
    ///
    /// - Parameter place: Released with the response, which may never be written if the client has disconnected.
    func response(_ place: EventStreams.Place) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { [self] writer in
                defer { withExtendedLifetime(place) { finish() } }
                let pulse = Task { [continuation] in
                    while true {
                        try await Task.sleep(for: Self.heartbeat)
                        continuation.yield()
                    }
                }
                defer { pulse.cancel() }
                // Shows the client at once that the stream is open.
                try await writer.write(ByteBuffer(string: ": xmpptap\n\n"))
                for await _ in signals { try await writer.write(take()) }
                try await writer.write(take())
                try await writer.finish(nil)
            }
        )
    }

    /// Returns the pending events, or a comment that keeps the connection alive.
    func take() -> ByteBuffer {
        state.withLock { state in
            if state.lost > 0 { state.loss() }
            guard !state.waiting.isEmpty else { return ByteBuffer(string: ": still here\n\n") }
            let bytes = ByteBuffer(bytes: state.waiting.bytes)
            state.waiting.removeAll()
            return bytes
        }
    }
}

/// The live streams of a service. Their number is limited, and all of them end with the service.
final class EventStreams: Sendable {
    /// Maximum number of streams; each one costs time for every record.
    static let maximumCount = 16

    private let dispatcher: RecordDispatcher
    private let streams = Mutex<[EventStream]>([])

    init(_ dispatcher: RecordDispatcher) { self.dispatcher = dispatcher }

    /// Starts a stream as the response to a request.
    func respond(with stream: EventStream) throws(Problem) -> Response {
        let isAdmitted = streams.withLock { streams in
            guard streams.count < Self.maximumCount else { return false }
            streams.append(stream)
            return true
        }
        guard isAdmitted else {
            throw Problem(
                .tooManyConnections,
                "\(Self.maximumCount) clients already read live records",
                advice: "end one"
            )
        }
        dispatcher.add(stream)
        return stream.response(Place(stream, of: self))
    }

    /// The slot of a stream. It is released together with its last reference.
    final class Place: Sendable {
        private let stream: EventStream
        private let streams: EventStreams

        fileprivate init(_ stream: EventStream, of streams: EventStreams) {
            self.stream = stream
            self.streams = streams
        }

        deinit { streams.remove(stream) }
    }

    private func remove(_ stream: EventStream) {
        dispatcher.remove(stream)
        streams.withLock { streams in streams.removeAll { $0 === stream } }
    }

    /// Whether all streams have ended.
    var isEmpty: Bool { streams.withLock { $0.isEmpty } }

    /// Ends all streams after their pending events.
    func finish() {
        for stream in streams.withLock({ $0 }) { stream.finish() }
    }
}
