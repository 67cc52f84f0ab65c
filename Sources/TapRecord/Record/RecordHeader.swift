/// The first line of a JSON log or capture, and of every part that was opened later: it describes the contents and the
/// program.
public struct RecordHeader: Sendable, Hashable {
    /// The version of the schema that this program writes, and the newest it reads.
    package static let currentVersion: Int64 = 1

    /// Version of the schema.
    package var version = Self.currentVersion
    /// Name and version of the program.
    public var tool: String
    /// The time at which the file was opened.
    package var time: Timestamp
    /// The ``LogSpec`` that selected the records.
    public var level: String
    /// The filter that selected the records, if any.
    package var filter: String?
    /// Whether the file should contain every record up to verbose, with its chunks, and has dropped none so far.
    package var isComplete: Bool
    /// The redaction policy.
    package var redaction: RedactionPolicy
    /// A random identifier that all files of one run share, and no other run has.
    package var run: String
    /// The number of records that the same log of the same run has written before this header, in this file or others;
    /// nil if an older program did not record it.
    package var recordsBefore: UInt64?
    /// The only session whose records the file contains; nil for all.
    package var session: UInt64?
    /// The trigger of a file that contains only records around matches; nil for all records.
    package var trigger: Trigger?

    /// The selection of records around matches.
    package struct Trigger: Sendable, Hashable {
        /// The filter that defines a match.
        package var condition: String
        /// The number of records of the same session before and after a match.
        package var before, after: Int

        /// Creates a trigger for a filter.
        package init(condition: String, before: Int, after: Int) {
            self.condition = condition
            self.before = before
            self.after = after
        }
    }

    /// Creates the header of a file of this program.
    public init(
        tool: String,
        time: Timestamp,
        level: String,
        filter: String? = nil,
        isComplete: Bool,
        redaction: RedactionPolicy,
        run: String,
        recordsBefore: UInt64? = nil,
        session: UInt64? = nil
    ) {
        self.tool = tool
        self.time = time
        self.level = level
        self.filter = filter
        self.isComplete = isComplete
        self.redaction = redaction
        self.run = run
        self.recordsBefore = recordsBefore
        self.session = session
    }

    /// Appends the header as a line.
    public func append(to line: inout LineBuffer) {
        var timestamps = TimestampWriter()
        line.openObject()
        line.field("xtap", Int(version))
        line.field("tool", tool)
        line.field("time")
        line.append(0x22)
        timestamps.append(time, to: &line)
        line.append(0x22)
        line.field("level", level)
        line.field("filter")
        if let filter { line.appendJSONString(filter) } else { line.append("null") }
        if let trigger {
            line.field("when", trigger.condition)
            line.field("before", trigger.before)
            line.field("after", trigger.after)
        }
        line.field("complete", isComplete)
        line.field("redaction", redaction.rawValue)
        line.field("run", run)
        if let recordsBefore { line.field("records_before", recordsBefore) }
        if let session { line.field("session", session) }
        line.closeObject()
        line.endLine()
    }

    /// Returns whether a line is a header of any version: an object whose first field is `xtap`.
    package static func isHeader(_ line: RawSpan) -> Bool {
        var reader = JSONReader(line)
        guard (try? reader.next()) == .objectStart, case .name(let name)? = try? reader.next() else { return false }
        return reader.matches(name, "xtap")
    }

    /// Returns whether a line that may be incomplete begins like a header of this program.
    package static func beginsAsHeader(_ line: RawSpan) -> Bool {
        let beginning = Array("{\"xtap\":".utf8)
        return line.withUnsafeBytes {
            !$0.isEmpty && $0.prefix(beginning.count).elementsEqual(beginning.prefix($0.count))
        }
    }

    /// Reads a header line; unknown fields are ignored.
    ///
    /// A header of a newer schema version needs no other field than the version, so that the error can name the
    /// version.
    package init(json line: RawSpan) throws(RecordLineError) {
        self.init(
            tool: "",
            time: Timestamp(nanoseconds: 0),
            level: "",
            isComplete: false,
            redaction: .secrets,
            run: ""
        )
        do throws(JSONError) {
            try read(line)
        } catch {
            throw RecordLineError(.notJSON(error))
        }
        guard version > 0 else { throw RecordLineError(.badField("xtap")) }
    }

    private mutating func setTrigger(_ body: (inout Trigger) -> Void) {
        var changed = trigger ?? Trigger(condition: "", before: 0, after: 0)
        body(&changed)
        trigger = changed
    }

    private mutating func read(_ line: RawSpan) throws(JSONError) {
        var reader = JSONReader(line)
        version = 0
        guard try reader.next() == .objectStart else { return }
        while case .name(let name) = try reader.next() {
            switch try reader.next() {
            case .number(let number) where reader.matches(name, "xtap"): version = reader.integer(number) ?? 0
            case .text(let text) where reader.matches(name, "tool"): tool = reader.string(text)
            case .text(let text) where reader.matches(name, "time"):
                time = Timestamp(rfc3339: reader.string(text)) ?? time
            case .text(let text) where reader.matches(name, "level"): level = reader.string(text)
            case .text(let text) where reader.matches(name, "filter"): filter = reader.string(text)
            case .text(let text) where reader.matches(name, "when"): setTrigger { $0.condition = reader.string(text) }
            case .number(let number) where reader.matches(name, "before"):
                setTrigger { $0.before = Int(clamping: reader.integer(number) ?? 0) }
            case .number(let number) where reader.matches(name, "after"):
                setTrigger { $0.after = Int(clamping: reader.integer(number) ?? 0) }
            case .bool(let flag) where reader.matches(name, "complete"): isComplete = flag
            case .text(let text) where reader.matches(name, "redaction"):
                redaction = RedactionPolicy(rawValue: reader.string(text)) ?? .secrets
            case .text(let text) where reader.matches(name, "run"): run = reader.string(text)
            case .number(let number) where reader.matches(name, "records_before"):
                recordsBefore = reader.integer(number).flatMap { UInt64(exactly: $0) }
            case .number(let number) where reader.matches(name, "session"):
                session = reader.integer(number).flatMap { UInt64(exactly: $0) }
            case .objectStart, .arrayStart: try reader.skipRest()
            default: break
            }
        }
        _ = try reader.next()
    }
}
