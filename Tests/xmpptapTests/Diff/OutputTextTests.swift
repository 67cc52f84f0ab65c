import Foundation
import TapTestKit
import Testing

@testable import xmpptap

@Suite struct OutputTextTests {
    @Test func `a file is replaced with its permissions, also behind a link, without leaving other files`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("old", to: "a.txt")
        chmod(file, 0o640)
        let link = folder.path(of: "link")
        symlink(file, link)
        let open = try #require(FileHandle(forReadingAtPath: file))
        try OutputText.write("new", to: link)
        #expect(folder.read("a.txt") == "new")
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o640)
        #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        // Who reads the old one reads all of it.
        #expect(try open.readToEnd() == Data("old".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["a.txt", "link"])
    }

    @Test func `a failed write leaves no files`() throws {
        let folder = try TemporaryFolder()
        #expect(throws: Failure.self) { try OutputText.write("new", to: folder.path(of: "no/a.txt")) }
        #expect(throws: Failure.self) { try OutputText.write("new", to: folder.path) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        try OutputText.write("new", to: "/dev/null")
    }
}
