internal import Glibc
internal import TapRecord
internal import TapSecurity
internal import TapStore

/// The avatars of a store as a table.
struct AvatarTable {
    let avatars: [StoredAvatar]

    /// Returns the lines, without control characters.
    func lines(_ style: OutputStyle) -> [String] {
        let rows = avatars.map { avatar in
            [
                avatar.contact, avatar.type.rawValue, "\(avatar.size)", avatar.hash.hexadecimal,
                avatar.first.stamp(in: .system),
                avatar.last.stamp(in: .system),
            ]
        }
        return TextTable(
            header: ["CONTACT", "TYPE", "BYTES", "HASH", "FIRST", "LAST"],
            rows: rows,
            numeric: [2],
            flexible: [0, 3],
            optional: [4],
            narrowest: [0: 16]
        ).lines(style)
    }
}

extension StoredAvatar {
    /// The avatar as a JSON object.
    var json: String {
        LineBuffer.object { line in
            line.field("contact", contact)
            line.field("type", type.rawValue)
            line.field("bytes", size)
            line.field("hash", hash.hexadecimal)
            line.field("first", first.text)
            line.field("last", last.text)
        }
    }

    /// The name of the picture's file: no part of it was chosen by a contact.
    var fileName: String { "\(hash.hexadecimal).\(type.ending)" }
}

/// Pictures or vCards that are written to a folder, each once. Files that exist are not replaced.
final class ProfileFiles {
    private let folder: String
    private var names: Set<String> = []
    /// Number of files written, and of those that existed.
    private var (written, existing) = (0, 0)

    /// Creates the folder if it does not exist.
    init(_ folder: String) throws(Failure) {
        self.folder = folder
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure(folder) }
    }

    /// Returns what was done, as a sentence.
    ///
    /// - Parameter kind: The kind of the files, as a singular.
    func summary(_ kind: String) -> String {
        let old = existing == 0 ? "" : ", \(Plural.of(existing, kind)) there already"
        return "\(Plural.of(written, kind)) written to \(folder)\(old)"
    }

    /// Writes a file, readable by this user only, unless it was written before.
    ///
    /// - Parameter contents: Returns the contents; nil if there is nothing to write.
    func write(named name: String, _ contents: () throws(Failure) -> [UInt8]?) throws(Failure) {
        guard !names.contains(name), let bytes = try contents() else { return }
        names.insert(name)
        let path = "\(folder)/\(name)"
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            guard errno == EEXIST else { throw Self.failure(path) }
            return existing += 1
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else {
                let failure = Self.failure(path)
                close(file)
                // Otherwise the next attempt would take it for a whole file.
                unlink(path)
                throw failure
            }
            rest = rest.dropFirst(max(0, count))
        }
        close(file)
        written += 1
    }

    private static func failure(_ path: String) -> Failure {
        .file("cannot write \(Console.escaped(path)): \(String(cString: strerror(errno)))")
    }
}
