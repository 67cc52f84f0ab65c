internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import Synchronization
internal import TapNetwork
internal import TapRecord

/// Live records for one client, as server-sent events: a sink of the run that never makes a session wait.
///
/// Beyond ``capacity`` waiting bytes, records are lost; an event `lost` gives their number.
final class EventStream: Sink {
    /// Bytes of events that wait for a client.
    private static let capacity = 1 << 20
    private static let heartbeat = Duration.seconds(15)

    /// Appends an event's data, one line of JSON, or returns false: of this record there is none.
    typealias Form = @Sendable (_ record: borrowing Record, _ content: Span<UInt8>, _ data: inout LineBuffer) -> Bool

    private struct State: ~Copyable {
        var waiting = LineBuffer(capacity: 0)
        var data = LineBuffer()
        var lost = 0
        var isOver = false

        /// Has an event of the data wait.
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

        /// Tells of what was lost, where it was.
        mutating func loss() {
            waiting.append("event: lost\ndata: {\"records\":")
            waiting.append(decimal: lost)
            waiting.append("}\n\n")
            lost = 0
        }
    }

    let level: Level
    /// What events are called.
    private let name: StaticString
    /// Ids are this, `-` and the number of the record; nil gives events none.
    private let run: String?
    private let form: Form
    private let state = Mutex(State())
    private let news: AsyncStream<Void>
    private let tell: AsyncStream<Void>.Continuation

    init(_ name: StaticString, level: Level, run: String? = nil, form: @escaping Form) {
        self.name = name
        self.level = level
        self.run = run
        self.form = form
        (news, tell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var isCongested: Bool { false }

    func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let isFirst = state.withLock { state in
            guard !state.isOver else { return false }
            let isFirst = state.waiting.isEmpty && state.lost == 0
            state.data.removeAll()
            guard form(redacted.record, content, &state.data) else { return false }
            // One record alone may be larger: it waits for nobody.
            if !state.waiting.isEmpty, state.waiting.count + state.data.count > Self.capacity {
                state.lost += 1
            } else {
                if state.lost > 0 { state.loss() }
                state.event(name, run, redacted.record.sequence)
            }
            return isFirst
        }
        if isFirst { tell.yield() }
    }

    /// Ends the response behind what waits.
    func finish() {
        state.withLock { $0.isOver = true }
        tell.finish()
    }

    /// The response, which ends when the client goes, or by ``finish()``.
    ///
    /// - Parameter place: Held as long as the response may be read: it is never written for a client that has gone before.
    func response(_ place: EventStreams.Place) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { [self] writer in
                defer { withExtendedLifetime(place) { finish() } }
                let pulse = Task { [tell] in
                    while true {
                        try await Task.sleep(for: Self.heartbeat)
                        tell.yield()
                    }
                }
                defer { pulse.cancel() }
                // The client learns at once that it is heard.
                try await writer.write(ByteBuffer(string: ": xmpptap\n\n"))
                for await _ in news { try await writer.write(take()) }
                try await writer.write(take())
                try await writer.finish(nil)
            }
        )
    }

    /// What waits, else a comment that keeps the connection open.
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

/// The streams of a service: some at most, and all end with it.
final class EventStreams: Sendable {
    /// Streams at once: each costs every record some time.
    static let most = 16

    private let dispatcher: RecordDispatcher
    private let streams = Mutex<[EventStream]>([])

    init(_ dispatcher: RecordDispatcher) { self.dispatcher = dispatcher }

    /// Answers a request with a stream.
    func respond(with stream: EventStream) throws(Problem) -> Response {
        let isAdmitted = streams.withLock { streams in
            guard streams.count < Self.most else { return false }
            streams.append(stream)
            return true
        }
        guard isAdmitted else {
            throw Problem(
                .tooManyConnections,
                "\(Self.most) clients already read live records",
                advice: "end one"
            )
        }
        dispatcher.add(stream)
        return stream.response(Place(stream, of: self))
    }

    /// A place among the streams, given up with the last reference to it.
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

    /// Whether no client reads.
    var isEmpty: Bool { streams.withLock { $0.isEmpty } }

    /// Ends all streams behind what waits.
    func finish() {
        for stream in streams.withLock({ $0 }) { stream.finish() }
    }
}
