internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapStore

/// Searches a store or recordings, and prints the messages.
struct SearchRun {
    var query: SearchQuery
    var context: Int?
    var form: AuditForm
    var colour: ColourChoice
    var source: AuditSource

    mutating func run() throws(Failure) {
        let began = RunClock().now().time
        var output = SearchOutput(form, hasContext: context != nil, colour: colour)
        let isWhole =
            switch source.content {
            case .store(let place): try search(place, &output)
            case .recordings(let files): try search(files, &output)
            }
        let warning = isWhole ? nil : "Parts of the files could not be read: messages may be missing."
        output.end(facts(began), warning: warning)
        guard isWhole else { throw Failure.reported(.file) }
        guard output.count > 0 else {
            Console.printDiagnostic("no message found\(query.hint)")
            throw Failure.reported(.checkFailed)
        }
    }

    /// Searches a store, and prints messages as its rows come.
    private mutating func search(_ place: StorePlace, _ output: inout SearchOutput) throws(Failure) -> Bool {
        let progress = ProgressLine(after: .seconds(1))
        defer { progress.clear() }
        try Failure.ofStore { () throws(StoreFault) in
            let store = try place.open()
            query.times = try source.times(in: store)
            // A server takes some time to find it.
            var whole: ClosedRange<Timestamp>?
            func describe(_ time: Timestamp) -> String {
                if whole == nil { whole = (try? store.times()) ?? time...time }
                return Self.progress(time, of: whole, output.count)
            }
            var search = StoreSearch(store, query, context: context, hasDigests: form == .html)
            try search.show(onProgress: { progress.update(describe($0)) }, { output.add($0) })
        }
        return true
    }

    /// Returns the progress as text: the part of the store's time that was searched, and the messages found.
    private static func progress(_ time: Timestamp, of times: ClosedRange<Timestamp>?, _ count: Int) -> String {
        let found = "\(Plural.of(count, "message")) found"
        guard let times, times.lowerBound < times.upperBound else { return found }
        let (first, last) = (Double(times.lowerBound.nanoseconds), Double(times.upperBound.nanoseconds))
        let part = (Double(time.nanoseconds) - first) / (last - first)
        return "\(Int(min(max(part, 0), 1) * 100))% (\(time.day)), \(found)"
    }

    /// Searches recordings; returns whether they could be read completely.
    private mutating func search(_ files: [String], _ output: inout SearchOutput) throws(Failure) -> Bool {
        var content = StoredContent()
        content.includesXML = form == .html
        var found: FoundMessages?
        var maker: AuditRowMaker?
        // Without kinds, only messages with a body are looked for, which is an element of this name.
        let literals = query.kinds.isEmpty ? [Array("body".utf8)] : nil
        let stored = try StoredRecords(files, isReanalysed: false, literals: literals) { entry in
            switch entry {
            case .header(let header):
                if found == nil {
                    query.times = source.times(from: header.time)
                    found = FoundMessages(query, context: context, hasDigests: form == .html)
                }
                maker = AuditRowMaker(run: header.run, content: content)
            case .record(let line): if let row = maker?.row(line) { found?.add(row) }
            case .damage, .gap: return
            }
        }
        found?.show(query) { output.add($0) }
        return stored.isWhole
    }

    // MARK: Facts for a page

    private func facts(_ began: Timestamp) -> [TranscriptPage.Fact] {
        var facts: [TranscriptPage.Fact] = [("Words", query.text.isEmpty ? "any text" : query.text)]
        if !query.kinds.isEmpty { facts.append(("Kinds", query.kinds.map(\.name).sorted().joined(separator: ", "))) }
        if let account = query.account { facts.append(("Account", account)) }
        if let peer = query.peer { facts.append(("To or from", peer)) }
        if let (one, other) = query.pair { facts.append(("Between", "\(one) and \(other)")) }
        if let room = query.room { facts.append(("Room", room)) }
        if let times = query.times {
            if source.since != nil { facts.append(("Since", local(times.lowerBound))) }
            if source.until != nil { facts.append(("Until", local(times.upperBound))) }
        }
        if let context { facts.append(("Context", "\(Plural.of(context, "message")) before and after each")) }
        switch source.content {
        case .store(let place): facts.append(("Store", place.isFile ? Self.describe(place.name) : place.name))
        case .recordings(let files):
            facts.append(("Recordings", files.map(Self.describe).joined(separator: "\n")))
        }
        facts.append(("Searched", local(began)))
        facts.append(("Program", Version.text))
        return facts
    }

    private func local(_ time: Timestamp) -> String {
        "\(time.stamp(in: .system).replacing("T", with: " ", maxReplacements: 1)) (\(time.text))"
    }

    /// Returns the name and the size of a file, with the write-ahead log of a store.
    private static func describe(_ file: String) -> String {
        guard let status = FileStatus(path: file), status.isRegular else { return file }
        let log = FileStatus(path: "\(file)-wal")?.size ?? 0
        return "\(file), \(status.size + log) bytes"
    }
}
