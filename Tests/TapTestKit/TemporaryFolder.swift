import Foundation

/// A temporary folder for one test. It is removed with its contents when the last reference is released.
package final class TemporaryFolder: Sendable {
    /// The absolute path of the folder.
    package let path: String

    /// Creates an empty folder that only this user can access.
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

    /// Returns the path of an entry of the folder, which need not exist.
    package func path(of name: String) -> String {
        "\(path)/\(name)"
    }

    /// Writes a file that only this user can read, and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        let file = path(of: name)
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        return file
    }

    /// Returns the contents of a file in the folder, with invalid UTF-8 replaced; empty if the file does not exist.
    package func read(_ name: String) -> String {
        FileManager.default.contents(atPath: path(of: name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
