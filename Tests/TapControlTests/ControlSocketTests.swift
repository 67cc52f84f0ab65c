import Foundation
import Glibc
import TapTestKit
import Testing

@testable import TapControl

/// Path, permissions and replacement of the control socket.
struct ControlSocketTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func rights(_ path: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.posixPermissions] as? Int
    }

    private func code(_ path: String, isOwnFolder: Bool = false) -> ControlError.Code? {
        do throws(ControlError) {
            let socket = try ControlSocket(path, isOwnFolder: isOwnFolder)
            close(socket.descriptor)
            socket.remove()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `only its user can open the control socket, whatever the umask is`() throws {
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        defer { close(socket.descriptor) }
        #expect(rights(path) == 0o600)
        socket.remove()
        #expect(rights(path) == nil)
    }

    @Test func `a control socket in use is never replaced, but a stale one is`() throws {
        let path = folder.path(of: "c.sock")
        let first = try ControlSocket(path, isOwnFolder: false)
        #expect(code(path) == .inUse)
        close(first.descriptor)
        let second = try ControlSocket(path, isOwnFolder: false)
        defer { close(second.descriptor) }
        // The file is removed, and another program listens at the path.
        unlink(path)
        let third = try ControlSocket(path, isOwnFolder: false)
        defer { close(third.descriptor) }
        second.remove()
        #expect(rights(path) == 0o600)
        third.remove()
        #expect(rights(path) == nil)
    }

    @Test func `a path to a file, in a missing folder, or beyond the length limit is refused`() throws {
        let file = try folder.write("precious", to: "c.sock")
        #expect(code(file) == .notSocket)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
        #expect(code(folder.path(of: "missing/c.sock")) == .system(ENOENT))
        let long = folder.path(of: String(repeating: "x", count: 120))
        #expect(code(long) == .tooLong(limit: 107))
    }

    @Test func `the folder of sockets is created with mode 0700, and refused if others can access it`() throws {
        let own = folder.path(of: "xmpptap")
        #expect(code("\(own)/control-1.sock", isOwnFolder: true) == nil)
        #expect(rights(own) == 0o700)
        chmod(own, 0o755)
        #expect(code("\(own)/control-1.sock", isOwnFolder: true) == .foreignFolder)
        unlink(own)
        rmdir(own)
        symlink(folder.path, own)
        #expect(code("\(own)/control-1.sock", isOwnFolder: true) == .system(ENOTDIR))
    }

    @Test func `stale sockets in the folder are removed, and sockets in use are kept`() throws {
        let own = folder.path(of: "xmpptap")
        let stale = try ControlSocket("\(own)/control-1.sock", isOwnFolder: true)
        close(stale.descriptor)
        let live = try ControlSocket("\(own)/control-2.sock", isOwnFolder: true)
        defer { close(live.descriptor) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: own) == ["control-2.sock"])
        #expect(code("\(own)/control-3.sock", isOwnFolder: true) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: own) == ["control-2.sock"])
    }
}
