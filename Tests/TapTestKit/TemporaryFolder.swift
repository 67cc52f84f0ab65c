import Foundation

/// A folder of a test's own, removed with everything in it when the last reference goes.
package final class TemporaryFolder: Sendable {
    /// Its absolute path.
    package let path: String

    /// Makes an empty folder that only this user can enter.
    package init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "xmpptap-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: url,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        path = url.path(percentEncoded: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of something in the folder, which need not exist.
    package func path(of name: String) -> String {
        "\(path)/\(name)"
    }

    /// Writes a file that only this user can read; gives its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        let file = path(of: name)
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        return file
    }

    /// The contents of a file in the folder, invalid UTF-8 replaced; empty if the file does not exist.
    package func read(_ name: String) -> String {
        FileManager.default.contents(atPath: path(of: name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
