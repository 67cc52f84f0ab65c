internal import Glibc
internal import TapCapture
internal import TapRecord

/// The folder of one run in a spool. It is locked while a program uses it.
final class SpoolFolder: Sendable {
    /// What the file `about` says of a folder.
    struct About: Equatable {
        /// The address of the store, with the user.
        var store: String
        /// The number of shards.
        var shards: Int
        var run: String

        /// Whether the rows are for the same database, by the same shards. Hosts and users can have changed.
        func canBeSent(with other: About) -> Bool {
            guard shards == other.shards, let store = try? ClickHouseAddress(store),
                let theirs = try? ClickHouseAddress(other.store)
            else { return false }
            return store.database == theirs.database
        }

        private static let first = "xmpptap-spool 1"

        var text: String { "\(Self.first)\nstore \(store)\nshards \(shards)\nrun \(run)\n" }

        init(store: String, shards: Int, run: String) {
            (self.store, self.shards, self.run) = (store, shards, run)
        }

        /// Reads the text of the file; nil if it is of another kind.
        init?(_ text: String) {
            let lines = text.split(separator: "\n")
            func value(_ name: String) -> String? {
                lines.first { $0.hasPrefix("\(name) ") }.map { String($0.dropFirst(name.utf8.count + 1)) }
            }
            guard lines.first == Self.first[...], let store = value("store"), let run = value("run"),
                let shards = value("shards").flatMap({ Int($0) }), shards > 0
            else { return nil }
            self.init(store: store, shards: shards, run: run)
        }
    }

    let path: String
    let about: About
    /// Keeps the folder locked.
    private let lock: Int32

    private init(_ path: String, _ about: About, lock: Int32) {
        (self.path, self.about, self.lock) = (path, about, lock)
    }

    deinit { close(lock) }

    /// Lets other programs use the folder.
    func release() { flock(lock, LOCK_UN) }

    /// Creates the folder of a run, and the spool if it does not exist.
    static func create(in spool: String, _ about: About) throws(StoreFault) -> SpoolFolder {
        try makeFolders(spool)
        // Several programs can read one recording: its run is that of all of them.
        var path = "\(spool)/\(about.run)"
        var number = 1
        while mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw FileBytes.fault(path) }
            number += 1
            path = "\(spool)/\(about.run)-\(number)"
        }
        let lock = try lockFolder(path)
        try FileBytes.write(Array(about.text.utf8), to: "\(path)/about")
        guard let lock else { throw StoreFault(code: .locked, path: path) }
        return SpoolFolder(path, about, lock: lock)
    }

    /// Opens and locks the folder of an earlier run; nil if another program uses it, or it is no such folder.
    static func open(_ path: String) -> SpoolFolder? {
        guard let bytes = try? FileBytes.read("\(path)/about"),
            let about = About(String(decoding: bytes, as: UTF8.self)),
            let lock = try? lockFolder(path)
        else { return nil }
        return SpoolFolder(path, about, lock: lock)
    }

    /// Returns the folders of earlier runs in a spool that no other program uses, or the folder itself if it is of one run.
    static func all(in spool: String) -> [SpoolFolder] {
        if let folder = open(spool) { return [folder] }
        let names = (FileStatus.names(in: spool) ?? []).filter { !$0.hasPrefix(".") }.sorted()
        return names.compactMap { open("\(spool)/\($0)") }
    }

    /// Returns the segments, in the order in which they were written. Of their facts, only size and time are known.
    func segments() -> [SpoolSegment] {
        let places = (FileStatus.names(in: path) ?? []).compactMap(SpoolSegment.place)
        return places.sorted { $0.number < $1.number }.map { place in
            var segment = SpoolSegment(self, shard: place.shard, number: place.number)
            let status = FileStatus(path: segment.path)
            segment.bytes = Int64(clamping: status?.size ?? 0)
            segment.time = status.map { Timestamp(nanoseconds: Int64($0.modified) * 1_000_000_000) }
            return segment
        }
    }

    /// Removes the folder if only the file `about` is left.
    func removeIfEmpty() {
        let rest = (FileStatus.names(in: path) ?? []).filter { $0 != "." && $0 != ".." }
        guard rest == ["about"] else { return }
        unlink("\(path)/about")
        rmdir(path)
    }

    /// Returns the descriptor of the locked file `about`'s folder; nil if another program has locked it.
    private static func lockFolder(_ path: String) throws(StoreFault) -> Int32? {
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw FileBytes.fault(path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    private static func makeFolders(_ path: String) throws(StoreFault) {
        var place = path.hasPrefix("/") ? "" : "."
        for part in path.split(separator: "/") {
            place += "/\(part)"
            guard mkdir(place, 0o700) == 0 || errno == EEXIST else { throw FileBytes.fault(place) }
        }
    }
}
