internal import TapCore
internal import TapRecord
internal import XMPPCore

/// One session of a log: its items in the order of the log, and the stream headers that it lacks.
struct ClientLogStreams {
    /// What became of an item.
    enum Result {
        /// The inputs of the session.
        case read([SourceInput.Kind])
        /// The log's XML cannot be read; why, as a clause for people.
        case unreadable(String)
    }

    /// The directions in which a stream is open: a header was there or was inferred.
    private var open: Set<Direction> = []
    /// A `<success/>`, `<proceed/>` or `<compressed/>` has passed: the client's next header belongs to this session.
    private var isRestartDue = true
    /// Why the client's next header restarts its stream, unless it reconnects; nil if it does neither.
    private(set) var restartCause: LogQueue.Cause?
    /// A resource was bound: the client authenticates no more, and the server offers nothing more.
    private var isBound = false
    private var hasSent = false
    private var hasReceived = false
    /// The log shows items of one side only.
    var isOneSided: Bool { hasSent != hasReceived }
    private var isClosed = false
    /// The directions whose stream was closed.
    private var ended: Set<Direction> = []
    /// Whether both sides have closed their streams.
    var isClosedByBoth: Bool { ended.count == 2 }
    /// The log shows the client's own headers, and will show that of its next session too.
    private var hasHeaders = false
    /// Declarations that wait for their headers.
    private var declarations: [Direction: [UInt8]] = [:]
    /// The header of each direction, which declares prefixes for its items.
    private var headers: [Direction: [UInt8]] = [:]
    /// The log shows a request to bind a resource.
    private var asksToBind = false
    /// The domain of the account, as the client's last header named it.
    private var domain: String?

    /// Whether an item belongs to a session that comes after this one: this one's streams are closed, or the client
    /// opens one unexpectedly.
    func isOver(before item: [UInt8], _ direction: Direction, _ role: LogEvidence.Role) -> Bool {
        if isBound, isOfLogin(role, direction) { return true }
        // What the server had sent before it heard of the end still belongs to this one, and so do the acknowledgements
        // that a client sends behind its own end.
        guard direction == .send, isClosed || !isRestartDue && declarations[.send] == nil else { return false }
        let tag = LogTag(item[...])
        let opensStream = tag.isDeclaration || role == .opening
        return opensStream || isClosed && !hasHeaders && !tag.isStreamEnd
    }

    /// Whether an item is a part of a login, which a session has once.
    private func isOfLogin(_ role: LogEvidence.Role, _ direction: Direction) -> Bool {
        switch role {
        case .features: direction == .recv
        case .request(let isLogin): direction == .send && isLogin
        default: false
        }
    }

    /// Takes an item of the log; gives what the session gets of it.
    mutating func take(_ direction: Direction, _ item: [UInt8], _ check: LogItemCheck) -> Result {
        var inputs: [SourceInput.Kind] = []
        for piece in LogItemRepair.pieces(item, direction) {
            switch take(direction, piece, check) {
            case .read(let more): inputs += more
            case .unreadable(let why): return .unreadable(why)
            }
        }
        return .read(inputs)
    }

    private mutating func take(_ direction: Direction, _ piece: LogItemRepair.Piece, _ check: LogItemCheck) -> Result {
        let tag = LogTag(piece.bytes[...])
        if direction == .send { hasSent = true } else { hasReceived = true }
        if tag.isDeclaration {
            // Some log it apart from its header: both begin one stream.
            declarations[direction] = piece.bytes
            return .read([])
        }
        if tag.isStreamHeader {
            let whole = (declarations.removeValue(forKey: direction) ?? []) + piece.bytes
            if let fault = LogItemCheck.fault(whole, behind: []) { return .unreadable(fault.words) }
            open(direction)
            headers[direction] = whole
            if direction == .send {
                hasHeaders = true
                noteDomain(whole)
            }
            return .read([.received(direction, whole, inferred: piece.inferred)])
        }
        var bytes = piece.bytes
        var inputs: [SourceInput.Kind] = []
        let header =
            headers[direction].flatMap { open.contains(direction) ? $0 : nil }
            ?? InferredHeader.bytes(direction, domain: domain)
        if tag.isStreamEnd {
            if !bytes.elementsEqual("</stream:stream>".utf8) { bytes = Array("</stream:stream>".utf8) }
        } else if let fault = check.fault(bytes, behind: header, isSent: direction == .send) {
            guard fault.code == .unboundPrefix else { return .unreadable(fault.words) }
            bytes = LogItemRepair.declaringPrefixes(bytes)
            if let fault = LogItemCheck.fault(bytes, behind: header) { return .unreadable(fault.words) }
        }
        if !open.contains(direction) {
            let inferred =
                (declarations.removeValue(forKey: direction) ?? []) + InferredHeader.bytes(direction, domain: domain)
            open(direction)
            headers[direction] = inferred
            inputs.append(.received(direction, inferred, inferred: "the header is not in the log"))
        }
        // A header behind a stanza is that of another stream.
        if tag.isStanza { (isRestartDue, restartCause) = (false, nil) }
        noteRestart(tag, direction)
        if noteBinding(tag, direction) { inputs.append(.input(.joined())) }
        return .read(inputs + [.received(direction, bytes)])
    }

    // MARK: Streams

    private mutating func open(_ direction: Direction) {
        let isNew = open.insert(direction).inserted
        guard direction == .send else { return }
        // The server answers with its own stream.
        if !isNew { open.remove(.recv) }
        isRestartDue = false
        restartCause = nil
    }

    /// The streams restart after `<proceed/>`, `<success/>` (RFC 6120 §4.3.3) and `<compressed/>` (XEP-0138 §3).
    private mutating func noteRestart(_ tag: LogTag, _ direction: Direction) {
        if tag.isStreamEnd {
            isClosed = true
            ended.insert(direction)
        }
        guard direction == .recv else { return }
        switch String(decoding: tag.local, as: UTF8.self) {
        case "success" where tag["xmlns"]?.elementsEqual("urn:xmpp:sasl:2".utf8) != true: restartCause = .login
        case "proceed": restartCause = .tls
        case "compressed": restartCause = nil
        default: return
        }
        isRestartDue = true
        open = []
        isBound = false
    }

    /// Notes requests to bind a resource; returns whether an item answers one that the log does not show. Then it shows too little of the
    /// login to say how it went.
    private mutating func noteBinding(_ tag: LogTag, _ direction: Direction) -> Bool {
        guard tag.isNamed("iq"), !tag.isEmpty,
            LogTag(tag.content)["xmlns"]?.elementsEqual("urn:ietf:params:xml:ns:xmpp-bind".utf8) == true
        else { return false }
        defer { asksToBind = true }
        if direction == .recv, tag["type"]?.elementsEqual("result".utf8) == true { isBound = true }
        return direction == .recv && !asksToBind
    }

    private mutating func noteDomain(_ header: [UInt8]) {
        var reader = OpeningReader()
        if case .header(let to?) = reader.append(header.span) { domain = to }
    }
}
