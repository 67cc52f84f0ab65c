internal import ArgumentParser
internal import TapRecord
internal import TapRules
internal import TapStore

/// `--store`: the audit store to which a command adds stanzas.
struct StoreOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keep all stanzas in this audit store, for search.",
            discussion: """
                A SQLite file, which is created if it does not exist, or clickhouse://USER@HOST:8123/DATABASE. Stanzas are \
                added to those that it has. A spec selects sessions, as in audit.sqlite,off,jid:juliet@example.org=info.
                """,
            valueName: "store[,spec][,filter=expression]"
        ),
        completion: .file(),
        transform: StoreOption.destination
    )
    var store: LogDestination?

    private static func destination(_ text: String) throws(Failure) -> LogDestination {
        let destination = try LogDestination(text)
        guard destination.path != "-" else { throw .usage("--store needs a file, as in --store audit.sqlite") }
        guard destination.form == .text else { throw .usage("--store has no format=; leave it out") }
        return destination
    }

    /// Returns the store as requested; nil without one.
    ///
    /// The groups are separate: the argument parser checks a group again for each one that it is in, in debug builds for seconds.
    ///
    /// - Throws: A ``Failure`` if a flag requires another one that is missing.
    func request(
        _ access: StoreAccessOptions,
        _ spool: SpoolOptions,
        _ content: StoredContentOptions,
        _ limits: StoreLimitOptions? = nil
    ) throws(Failure) -> StoreRequest? {
        let content = try content.content()
        guard let destination = store else {
            if let flag = content.flag ?? spool.flag ?? limits?.flag { throw .usage("\(flag) needs --store; add it") }
            return nil
        }
        var request = StoreRequest(
            destination: destination,
            place: try access.place(destination.path, spool: spool.configuration(of: destination.path)),
            content: content.content
        )
        if !request.place.isFile {
            guard limits?.size == nil else {
                throw .usage("--store-size is for files; --store-keep deletes the days of a server")
            }
            guard !content.content.includesAvatars else { throw .usage("--store-avatars is for files; leave it out") }
        }
        if let limits {
            request.limit = limits.limit
            request.isRequired = limits.isRequired
        }
        return request
    }
}

/// The flags of an audit store to which a running proxy adds its stanzas.
struct StoreLimitOptions: ParsableArguments {
    @Option(
        name: .customLong("store-keep"),
        help: ArgumentHelp("Delete stanzas from the audit store at this age (default: never).", valueName: "time"),
        transform: TimeSpan.age
    )
    var keepAge: Duration?

    @Option(
        name: .customLong("store-size"),
        help: ArgumentHelp(
            "Delete the oldest stanzas when the audit store is larger (default: never).",
            valueName: "size"
        ),
        transform: ByteSize.ofStore
    )
    var size: ByteSize?

    @Flag(
        name: .customLong("store-required"),
        help: "Close and refuse sessions while the audit store cannot be written."
    )
    var isRequired = false

    /// A flag that was given; nil if none was.
    var flag: String? {
        keepAge.map { _ in "--store-keep" } ?? size.map { _ in "--store-size" }
            ?? (isRequired ? "--store-required" : nil)
    }

    var limit: StoreLimit { StoreLimit(age: keepAge, bytes: size.map { Int64(clamping: $0.bytes) }) }
}

extension ByteSize {
    /// Parses the greatest size of an audit store.
    static func ofStore(_ text: String) throws(Failure) -> ByteSize {
        let size = try ByteSize(text)
        guard size.bytes >= 1_000_000 else { throw .usage("write a size of at least 1MB") }
        return size
    }

}

/// An audit store as requested by ``StoreOption``.
struct StoreRequest: Equatable {
    var destination: LogDestination
    var place: StorePlace
    var content = StoredContent()
    var limit = StoreLimit()
    /// Whether sessions are closed while the store cannot be written.
    var isRequired = false

    /// Opens the store for the records of files.
    func open() throws(Failure) -> RecordedRows {
        try Failure.ofStore { () throws(StoreFault) in
            try RecordedRows(
                place,
                spec: destination.spec,
                filter: destination.filter,
                content: content,
                onEvent: { [place] in SpoolReport.show($0, of: place.name) }
            )
        }
    }
}

/// The flags that select what an audit store contains of stanzas.
struct StoredContentOptions: ParsableArguments {
    @Flag(name: .customLong("store-xml"), help: "Keep the XML of each stanza in the audit store.")
    var includesXML = false

    @Flag(
        name: .customLong("store-avatars"),
        help: ArgumentHelp(
            "Keep avatars and vCards in the audit store.",
            discussion: "\"xmpptap store avatars\" lists them and writes them to files."
        )
    )
    var includesAvatars = false

    @Option(
        name: .customLong("store-bodies"),
        help: ArgumentHelp(
            "Texts of messages in the audit store (default: full).",
            discussion: """
                full: the texts and an index of their words. hash: the SHA-256 of each text, which shows whether a known \
                text was sent. off: only who wrote to whom and when.
                """,
            valueName: "full|hash|off"
        ),
        completion: .list(StoredContent.Bodies.allCases.map(\.rawValue)),
        transform: StoredContentOptions.bodies
    )
    var bodies: StoredContent.Bodies?

    private static func bodies(_ text: String) throws(Failure) -> StoredContent.Bodies {
        guard let bodies = StoredContent.Bodies(rawValue: text) else {
            throw .usage("'\(Console.escaped(text))' is not one of full, hash and off")
        }
        return bodies
    }

    @Option(
        name: .customLong("store-tap"),
        help: ArgumentHelp(
            "Name of this xmpptap in the audit store (default: the name of the machine; none for files).",
            valueName: "name"
        )
    )
    var tap: String?

    /// Returns the content, and a flag that was given; nil if none was.
    func content() throws(Failure) -> (content: StoredContent, flag: String?) {
        guard !includesXML || bodies ?? .full == .full else {
            throw .usage("--store-xml keeps the texts that --store-bodies leaves out; leave one out")
        }
        var content = StoredContent()
        content.includesXML = includesXML
        content.includesAvatars = includesAvatars
        content.bodies = bodies ?? .full
        content.tap = tap
        let flags = [
            includesXML ? "--store-xml" : nil, includesAvatars ? "--store-avatars" : nil,
            bodies.map { _ in "--store-bodies" }, tap.map { _ in "--store-tap" },
        ]
        return (content, flags.compactMap(\.self).first)
    }
}
