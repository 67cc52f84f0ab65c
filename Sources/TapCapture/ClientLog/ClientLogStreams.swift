internal import TapCore
internal import TapRecord
internal import XMPPCore

/// One session of a log: takes the items in the order of the log, and infers missing stream headers.
struct ClientLogStreams {
    /// The result of reading an item.
    enum Result {
        /// The inputs for the session.
        case read([SourceInput.Kind])
        /// The XML cannot be read; the text is the reason, as a human-readable clause.
        case unreadable(String)
    }

    /// The directions with an open stream, whose header was read or inferred.
    private var open: Set<Direction> = []
    /// Whether the client's next header belongs to this session: it is the first one, or follows `<success/>`,
    /// `<proceed/>` or `<compressed/>`.
    private var isRestartDue = true
    /// The cause of the expected restart of the client's stream; nil if no restart is expected, or after
    /// `<compressed/>`.
    private(set) var restartCause: LogQueue.Cause?
    /// Whether a resource was bound: after that, the client does not authenticate and the server offers no features.
    private var isBound = false
    private var hasSent = false
    private var hasReceived = false
    /// Whether the log shows items of one direction only.
    var isOneSided: Bool { hasSent != hasReceived }
    private var isClosed = false
    /// The directions whose stream was closed.
    private var ended: Set<Direction> = []
    /// Whether both sides have closed their streams.
    var isClosedByBoth: Bool { ended.count == 2 }
    /// Whether the log shows the client's stream headers, and so will show the header of the next session.
    private var hasHeaders = false
    /// XML declarations that were read before their stream headers.
    private var declarations: [Direction: [UInt8]] = [:]
    /// The header of each direction, which declares prefixes for the items of the stream.
    private var headers: [Direction: [UInt8]] = [:]
    /// Whether a request to bind a resource, or the answer to such a request, was read.
    private var hasBindRequest = false
    /// The domain of the account, from the client's last header.
    private var domain: String?

    /// Whether an item belongs to a later session: the item is part of another login, the streams of this session are
    /// closed, or the client opens a stream unexpectedly.
    func isOver(before item: [UInt8], _ direction: Direction, _ role: LogEvidence.Role) -> Bool {
        if isBound, isOfLogin(role, direction) { return true }
        // Items that the server sent before it received the client's stream end still belong to this session. The same
        // is true of acknowledgements that the client sends after its own stream end.
        guard direction == .send, isClosed || !isRestartDue && declarations[.send] == nil else { return false }
        let tag = LogTag(item[...])
        let opensStream = tag.isDeclaration || role == .opening
        return opensStream || isClosed && !hasHeaders && !tag.isStreamEnd
    }

    /// Whether an item is part of a login, which occurs once in a session.
    private func isOfLogin(_ role: LogEvidence.Role, _ direction: Direction) -> Bool {
        switch role {
        case .features: direction == .recv
        case .request(let isLogin): direction == .send && isLogin
        default: false
        }
    }

    /// Processes an item of the log, and returns the inputs that it gives the session.
    mutating func process(_ direction: Direction, _ item: [UInt8], _ check: LogItemCheck) -> Result {
        var inputs: [SourceInput.Kind] = []
        for piece in LogItemRepair.pieces(item, direction) {
            switch process(direction, piece, check) {
            case .read(let more): inputs += more
            case .unreadable(let why): return .unreadable(why)
            }
        }
        return .read(inputs)
    }

    private mutating func process(_ direction: Direction, _ piece: LogItemRepair.Piece, _ check: LogItemCheck) -> Result
    {
        let tag = LogTag(piece.bytes[...])
        if direction == .send { hasSent = true } else { hasReceived = true }
        if tag.isDeclaration {
            // Some programs log the declaration apart from its header; together they begin one stream.
            declarations[direction] = piece.bytes
            return .read([])
        }
        if tag.isStreamHeader {
            let whole = (declarations.removeValue(forKey: direction) ?? []) + piece.bytes
            if let fault = LogItemCheck.fault(whole, after: []) { return .unreadable(fault.message) }
            open(direction)
            headers[direction] = whole
            if direction == .send {
                hasHeaders = true
                recordDomain(whole)
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
        } else if let fault = check.fault(bytes, after: header, isSent: direction == .send) {
            guard fault.code == .unboundPrefix else { return .unreadable(fault.message) }
            bytes = LogItemRepair.declaringPrefixes(bytes)
            if let fault = LogItemCheck.fault(bytes, after: header) { return .unreadable(fault.message) }
        }
        if !open.contains(direction) {
            let inferred =
                (declarations.removeValue(forKey: direction) ?? []) + InferredHeader.bytes(direction, domain: domain)
            open(direction)
            headers[direction] = inferred
            inputs.append(.received(direction, inferred, inferred: "the header is not in the log"))
        }
        // A header after a stanza opens another stream.
        if tag.isStanza { (isRestartDue, restartCause) = (false, nil) }
        recordRestart(tag, direction)
        if recordBinding(tag, direction) { inputs.append(.input(.joined())) }
        return .read(inputs + [.received(direction, bytes)])
    }

    // MARK: Streams

    private mutating func open(_ direction: Direction) {
        let isNew = open.insert(direction).inserted
        guard direction == .send else { return }
        // The server answers the client's new header with a new header.
        if !isNew { open.remove(.recv) }
        isRestartDue = false
        restartCause = nil
    }

    /// Records items that close a stream, or after which the streams restart: `<proceed/>`, `<success/>` (RFC 6120
    /// §4.3.3) and `<compressed/>` (XEP-0138 §3).
    private mutating func recordRestart(_ tag: LogTag, _ direction: Direction) {
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

    /// Records requests to bind a resource and their answers. Returns whether an item answers a request that the log does
    /// not show: then the log shows too little of the login to say how it went.
    private mutating func recordBinding(_ tag: LogTag, _ direction: Direction) -> Bool {
        guard tag.isNamed("iq"), !tag.isEmpty,
            LogTag(tag.content)["xmlns"]?.elementsEqual("urn:ietf:params:xml:ns:xmpp-bind".utf8) == true
        else { return false }
        defer { hasBindRequest = true }
        if direction == .recv, tag["type"]?.elementsEqual("result".utf8) == true { isBound = true }
        return direction == .recv && !hasBindRequest
    }

    private mutating func recordDomain(_ header: [UInt8]) {
        var reader = OpeningReader()
        if case .header(let to?) = reader.append(header.span) { domain = to }
    }
}
