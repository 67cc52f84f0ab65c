public import TapRecord

/// A session as a diagram of who said what to whom: what passed between the client and the server, what this program did
/// about it, and the steps of the timeline beside it.
///
/// Made of records, like every view: take them in order by ``note(_:content:)``, then draw it.
public struct SequenceDiagram: Sendable {
    /// Rows that are drawn; of a longer session the beginning, since that is where a login is.
    static let mostRows = 600

    /// One of the three.
    enum Lane: Sendable, Hashable {
        case client, tap, server

        init(_ leg: Leg) { self = leg == .client ? .client : .server }
    }

    /// Something to draw in a line of its own.
    struct Row: Sendable, Hashable {
        enum Content: Sendable, Hashable {
            /// An item from one to another.
            case item(Item)
            /// A step of the timeline that has ended.
            case loginStep(LoginStep.Result?, words: String)
            /// A remark or an error, of this level.
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
        /// What this program did: made it, changed it, dropped it, inferred it; nil where it let it pass.
        var mark: String?
        var isInferred = false
        /// It did not reach the other side.
        var isStopped = false
        /// It says that something failed.
        var isFailure = false
    }

    /// The number of the session within its run.
    public let session: UInt64
    /// Who it is of: a full JID, or as much as is known.
    private(set) var who = "a client"
    private(set) var rows: [Row] = []
    /// This program stood between the two, rather than read what one of them had logged.
    private(set) var hasTap = true
    /// Rows that were not kept.
    private(set) var omitted = 0
    private(set) var diagnosis: LoginDiagnosis?
    private(set) var ending: String?
    private(set) var began: Timestamp?

    /// The diagram of a session, with nothing in it yet.
    public init(session: UInt64) { self.session = session }

    /// Takes a record of the session; `content` holds its texts.
    public mutating func note(_ record: Record, content: Span<UInt8>) {
        guard record.session == session else { return }
        began = began ?? record.time
        if let jid = record.jid {
            who = jid
        } else if let user = record.user {
            who = record.domain.map { "\(user) at \($0)" } ?? user
        }
        switch record.code {
        case Record.Code.sessionBegan:
            hasTap = Record.Beginning(of: record).source == nil
        case LoginStep.code: return noteStep(record)
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
        // What is said at info and above is worth a line; of verbose only what a client's log says itself.
        guard record.level <= .info || record.code == "foreign-line", let message = record.message else { return }
        add(.remark(record.level, "\(message)"), at: record.time)
    }

    private static func isDrawn(_ kind: Record.Kind) -> Bool {
        switch kind {
        case .streamOpen, .stanza, .element, .streamClose: true
        case .session, .declaration, .whitespace, .tls, .bytes, .note, .error, .chunk: false
        }
    }

    private mutating func noteStep(_ record: Record) {
        guard let details = record.details, let name = details[LoginStep.code]?.text else { return }
        let condition = record.condition.map { ": \($0)" } ?? ""
        let duration = record.roundTrip.map { ", \(LineBuffer.duration($0))" } ?? ""
        add(.loginStep(LoginStep.Result(details), words: name + condition + duration), at: record.time)
    }

    private mutating func add(_ content: Row.Content, at time: Timestamp) {
        guard rows.count < Self.mostRows else {
            omitted += 1
            return
        }
        rows.append(Row(time: time, content: content))
    }

    private func item(_ record: Record, _ direction: Direction, _ content: Span<UInt8>) -> Item {
        var line = LineBuffer()
        TextForm().appendHead(record, content, direction, to: &line)
        let label = String(decoding: line.bytes, as: UTF8.self)
        var item = Item(
            from: Lane(direction.source),
            to: Lane(direction.destination),
            label: String(label.drop { $0 == " " })
        )
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
            item.isStopped = ["dropped", "bounced", "blackholed"].contains { action.hasPrefix($0) }
            if item.isStopped { item.to = .tap }
        }
        return item
    }
}

/// The sessions in files as diagrams, in the order of their first records.
public struct SequenceDiagrams: Sendable {
    /// The most sessions that are drawn where none are named.
    public static let most = 50

    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    /// The sessions that are not drawn.
    private var others: Set<RunNumbers.Session> = []

    /// The diagrams.
    public private(set) var all: [SequenceDiagram] = []

    /// How many sessions are not drawn.
    public var omitted: Int { others.count }

    /// Diagrams of the sessions of these numbers; of none is of the first ``most``.
    public init(of wanted: Set<UInt64>) { self.wanted = wanted }

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record.
    public mutating func note(_ line: RecordLine) {
        let number = line.record.session
        guard number > 0, wanted.isEmpty || wanted.contains(number) else { return }
        let key = runs.session(of: line.record)
        let place = places[key, default: all.count]
        if place == all.count {
            guard place < max(Self.most, wanted.count) else {
                others.insert(key)
                return
            }
            places[key] = place
            all.append(SequenceDiagram(session: number))
        }
        all[place].note(line.record, content: line.content.span)
    }
}
