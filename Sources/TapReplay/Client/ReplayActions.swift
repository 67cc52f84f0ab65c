package import XMPPCore

extension Replayer {
    /// An event of a client.
    package enum Event {
        /// The offer of the server before the login was complete; comes before ``bound(_:features:)``.
        case offered(ServerOffer)
        /// The client logged in with a new session; the element is `<features/>`, nil if there was none.
        case bound(JID, features: Element? = nil)
        /// The server refused the login with this SASL condition.
        case refused(String)
        /// The client resumed its earlier session.
        case resumed
        /// The client received an item after login.
        case received([UInt8], Element)
        /// The session ended; the string is the reason, nil for a regular end.
        case ended(String?)
        /// The connection is not writable.
        case stalled
        /// The connection is writable again.
        case writable
    }

    /// An action that the caller performs.
    package enum Action {
        /// Connect a client and log it in; `resuming` is the id of the session to resume (XEP-0198) and the number of
        /// stanzas received in it.
        case connect(Int, resuming: (id: String, handled: UInt32)?)
        /// Send bytes.
        case send(Int, [UInt8])
        /// Close the stream.
        case close(Int)
        /// Cut the connection.
        case drop(Int)
        /// The replay is over.
        case finish

        /// The client of the action; nil for ``finish``.
        var client: Int? {
            switch self {
            case .connect(let client, _), .send(let client, _), .close(let client), .drop(let client): client
            case .finish: nil
            }
        }
    }
}

/// The queue of actions that a replay performs next.
///
/// Consecutive items of one client are sent in one write. Actions of a client are held while its connection is not
/// writable; those of other clients continue.
struct ReplayActions {
    /// An action, and the script steps whose items it sends.
    struct Entry {
        fileprivate(set) var action: Replayer.Action
        fileprivate(set) var steps = 0..<0

        /// Number of bytes that the action sends.
        var size: Int { if case .send(_, let bytes) = action { bytes.count } else { 0 } }
    }

    /// A connection that is not writable.
    private struct Stall {
        let since: Int64
        var held: [Entry] = []
    }

    /// Maximum number of pending entries.
    private static let maximumCount = 256

    /// The bytes of the items for the next write; the caller of ``beginItem(_:of:)`` appends to them.
    var gathered: [UInt8] = []
    private var gatheringClient = 0
    private var gatheringSteps = 0..<0
    /// Size in bytes at which gathered items are written.
    private let writeSize: Int
    private var entries: [Entry] = []
    private var first = 0
    private var stalls: [Int: Stall] = [:]
    private var heldCount = 0
    /// Number of bytes in all pending and held send actions.
    private var undoneBytes = 0

    /// - Parameter writeSize: Bytes to gather before a write; 0 writes each item separately.
    init(writeSize: Int) { self.writeSize = writeSize }

    /// Whether no action is pending; held actions of stalled connections do not count.
    var isEmpty: Bool { first == entries.count && gathered.isEmpty }

    /// Whether pending actions must be performed before more are added.
    var isFull: Bool { entries.count + heldCount >= Self.maximumCount || writeSize > 0 && undoneBytes >= writeSize }

    // MARK: Adding and removing actions

    mutating func append(_ action: Replayer.Action) {
        flush()
        let entry = Entry(action: action)
        undoneBytes += entry.size
        entries.append(entry)
    }

    /// Begins an item; the caller appends its bytes to ``gathered`` and then calls ``endItem()``.
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

    /// Adds an action that sends the gathered items.
    mutating func flush() {
        guard !gathered.isEmpty else { return }
        undoneBytes += gathered.count
        entries.append(Entry(action: .send(gatheringClient, gathered), steps: gatheringSteps))
        gathered = []
    }

    /// Returns the next action; nil if none can be performed now.
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

    /// Marks the connection of a client as not writable.
    mutating func stall(_ client: Int, at now: Int64) {
        if stalls[client] == nil { stalls[client] = Stall(since: now) }
    }

    /// Excludes a time in which the program could not process events from the duration of all stalls.
    mutating func excuse(_ lag: Int64, at now: Int64) {
        stalls = stalls.mapValues { Stall(since: min($0.since + lag, now), held: $0.held) }
    }

    /// The clients with an unwritable connection, with the start of each stall in nanoseconds.
    var stalled: [(client: Int, since: Int64)] {
        stalls.map { (client: $0.key, since: $0.value.since) }.sorted { $0.client < $1.client }
    }

    func isStalled(_ client: Int) -> Bool { stalls[client] != nil }

    /// Marks the connection of a client as writable; its held actions come next.
    mutating func release(_ client: Int) {
        let held = stalls.removeValue(forKey: client)?.held ?? []
        heldCount -= held.count
        entries.insert(contentsOf: held, at: first)
    }

    /// Removes all actions of a client after the end of its connection.
    ///
    /// - Returns: The removed actions.
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
