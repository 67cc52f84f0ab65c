internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// The destination of `--capture`: a file, a folder, or a template for file names.
struct CapturePath {
    private let template: String
    /// The start time of the run in UTC, such as `20261121T172242Z`.
    private let stamp: String

    /// Whether each session has its own file.
    let isPerSession: Bool
    /// Whether the file is renamed when the session binds a resource.
    let hasJID: Bool

    /// Creates the path as typed, for a run that began at `time`.
    init(_ template: String, time: Timestamp) {
        self.init(template: template, stamp: String(time.text.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z")
    }

    /// Returns the same path, valid in every folder.
    var absolute: CapturePath {
        guard !template.hasPrefix("/") else { return self }
        let folder = ShellWords.absolute("").replacing("%", with: "%%")
        return CapturePath(template: folder + template, stamp: stamp)
    }

    private init(template: String, stamp: String) {
        (self.template, self.stamp) = (template, stamp)
        let places = Self.places(in: template)
        hasJID = places.contains("j")
        isPerSession = hasJID || places.contains("s")
    }

    /// Refuses unknown placeholders, and placeholders of sessions in the name of a folder, which would have to be
    /// created.
    static func check(_ template: String) throws(Failure) {
        if let wrong = places(in: template).first(where: { !"tsj%".contains($0) }) {
            throw .usage(
                "--capture: %\(wrong) is no placeholder; write %t (time), %s (session), %j (JID) or %% (a percent sign)"
            )
        }
        let folder = template.lastIndex(of: "/").map { String(template[...$0]) } ?? ""
        guard !isPerSession(folder) else {
            throw .usage("--capture: %s and %j belong in the name of the file, not in that of its folder")
        }
    }

    /// Returns whether a template results in one file per session.
    static func isPerSession(_ template: String) -> Bool { places(in: template).contains { $0 == "s" || $0 == "j" } }

    /// Returns the characters after the percent signs; a space represents a missing one.
    private static func places(in template: String) -> [Character] {
        var places: [Character] = []
        var rest = template[...]
        while let percent = rest.firstIndex(of: "%") {
            rest = rest[percent...].dropFirst()
            places.append(rest.popFirst() ?? " ")
        }
        return places
    }

    /// The destination, if the run has only one.
    var destination: RecordWriter.Destination {
        guard FileStatus(path: template)?.isFolder == true else { return .path(name(session: 0)) }
        let folder = template.hasSuffix("/") ? template : template + "/"
        return .numbered(stem: "\(folder)xmpptap-\(stamp)", ending: ".xtap")
    }

    /// Returns the name of a session's file; before a JID is bound, `session-N` replaces it.
    func name(session: UInt64, jid: String? = nil) -> String {
        var name = ""
        var rest = template[...]
        while let percent = rest.firstIndex(of: "%") {
            name += rest[..<percent]
            rest = rest[percent...].dropFirst()
            switch rest.popFirst() {
            case "t": name += stamp
            case "s": name += "\(session)"
            case "j": name += jid.map(Self.encoded) ?? "session-\(session)"
            default: name += "%"
            }
        }
        return name + rest
    }

    /// Returns the files of the run as words for a shell, with `*` in place of numbers and JIDs, and quoted if
    /// necessary.
    func shellWords(isRotated: Bool) -> String {
        if isPerSession { return pieces.map(ShellWords.quoted).joined(separator: "*") }
        guard case .numbered(let stem, let ending) = destination else {
            let name = ShellWords.quoted(name(session: 0))
            guard isRotated else { return name }
            let path = self.name(session: 0)
            guard let ending = RecordWriter.Destination.captureEnding(of: path) else { return "\(name).* \(name)" }
            return "\(ShellWords.quoted(String(path.dropLast(ending.count))))-[0-9]*\(ending) \(name)"
        }
        return "\(ShellWords.quoted(stem))-*\(ending)"
    }

    /// The parts of the name between the placeholders of sessions.
    private var pieces: [String] {
        var pieces = [""]
        var rest = template[...]
        while let percent = rest.firstIndex(of: "%") {
            pieces[pieces.count - 1] += rest[..<percent]
            rest = rest[percent...].dropFirst()
            switch rest.popFirst() {
            case "t": pieces[pieces.count - 1] += stamp
            case "s", "j": pieces.append("")
            default: pieces[pieces.count - 1] += "%"
            }
        }
        pieces[pieces.count - 1] += rest
        return pieces
    }

    /// Maximum length of an encoded JID in bytes: file names have at most 255 bytes.
    private static let maximumLength = 180

    /// Encodes a JID for a file name: percent-encoded except for letters, digits and `-._~@`, and cut to 180
    /// characters.
    static func encoded(_ jid: String) -> String {
        var name = ""
        for byte in jid.utf8 {
            let isPlain =
                switch byte {
                case 0x30...0x39, 0x40...0x5A, 0x61...0x7A, 0x2D, 0x5F, 0x7E: true
                // A dot must not be the first character: `.` and `..` are folders.
                case 0x2E: !name.isEmpty
                default: false
                }
            let next = isPlain ? String(UnicodeScalar(byte)) : "%\([byte].hexadecimal.uppercased())"
            guard name.utf8.count + next.utf8.count <= maximumLength else { break }
            name += next
        }
        return name
    }
}
