internal import TapRecord
internal import TapRules

/// The value of `--log-to`: `PATH[,format=text|compact|json|pretty][,SPEC][,filter=EXPRESSION]`.
struct LogDestination: Hashable {
    enum Form: String, Hashable, CaseIterable {
        /// One human-readable line per record.
        case text
        /// One JSON object per record and line.
        case json
        /// Text with indented XML.
        case pretty
        /// Rows of columns, for a terminal.
        case compact
    }

    /// The file; `-` is standard output.
    let path: String
    /// The format. Default: text.
    var form = Form.text
    /// The selection of records. Default: info.
    var spec = LogSpec(level: .info)
    /// The filter for records; nil shows all.
    var filter: RecordFilter?
}

extension LogDestination {
    /// Parses the value. The path ends at the first comma; the filter extends to the end.
    init(_ text: String) throws(Failure) {
        let (text, filter) = try RecordFilter.split(text)
        let words = text.split(separator: ",", omittingEmptySubsequences: false)
        let path = words.first.map(String.init) ?? ""
        guard !path.isEmpty else {
            throw .usage("the path is missing; write it first, as in tap.log,format=json,verbose")
        }
        guard !path.hasPrefix("format="), !path.hasPrefix("filter="), (try? LogSpec(path)) == nil else {
            throw .usage("the path must come first, as in tap.log,\(text); for a file named \(path) write ./\(path)")
        }

        // Replace other words by spaces, so that errors of the specification show the right column.
        var spec = String(repeating: " ", count: path.count + 1)
        var form: Form?
        for word in words.dropFirst() {
            if word.hasPrefix("format=") {
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
        self.init(path: path, form: form ?? .text, filter: filter)
        while let last = spec.last, last == " " { spec.removeLast() }
        guard !spec.isEmpty else { return }
        // Remove the comma after the last word.
        spec.removeLast()
        do throws(LogSpecError) {
            self.spec = try LogSpec(spec)
        } catch {
            throw .usage(error.description)
        }
    }
}

extension RecordFilter {
    static func typed(_ text: String) throws(Failure) -> RecordFilter {
        do throws(FilterFault) {
            return try checked(text)
        } catch {
            throw .usage(error.description)
        }
    }

    private static func checked(_ text: String) throws(FilterFault) -> RecordFilter {
        let filter = try RecordFilter(text)
        for warning in filter.warnings { TypedWarnings.append("filter: \(warning)") }
        return filter
    }

    /// Splits a text at `,filter=`, and parses the filter.
    static func split(_ text: String, of flag: String = "") throws(Failure) -> (text: String, filter: RecordFilter?) {
        let mark = ",filter="
        guard let range = text.firstRange(of: mark) else { return (text, nil) }
        do throws(FilterFault) {
            return (String(text[..<range.lowerBound]), try checked(String(text[range.upperBound...])))
        } catch {
            throw .usage("\(flag)filter=: \(error)")
        }
    }
}
