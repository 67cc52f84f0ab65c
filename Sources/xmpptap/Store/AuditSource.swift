internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapStore

/// A store or recordings, which give the same entries.
struct AuditSource {
    enum Content {
        case store(StorePlace)
        case recordings([String])
    }

    let content: Content
    let since: TimeBound?
    let until: TimeBound?

    /// Whether ``read(_:_:)`` yields stanzas in the order of their times.
    var isOrdered: Bool {
        switch content {
        case .store: true
        case .recordings: false
        }
    }

    /// Calls `body` with each stanza and each session that a query without words matches.
    ///
    /// - Returns: Whether the recordings could be read completely.
    func read(_ query: SearchQuery, _ body: (AuditEntry) -> Void) throws(Failure) -> Bool {
        var query = query
        let progress = ProgressLine(after: .seconds(1))
        defer { progress.clear() }
        switch content {
        case .store(let place):
            try Failure.ofStore { () throws(StoreFault) in
                let store = try place.open()
                query.times = try times(in: store)
                try store.rows(for: query) { row in
                    progress.update("\(row.time.day)")
                    body(.stanza(row))
                    return true
                }
                try store.sessions { if query.matches($0) { body(.session($0)) } }
            }
            return true
        case .recordings(let files):
            var sessions = SessionJoiner()
            let isWhole = try Self.read(
                files,
                { query.times = times(from: $0.time) },
                { maker, line in
                    switch maker.entry(line) {
                    case .stanza(let row): if query.matches(row) { body(.stanza(row)) }
                    case .session(let part):
                        guard let session = sessions.add(part), query.matches(session) else { return }
                        body(.session(session))
                    case .gap, nil: return
                    }
                }
            )
            for session in sessions.rest where query.matches(session) { body(.session(session)) }
            return isWhole
        }
    }

    /// Calls `begin` with the first header of recordings, and `body` with each record.
    private static func read(
        _ files: [String],
        _ begin: (RecordHeader) -> Void,
        _ body: (AuditRowMaker, borrowing RecordLine) -> Void
    ) throws(Failure) -> Bool {
        var maker: AuditRowMaker?
        let stored = try StoredRecords(files, isReanalysed: false) { entry in
            switch entry {
            case .header(let header):
                if maker == nil { begin(header) }
                maker = AuditRowMaker(run: header.run)
            case .record(let line): if let maker { body(maker, line) }
            case .damage, .gap: return
            }
        }
        return stored.isWhole
    }

    /// Returns the times of the query. Facts about a store are read only if they are needed.
    func times(in store: any AuditStore) throws(StoreFault) -> Range<Timestamp>? {
        guard since != nil || until != nil else { return nil }
        return times(from: try store.times()?.lowerBound)
    }

    func times(from beginning: Timestamp?) -> Range<Timestamp>? {
        let now = RunClock().now().time
        return TimeBound.range(since: since, until: until, beginning: beginning ?? now, now: now, in: .system)
    }
}
