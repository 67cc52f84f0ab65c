import Foundation
import Glibc

/// A small file system in memory, which can be filled up.
package final class SmallDisk {
    package let path: String

    /// Mounts a file system; nil if this process may not.
    package init?(kilobytes: Int) throws {
        path = NSTemporaryDirectory() + "disk-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(kilobytes)k") == 0 else { return nil }
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
        rmdir(path)
    }

    package func file(_ name: String) -> String { path + "/" + name }

    /// Allows or forbids all writes; returns whether that is possible. No file must be open for writing.
    package func allowWrites(_ isAllowed: Bool) -> Bool {
        mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT | (isAllowed ? 0 : MS_RDONLY)), nil) == 0
    }

    /// Fills it, except for some pages.
    package func fill(leaving pages: Int) {
        let descriptor = open(file("filler"), O_CREAT | O_WRONLY, 0o600)
        let page = [UInt8](repeating: 0, count: 4096)
        while write(descriptor, page, page.count) == page.count {}
        var status = stat()
        fstat(descriptor, &status)
        ftruncate(descriptor, status.st_size - pages * 4096)
        close(descriptor)
    }

    /// Removes what ``fill(leaving:)`` wrote.
    package func empty() { unlink(file("filler")) }
}
