internal import TapRecord
internal import TapStore

/// Prints found messages as they come, or collects them if the format needs all of them.
struct SearchOutput {
    private enum Form {
        case transcript(Transcript)
        case json
        case csv
        case page(TranscriptPage)
    }

    private var form: Form
    private let hasContext: Bool
    /// The number of messages that match.
    private(set) var count = 0

    init(_ form: AuditForm, hasContext: Bool, colour: ColourChoice) {
        self.hasContext = hasContext
        switch form {
        case .text: self.form = .transcript(Transcript(paint: .forOutput(colour), hasContext: hasContext))
        case .json: self.form = .json
        case .csv:
            self.form = .csv
            Console.print(ShownMessage.csvNames(hasContext: hasContext))
        case .html: self.form = .page(TranscriptPage(zone: .system, hasContext: hasContext))
        }
    }

    /// Adds the next message; returns false if standard output has failed.
    mutating func add(_ shown: ShownMessage) -> Bool {
        if shown.isMatch { count += 1 }
        switch form {
        case .json: Console.print(shown.json(hasContext: hasContext))
        case .csv: Console.print(shown.csv(hasContext: hasContext))
        case .transcript(var transcript):
            // Without this, the messages would be copied.
            form = .json
            for line in transcript.add(shown) { Console.print(line) }
            form = .transcript(transcript)
        case .page(var page):
            form = .json
            page.add(shown)
            form = .page(page)
        }
        return Console.fault == nil
    }

    /// Prints what is left.
    ///
    /// - Parameters:
    ///   - facts: The filters and the files, for a page.
    ///   - warning: A warning about the result.
    mutating func end(_ facts: [TranscriptPage.Fact], warning: String?) {
        switch form {
        case .json, .csv: break
        case .transcript(var transcript): for line in transcript.end() { Console.print(line) }
        case .page(let page): page.write(facts, warning: warning) { Console.print($0) }
        }
    }
}
