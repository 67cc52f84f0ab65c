internal import TapNetwork
internal import TapRecord

/// Prints live records as the log does.
struct RecordPrinter {
    /// The least severe level of the records that it needs.
    var level: Level { filter.level }

    private let filter: LogFilter
    /// Nil prints the records as they come, in JSON.
    private var text: TextForm?
    private var line = LineBuffer()

    /// - Parameter level: The level to show; nil is what the log shows by default.
    init(level: Level?, isJSON: Bool) {
        let surroundings = LogPlan.Surroundings.current
        let isTerminal = surroundings.isTerminal && !isJSON
        let usual = isJSON ? LogSpec(level: .verbose) : LogSpec(level: .info, send: isTerminal, receive: isTerminal)
        filter = LogFilter(level.map { LogSpec(level: $0) } ?? usual)
        guard !isJSON else { return }
        var style = TextForm.Style()
        style.cutsLongTexts = isTerminal
        style.cutAdvice = "redirected to a file it is whole"
        style.isColoured = isTerminal && surroundings.wantsColour
        text = TextForm(style: style)
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

    private mutating func print(record data: [UInt8]) throws(ControlClientError) {
        guard text != nil else { return Console.write(data + [0x0A]) }
        let record: RecordLine
        do throws(RecordLineError) {
            record = try RecordLine(json: data.span.bytes)
        } catch {
            throw .unexpected("\(error)")
        }
        line.removeAll()
        text?.append(record.record, content: record.content.span, filter.shown(of: record.record), to: &line)
        Console.write(line.bytes)
    }
}
