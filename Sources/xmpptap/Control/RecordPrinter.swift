internal import TapNetwork
internal import TapRecord

/// Prints live records in the same form as the log.
struct RecordPrinter: ~Copyable {
    /// The most detailed level of records that the printer needs.
    var level: Level { filter.level }

    /// Whether the text of messages is shown.
    let showsBodies: Bool

    private let filter: LogFilter
    /// The text form; if this and ``compact`` are nil, records are printed as JSON.
    private var text: TextForm?
    private var compact: CompactForm?
    private var line = LineBuffer()

    /// - Parameters:
    ///   - level: The level to show; nil selects the default of the log.
    ///   - form: The output form; nil selects the default of the log.
    ///   - showsBodies: Whether to show the text of messages; nil selects the default of the log.
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
            // Do not fold logins: records must be shown immediately.
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

    /// Prints an event of the proxy; returns false if standard output cannot be written.
    mutating func print(_ event: ServerSentEvent) throws(ControlClientError) -> Bool {
        switch event.name {
        case "record": try print(record: event.data)
        case "lost": Self.reportLoss(lost: event)
        default: break
        }
        return Console.fault == nil
    }

    /// Reports how many records were lost, according to a `lost` event.
    static func reportLoss(lost event: ServerSentEvent) {
        let count = (try? JSONValue(event.data.span.bytes))?["records"]?.integer ?? 0
        Console.printDiagnostic("\(count) records lost: they came faster than they could be printed")
    }

    /// Prints the lines that the form has held back.
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
