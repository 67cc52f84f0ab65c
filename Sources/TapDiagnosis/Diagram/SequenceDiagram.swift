package import TapRecord
internal import XMPPCore

/// A session as a diagram: the items between client and server, the actions of xmpptap, and the login steps.
///
/// Pass the session's records in order to ``add(_:content:)``, then draw the diagram.
package struct SequenceDiagram: Sendable {
    /// Maximum number of rows; only the beginning of a longer session is drawn, which includes the login.
    static let maximumRows = 600

    /// A participant of the session.
    enum Lane: Sendable, Hashable {
        case client, tap, server

        init(_ leg: Leg) { self = leg == .client ? .client : .server }
    }

    /// A row of the diagram.
    struct Row: Sendable, Hashable {
        enum Content: Sendable, Hashable {
            /// An item that one participant sent to another.
            case item(Item)
            /// A completed login step.
            case loginStep(LoginStep.Result?, text: String)
            /// A note or an error of this level.
            case remark(Level, String)
        }

        var time: Timestamp
        var content: Content
    }

    /// An item of a stream.
    struct Item: Sendable, Hashable {
        var from: Lane
        var to: Lane
        var label: String
        /// The action of xmpptap on the item, such as injecting, changing or dropping it; nil if it only forwarded the
        /// item.
        var mark: String?
        var isInferred = false
        /// Whether the item did not reach its destination.
        var isStopped = false
        /// Whether the item reports a failure.
        var isFailure = false
        /// Whether the item is an acknowledgement of stream management, a request for one, or an answered ping.
        var isKeepAlive = false
    }

    /// Consecutive rows that are drawn individually, or folded to one line.
    struct Part: Hashable {
        var rows: Range<Int>
        var isFolded: Bool
    }

    /// Minimum number of consecutive keepalives that are folded.
    private static let fewestFolded = 3

    /// The number of the session within its run.
    package let session: UInt64
    /// The owner of the session: a full JID, or the known parts of it.
    private(set) var who = "a client"
    private(set) var rows: [Row] = []
    /// Whether xmpptap relayed the session; false if it was read from a client's log.
    private(set) var hasTap = true
    /// Number of rows that were not kept.
    private(set) var omitted = 0
    private(set) var diagnosis: LoginDiagnosis?
    private(set) var ending: String?
    private(set) var began: Timestamp?
    /// Ids of unanswered pings (XEP-0199).
    private var pings: Set<String> = []
    private var isReady = false

    /// The rows, divided into foldable keepalives and other rows.
    var parts: [Part] {
        var parts: [Part] = []
        var start = 0
        while start < rows.count {
            let isKeepAlive = rows[start].isKeepAlive
            let end = rows[start...].firstIndex { $0.isKeepAlive != isKeepAlive } ?? rows.count
            parts.append(Part(rows: start..<end, isFolded: isKeepAlive && end - start >= Self.fewestFolded))
            start = end
        }
        return parts
    }

    /// Creates an empty diagram of a session.
    package init(session: UInt64) { self.session = session }

    /// Adds a record of the session; `content` contains its text.
    package mutating func add(_ record: Record, content: Span<UInt8>) {
        guard record.session == session else { return }
        defer { if record.code == Record.Code.sessionReady { isReady = true } }
        began = began ?? record.time
        if let jid = record.jid {
            who = jid
        } else if let user = record.user {
            who = record.domain.map { "\(user) at \($0)" } ?? user
        }
        switch record.code {
        case Record.Code.sessionBegan:
            hasTap = Record.Beginning(of: record).source == nil
        case LoginStep.code: return addStep(record)
        case Record.Code.loginFailed:
            diagnosis = LoginDiagnosis(record)
            return
        case Record.Code.sessionEnded:
            ending = record.message.map { "\($0)" }
            return
        default: break
        }
        if Self.isDrawn(record.kind), let direction = record.direction {
            return add(.item(item(record, direction, content)), at: record.time)
        }
        // Notes are shown at level info and above, and lines of client logs also at verbose.
        guard record.level <= .info || record.code == "foreign-line", let message = record.message else { return }
        add(.remark(record.level, "\(message)"), at: record.time)
    }

    private static func isDrawn(_ kind: Record.Kind) -> Bool {
        switch kind {
        case .streamOpen, .stanza, .element, .streamClose: true
        case .session, .declaration, .whitespace, .tls, .bytes, .note, .error, .chunk, .frame: false
        }
    }

    private mutating func addStep(_ record: Record) {
        guard let details = record.details, let name = details[LoginStep.code]?.text else { return }
        let condition = record.condition.map { ": \($0)" } ?? ""
        let duration = record.roundTrip.map { ", \(LineBuffer.duration($0))" } ?? ""
        add(.loginStep(LoginStep.Result(details), text: name + condition + duration), at: record.time)
    }

    private mutating func add(_ content: Row.Content, at time: Timestamp) {
        guard rows.count < Self.maximumRows else {
            omitted += 1
            return
        }
        let row = Row(time: time, content: content)
        rows.append(row)
    }

    /// Returns whether an item is a keepalive; remembers the ids of pings to recognise their answers.
    private mutating func isKeepAlive(_ record: Record, _ content: Span<UInt8>) -> Bool {
        guard let range = record.name, record.condition == nil else { return false }
        let name = content.slice(range)
        if record.kind == .element { return name.equals("r") || name.equals("a") }
        guard name.equals("iq"), let id = record.id.map({ content.slice($0).string() }) else { return false }
        guard record.payloadNamespace == .ping else { return pings.remove(id) != nil }
        if pings.count < Self.maximumRows { pings.insert(id) }
        return true
    }

    private mutating func item(_ record: Record, _ direction: Direction, _ content: Span<UInt8>) -> Item {
        var line = LineBuffer()
        var form = TextForm()
        form.appendHead(record, content, direction, to: &line)
        let label = String(decoding: line.bytes, as: UTF8.self)
        var item = Item(
            from: Lane(direction.source),
            to: Lane(direction.destination),
            label: String(label.drop { $0 == " " })
        )
        item.isKeepAlive = isKeepAlive(record, content) && (record.action ?? Record.answered) == Record.answered
        item.isFailure = record.level <= .error || record.condition != nil
        if record.code == "inferred" {
            item.mark = "inferred"
            item.isInferred = true
        } else if record.origin == .tap {
            item.from = .tap
            item.to = record.leg.map { Lane($0) } ?? item.to
            item.mark = "xmpptap"
        } else if record.action == Record.answered {
            item.to = .tap
        } else if let action = record.action {
            item.mark = record.rule.map { "\(action) \($0)" } ?? action
            item.isStopped = ["dropped", "refused", "cut", "half-closed", "reset"].contains { action.hasPrefix($0) }
            if item.isStopped { item.to = .tap }
        }
        return item
    }
}

extension SequenceDiagram.Row {
    fileprivate var isKeepAlive: Bool { if case .item(let item) = content { item.isKeepAlive } else { false } }

}

/// Diagrams of the sessions in files, in the order of their first records.
package struct SequenceDiagrams: Sendable {
    /// Maximum number of sessions if none are selected.
    package static let maximumCount = 50
    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    /// The sessions that are not drawn.
    private var others: Set<RunNumbers.Session> = []

    /// The diagrams.
    package private(set) var all: [SequenceDiagram] = []

    /// Number of sessions that are not drawn.
    package var omitted: Int { others.count }

    /// Creates diagrams of the sessions with these numbers; an empty set selects the first ``maximumCount`` sessions.
    package init(of wanted: Set<UInt64>) { self.wanted = wanted }

    /// Assigns the following records to the run of the header.
    package mutating func add(_ header: RecordHeader) { runs.add(header) }

    /// Adds a record.
    package mutating func add(_ line: RecordLine) {
        let number = line.record.session
        guard number > 0, wanted.isEmpty || wanted.contains(number) else { return }
        let key = runs.session(of: line.record)
        let place = places[key, default: all.count]
        if place == all.count {
            guard place < max(Self.maximumCount, wanted.count) else {
                others.insert(key)
                return
            }
            places[key] = place
            all.append(SequenceDiagram(session: number))
        }
        all[place].add(line.record, content: line.content.span)
    }
}
