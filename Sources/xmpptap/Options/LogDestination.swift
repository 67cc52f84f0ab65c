internal import TapRecord

/// What stands behind `--log-to`: `PATH[,format=text|json|pretty][,SPEC][,filter=EXPRESSION]`.
struct LogDestination: Hashable {
    /// How a log is written.
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
    /// Its form; text unless another is said.
    var form = Form.text
    /// What it shows; info unless something else is said.
    var spec = LogSpec(level: .info)

    /// A destination known beforehand.
    init(path: String, form: Form = .text, spec: LogSpec = LogSpec(level: .info)) {
        self.path = path
        self.form = form
        self.spec = spec
    }

    /// Reads what was typed. The path ends at the first comma.
    init(_ text: String) throws(Failure) {
        let words = text.split(separator: ",", omittingEmptySubsequences: false)
        path = words.first.map(String.init) ?? ""
        guard !path.isEmpty else { throw .usage("it begins with a path, as in tap.log,format=json,verbose") }
        guard !path.hasPrefix("format="), !path.hasPrefix("filter="), (try? LogSpec(path)) == nil else {
            throw .usage("the path comes first, as in tap.log,\(text); a file of that name is ./\(path)")
        }

        // What is no word of the specification becomes space, so that the columns of its complaints are right.
        var spec = String(repeating: " ", count: path.count + 1)
        var form: Form?
        for word in words.dropFirst() {
            if word.hasPrefix("filter=") {
                throw .usage("filter= comes with the rules, which this version does not have yet; leave it out")
            } else if word.hasPrefix("format=") {
                guard form == nil else { throw .usage("format= is said twice; leave one of them out") }
                form = Form(rawValue: String(word.dropFirst("format=".count)))
                guard form != nil else {
                    let forms = Form.allCases.map(\.rawValue).joined(separator: ", ")
                    throw .usage("'\(word)' is no form of a log; the forms are \(forms)")
                }
                spec += String(repeating: " ", count: word.count + 1)
            } else {
                spec += "\(word),"
            }
        }
        if let form { self.form = form }
        while let last = spec.last, last == " " { spec.removeLast() }
        guard !spec.isEmpty else { return }
        // The comma behind the last word, which is one too many.
        spec.removeLast()
        do throws(LogSpecError) {
            self.spec = try LogSpec(spec)
        } catch {
            throw .usage(error.description)
        }
    }
}
