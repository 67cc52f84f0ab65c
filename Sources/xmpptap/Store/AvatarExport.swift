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
    fileprivate var fileName: String { "\(hash.hexadecimal).\(type.ending)" }
}

/// Pictures that are written to a folder, each once. Files that exist are not replaced.
final class PictureFiles {
    private let folder: String
    private var names: Set<String> = []
    /// Number of pictures written, and of those whose file existed.
    private(set) var (written, existing) = (0, 0)

    /// Creates the folder if it does not exist.
    init(_ folder: String) throws(Failure) {
        self.folder = folder
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure(folder) }
    }

    /// Returns whether the picture of an avatar was written, or existed.
    func has(_ avatar: StoredAvatar) -> Bool { names.contains(avatar.fileName) }

    /// Writes the picture of an avatar, readable by this user only.
    func write(_ bytes: [UInt8], _ avatar: StoredAvatar) throws(Failure) {
        names.insert(avatar.fileName)
        let path = "\(folder)/\(avatar.fileName)"
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
                // Otherwise the next attempt would take it for the picture.
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
