public import TapRecord
internal import XMPPCore

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

    /// Something to draw in a separate line.
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
        /// The item itself, of a long one the beginning.
        var xml = ""
        /// What this program did: made it, changed it, dropped it, inferred it; nil where it let it pass.
        var mark: String?
        var isInferred = false
        /// It did not reach the other side.
        var isStopped = false
        /// It says that something failed.
        var isFailure = false
        /// An acknowledgement of stream management or its request, or a ping that is answered: one of many alike.
        var isKeepAlive = false
    }

    /// Rows that are drawn one by one, or folded to one line.
    struct Part: Hashable {
        var rows: Range<Int>
        var isFolded: Bool
    }

    /// Keepalives that follow each other are folded, from so many rows on.
    private static let fewestFolded = 3
    /// Bytes of an item that are kept.
    private static let mostXML = 16 << 10

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
    /// The ids of pings without an answer yet (XEP-0199).
    private var pings: Set<String> = []
    private var isReady = false

    /// How much of the next record is kept.
    enum Detail: Comparable {
        /// What failed or is a warning, and how the session ended.
        case failures
        /// That, and the login.
        case logins
        /// Every row, without the XML of items.
        case labels
        /// Every row.
        case whole
    }

    private var detail = Detail.whole
    /// What was left out because of it: rows, and XML of rows that are kept.
    private(set) var cut = SequenceDiagrams.Cut()
    /// Bytes of all rows, as a page takes them.
    private(set) var byteCount = 0

    /// The rows, where several keepalives follow each other as one part.
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

    /// The diagram of a session, with nothing in it yet.
    public init(session: UInt64) { self.session = session }

    /// Takes a record of the session; `content` holds its texts.
    public mutating func note(_ record: Record, content: Span<UInt8>) { note(record, content: content, .whole) }

    /// Takes a record of the session, and of it what there is room for.
    mutating func note(_ record: Record, content: Span<UInt8>, _ detail: Detail) {
        guard record.session == session else { return }
        self.detail = detail
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
        let row = Row(time: time, content: content)
        guard detail >= .labels || detail == .logins && !isReady || row.isFailure else {
            omitted += 1
            cut.rows += 1
            return
        }
        rows.append(row)
        byteCount += row.byteCount
    }

    /// Whether an item is a keepalive; a ping is noted by its id until its answer comes.
    private mutating func isKeepAlive(_ record: Record, _ content: Span<UInt8>) -> Bool {
        guard let range = record.name, record.condition == nil else { return false }
        let name = content.slice(range)
        if record.kind == .element { return name.equals("r") || name.equals("a") }
        guard name.equals("iq"), let id = record.id.map({ content.slice($0).string() }) else { return false }
        guard record.payloadNamespace == .ping else { return pings.remove(id) != nil }
        if pings.count < Self.mostRows { pings.insert(id) }
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
        if record.xml != nil, detail < .whole {
            cut.items += 1
        } else if let xml = record.xml {
            let whole = content.slice(xml)
            let kept = whole.extracting(..<min(whole.count, Self.mostXML))
            item.xml = kept.string() + (kept.count < whole.count ? "…" : "")
        }
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
            item.isStopped = ["dropped", "bounced", "blackholed"].contains { action.hasPrefix($0) }
            if item.isStopped { item.to = .tap }
        }
        return item
    }
}

extension SequenceDiagram.Row {
    fileprivate var isKeepAlive: Bool { if case .item(let item) = content { item.isKeepAlive } else { false } }

    /// It says that something failed, or may.
    fileprivate var isFailure: Bool {
        switch content {
        case .item(let item): item.isFailure
        case .loginStep(let result, _): result == .failed || result == nil
        case .remark(let level, _): level <= .warn
        }
    }

    /// About what it takes in a page: tags around it, a label twice, and XML with a tenth of it escaped.
    fileprivate var byteCount: Int {
        switch content {
        case .item(let item): 150 + 2 * item.label.utf8.count + item.xml.utf8.count * 3 / 2
        case .loginStep(_, let words): 60 + words.utf8.count
        case .remark(_, let words): 60 + words.utf8.count
        }
    }
}

/// The sessions in files as diagrams, in the order of their first records.
public struct SequenceDiagrams: Sendable {
    /// The most sessions of an image where none are named.
    public static let most = 50
    /// The most sessions of a page, where they are closed until they are looked at.
    public static let mostOnPage = 10_000
    /// Bytes of a page, about. From half of them on the XML of items is left out, from three quarters on the rows behind
    /// logins, too, and then all but failures and warnings.
    public static let roomOnPage = 16 << 20

    /// What there was no room for.
    public struct Cut: Sendable, Hashable {
        /// Items without their XML.
        public internal(set) var items = 0
        /// Rows.
        public internal(set) var rows = 0

        /// Whether nothing is missing.
        public var isEmpty: Bool { items == 0 && rows == 0 }
    }

    private let most: Int
    private let room: Int
    /// Bytes of all diagrams.
    private var byteCount = 0
    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    /// The sessions that are not drawn.
    private var others: Set<RunNumbers.Session> = []

    /// The diagrams.
    public private(set) var all: [SequenceDiagram] = []

    /// How many sessions are not drawn.
    public var omitted: Int { others.count }

    /// What there was no room for in the sessions that are drawn.
    public private(set) var cut = Cut()

    /// Diagrams of the sessions of these numbers; of none is of the first ``most``, or ``mostOnPage``.
    public init(of wanted: Set<UInt64>, for document: DiagramForm.Document) {
        self.init(of: wanted, for: document, room: Self.roomOnPage)
    }

    /// The same, with so many bytes of room.
    init(of wanted: Set<UInt64>, for document: DiagramForm.Document, room: Int) {
        self.wanted = wanted
        most = document == .svg ? Self.most : Self.mostOnPage
        self.room = room
    }

    /// What is kept of the next record.
    private var detail: SequenceDiagram.Detail {
        switch byteCount {
        case ..<(room / 2): .whole
        case ..<(room / 4 * 3): .labels
        case ..<room: .logins
        default: .failures
        }
    }

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record.
    public mutating func note(_ line: RecordLine) {
        let number = line.record.session
        guard number > 0, wanted.isEmpty || wanted.contains(number) else { return }
        let key = runs.session(of: line.record)
        let place = places[key, default: all.count]
        if place == all.count {
            guard place < max(most, wanted.count) else {
                others.insert(key)
                return
            }
            places[key] = place
            all.append(SequenceDiagram(session: number))
        }
        let before = (all[place].byteCount, all[place].cut)
        all[place].note(line.record, content: line.content.span, detail)
        byteCount += all[place].byteCount - before.0
        cut.items += all[place].cut.items - before.1.items
        cut.rows += all[place].cut.rows - before.1.rows
    }
}
