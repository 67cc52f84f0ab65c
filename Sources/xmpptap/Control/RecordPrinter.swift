internal import TapNetwork
internal import TapRecord

/// Prints live records as the log does.
struct RecordPrinter: ~Copyable {
    /// The least severe level of the records that it needs.
    var level: Level { filter.level }

    /// Whether it shows the texts of messages.
    let showsBodies: Bool

    private let filter: LogFilter
    /// With neither form records are printed as they come, in JSON.
    private var text: TextForm?
    private var compact: CompactForm?
    private var line = LineBuffer()

    /// - Parameters:
    ///   - level: The level to show; nil is what the log shows by default.
    ///   - form: How; nil is as the log does by default.
    ///   - showsBodies: Whether it shows the texts of messages; nil is as the log does by default.
    init(level: Level?, form: LogDestination.Form?, colour: ColourChoice = .auto, showsBodies: Bool? = nil) {
        let surroundings = Surroundings.current
        let form = form ?? surroundings.usualForm
        let showsBodies = showsBodies ?? form.usuallyShowsBodies(in: surroundings)
        self.showsBodies = showsBodies
        filter = LogFilter(level.map { LogSpec(level: $0) } ?? form.usualSpec(in: surroundings))
        let isColoured = colour.isColoured(in: surroundings)
        switch form {
        case .json: break
        case .compact:
            var style = CompactForm.Style()
            style.isColoured = isColoured
            // Records are shown as they come.
            style.foldsLogins = false
            style.showsBodies = showsBodies
            style.zone = .system
            style.isASCII = surroundings.isTerminal && !Console.hasUTF8
            compact = CompactForm(style: style)
        case .text, .pretty:
            var style = TextForm.Style()
            style.cutsLongTexts = surroundings.isTerminal
            style.cutAdvice = "redirect to a file to see it whole"
            style.isColoured = isColoured
            style.indentsXML = form == .pretty
            style.showsBodies = showsBodies
            style.zone = .system
            text = TextForm(style: style)
        }
    }

    /// Prints an event of the proxy's records; false where standard output takes no more.
    mutating func print(_ event: ServerSentEvent) throws(ControlClientError) -> Bool {
        switch event.name {
        case "record": try print(record: event.data)
        case "lost": Self.complain(lost: event)
        default: break
        }
        return Console.fault == nil
    }

    /// Says how many records an event `lost` is about.
    static func complain(lost event: ServerSentEvent) {
        let count = (try? JSONValue(event.data.span.bytes))?["records"]?.integer ?? 0
        Console.complain("\(count) records lost: they came faster than they could be printed")
    }

    /// Prints what the form holds back.
    mutating func finish() {
        line.removeAll()
        compact?.flush(to: &line)
        Console.write(line.bytes)
    }

    private mutating func print(record data: [UInt8]) throws(ControlClientError) {
        guard text != nil || compact != nil else { return Console.write(data + [0x0A]) }
        let record: RecordLine
        do throws(RecordLineError) {
            record = try RecordLine(json: data.span.bytes)
        } catch {
            throw .unexpected("\(error)")
        }
        line.removeAll()
        let shown = filter.shown(of: record.record)
        text?.append(record.record, content: record.content.span, shown, to: &line)
        if let width = Console.width { compact?.style.width = width }
        compact?.append(record.record, content: record.content.span, shown, to: &line)
        Console.write(line.bytes)
    }
}
