internal import TapRecord

/// The value of `--log-to`: `PATH[,format=text|json|pretty][,SPEC][,filter=EXPRESSION]`.
struct LogDestination: Hashable {
    /// The format of a log.
    enum Form: String, Hashable, CaseIterable {
        /// One line for each record, for people.
        case text
        /// One JSON object for each record, a line each.
        case json
        /// Text with the XML indented.
        case pretty
    }

    /// The file; `-` is standard output.
    let path: String
    /// Its format. Default: text.
    var form = Form.text
    /// What it shows. Default: info.
    var spec = LogSpec(level: .info)

}

extension LogDestination {
    /// Parses `text`. The path ends at the first comma.
    init(_ text: String) throws(Failure) {
        let words = text.split(separator: ",", omittingEmptySubsequences: false)
        let path = words.first.map(String.init) ?? ""
        guard !path.isEmpty else {
            throw .usage("the path is missing; write it first, as in tap.log,format=json,verbose")
        }
        guard !path.hasPrefix("format="), !path.hasPrefix("filter="), (try? LogSpec(path)) == nil else {
            throw .usage("the path must come first, as in tap.log,\(text); for a file named \(path) write ./\(path)")
        }

        // Other words become spaces, so that the columns in the errors of the specification are right.
        var spec = String(repeating: " ", count: path.count + 1)
        var form: Form?
        for word in words.dropFirst() {
            if word.hasPrefix("filter=") {
                throw .usage("filter= is not supported in this version; leave it out")
            } else if word.hasPrefix("format=") {
                guard form == nil else { throw .usage("format= given more than once") }
                form = Form(rawValue: String(word.dropFirst("format=".count)))
                guard form != nil else {
                    let forms = Form.allCases.map(\.rawValue).joined(separator: ", ")
                    throw .usage("unknown log format '\(word)'; choose one of \(forms)")
                }
                spec += String(repeating: " ", count: word.count + 1)
            } else {
                spec += "\(word),"
            }
        }
        self.init(path: path, form: form ?? .text)
        while let last = spec.last, last == " " { spec.removeLast() }
        guard !spec.isEmpty else { return }
        // The comma after the last word.
        spec.removeLast()
        do throws(LogSpecError) {
            self.spec = try LogSpec(spec)
        } catch {
            throw .usage(error.description)
        }
    }
}
