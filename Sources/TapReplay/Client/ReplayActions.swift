extension Replayer {
    /// What is to be done.
    public enum Action {
        /// Log a client in: with the id of a session to resume and the number of its stanzas that the client has got.
        case connect(Int, resuming: (id: String, handled: UInt32)?)
        /// Send bytes.
        case send(Int, [UInt8])
        /// Close the stream.
        case close(Int)
        /// Cut the connection.
        case drop(Int)
        /// The replay is over.
        case finish

        /// Whose it is; nil if it is of all.
        var client: Int? {
            switch self {
            case .connect(let client, _), .send(let client, _), .close(let client), .drop(let client): client
            case .finish: nil
            }
        }
    }
}

/// What a replay is to do next, in order.
///
/// Items of one client that follow each other are sent as one. What is for a client whose connection takes no more waits apart, and
/// the others go on.
struct ReplayActions {
    /// An action, and the steps whose items it sends.
    struct Entry {
        fileprivate(set) var action: Replayer.Action
        fileprivate(set) var steps = 0..<0

        /// Bytes that it sends.
        var size: Int { if case .send(_, let bytes) = action { bytes.count } else { 0 } }
    }

    /// A connection that takes no more.
    private struct Stall {
        let since: Int64
        var held: [Entry] = []
    }

    /// Entries that are listed at most before they are done.
    private static let most = 256

    /// The items that are gathered; whoever calls ``beginItem(_:of:)`` appends to them.
    var gathered: [UInt8] = []
    private var gatheringClient = 0
    private var gatheringSteps = 0..<0
    /// Gathered items are sent as soon as they have so many bytes.
    private let writeSize: Int
    private var entries: [Entry] = []
    private var first = 0
    private var stalls: [Int: Stall] = [:]
    private var heldCount = 0
    /// Bytes of what is listed, or waits for a connection.
    private var undoneBytes = 0

    /// - Parameter writeSize: How many bytes are sent as one; each item by itself if 0.
    init(writeSize: Int) { self.writeSize = writeSize }

    /// All that is listed has been given away. What waits for a connection does not count.
    var isEmpty: Bool { first == entries.count && gathered.isEmpty }

    /// So much is listed that it is to be done before more is added.
    var isFull: Bool { entries.count + heldCount >= Self.most || writeSize > 0 && undoneBytes >= writeSize }

    // MARK: In and out

    mutating func append(_ action: Replayer.Action) {
        flush()
        let entry = Entry(action: action)
        undoneBytes += entry.size
        entries.append(entry)
    }

    /// Begins an item, the bytes of which are then appended to ``gathered``; ``endItem()`` ends it.
    mutating func beginItem(_ step: Int, of client: Int) {
        if gatheringClient != client { flush() }
        if gathered.isEmpty {
            gatheringClient = client
            gatheringSteps = step..<step
            if writeSize > 0 { gathered.reserveCapacity(writeSize) }
        }
        gatheringSteps = gatheringSteps.lowerBound..<(step + 1)
    }

    mutating func endItem() { if gathered.count >= writeSize { flush() } }

    /// Lists the items that are gathered.
    mutating func flush() {
        guard !gathered.isEmpty else { return }
        undoneBytes += gathered.count
        entries.append(Entry(action: .send(gatheringClient, gathered), steps: gatheringSteps))
        gathered = []
    }

    /// The next action; nil when there is none that can be done.
    mutating func next() -> Replayer.Action? {
        while first < entries.count {
            let entry = entries[first]
            first += 1
            if first == entries.count {
                entries.removeAll(keepingCapacity: true)
                first = 0
            }
            guard !stalls.isEmpty, let client = entry.action.client, stalls[client] != nil else {
                undoneBytes -= entry.size
                return entry.action
            }
            stalls[client]?.held.append(entry)
            heldCount += 1
        }
        return nil
    }

    // MARK: Connections

    /// A client's connection takes no more.
    mutating func stall(_ client: Int, at now: Int64) {
        if stalls[client] == nil { stalls[client] = Stall(since: now) }
    }

    /// Nothing could be noticed for so many nanoseconds up to now.
    mutating func excuse(_ lag: Int64, at now: Int64) {
        stalls = stalls.mapValues { Stall(since: min($0.since + lag, now), held: $0.held) }
    }

    /// Clients whose connection takes no more, and since when.
    var stalled: [(client: Int, since: Int64)] {
        stalls.map { (client: $0.key, since: $0.value.since) }.sorted { $0.client < $1.client }
    }

    func isStalled(_ client: Int) -> Bool { stalls[client] != nil }

    /// A client's connection takes bytes again: what waited for it is next.
    mutating func release(_ client: Int) {
        let held = stalls.removeValue(forKey: client)?.held ?? []
        heldCount -= held.count
        entries.insert(contentsOf: held, at: first)
    }

    /// A client's connection is over.
    ///
    /// - Returns: What was listed or waited for it.
    mutating func remove(_ client: Int) -> [Entry] {
        release(client)
        let left = entries[first...]
        let undone = left.filter { $0.action.client == client }
        undoneBytes -= undone.reduce(0) { $0 + $1.size }
        entries = left.filter { $0.action.client != client }
        first = 0
        return undone
    }
}
