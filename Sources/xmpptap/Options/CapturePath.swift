internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// Where `--capture` writes: a file, a folder, or a template of file names.
struct CapturePath {
    private let template: String
    /// The beginning of the run in UTC, as `20261121T172242Z`.
    private let stamp: String

    /// Whether each session has a file.
    let isPerSession: Bool
    /// Whether the file is named anew when the session binds a JID.
    let hasJID: Bool

    /// The path as typed, in a run that began at `time`.
    init(_ template: String, time: Timestamp) {
        self.template = template
        stamp = String(time.text.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
        let places = Self.places(in: template)
        hasJID = places.contains("j")
        isPerSession = hasJID || places.contains("s")
    }

    /// Refuses placeholders that do not exist, and those of a session in a folder: it would have to be made.
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

    /// Whether a template gives each session a file.
    static func isPerSession(_ template: String) -> Bool { places(in: template).contains { $0 == "s" || $0 == "j" } }

    /// The characters after percent signs; a space means that the character is missing.
    private static func places(in template: String) -> [Character] {
        var places: [Character] = []
        var rest = template[...]
        while let percent = rest.firstIndex(of: "%") {
            rest = rest[percent...].dropFirst()
            places.append(rest.popFirst() ?? " ")
        }
        return places
    }

    /// The one destination of a run.
    var destination: RecordWriter.Destination {
        guard FileStatus(path: template)?.isFolder == true else { return .path(name(session: 0)) }
        let folder = template.hasSuffix("/") ? template : template + "/"
        return .numbered(stem: "\(folder)xmpptap-\(stamp)", ending: ".xtap")
    }

    /// The name of a file; before a JID is bound, `session-N` replaces it.
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

    /// The files of the run as words of a shell: with `*` for numbers and JIDs, else quoted where necessary.
    func shellWords(isRotated: Bool) -> String {
        if isPerSession { return pieces.map(Self.quoted).joined(separator: "*") }
        guard case .numbered(let stem, let ending) = destination else {
            let name = Self.quoted(name(session: 0))
            guard isRotated else { return name }
            let path = self.name(session: 0)
            guard let ending = RecordWriter.Destination.captureEnding(of: path) else { return "\(name).* \(name)" }
            return "\(Self.quoted(String(path.dropLast(ending.count))))-[0-9]*\(ending) \(name)"
        }
        return "\(Self.quoted(stem))-*\(ending)"
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

    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._/@%+:,".utf8.contains(byte)
            }
        }
        return isPlain ? text : "'\(text.replacing("'", with: "'\\''"))'"
    }

    /// The longest that a JID becomes: names of files have up to 255 bytes.
    private static let longest = 180

    /// A JID as part of a file name: percent-encoded except letters, digits and `-._~@`, and cut to 180 characters.
    static func encoded(_ jid: String) -> String {
        var name = ""
        for byte in jid.utf8 {
            let isPlain =
                switch byte {
                case 0x30...0x39, 0x40...0x5A, 0x61...0x7A, 0x2D, 0x5F, 0x7E: true
                // Not at the beginning: `.` and `..` are folders.
                case 0x2E: !name.isEmpty
                default: false
                }
            let next = isPlain ? String(UnicodeScalar(byte)) : "%\([byte].hexadecimal.uppercased())"
            guard name.utf8.count + next.utf8.count <= longest else { break }
            name += next
        }
        return name
    }
}
