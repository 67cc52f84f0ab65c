internal import Glibc
internal import TapCapture

/// The folder of one run in a spool. It is locked while a program uses it.
final class SpoolFolder: Sendable {
    /// The contents of a folder's file `about`.
    struct About: Equatable {
        /// The address of the store, with the user.
        var store: String
        /// The number of shards.
        var shards: Int
        var run: String

        /// A random word of this folder, for the tokens of batches.
        var word = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        /// Whether the rows are those of recordings, of other runs.
        var isOfRecordings = false

        /// Whether the rows are for the same database and number of shards. Hosts and users may have changed.
        func canBeSent(with other: About) -> Bool {
            guard shards == other.shards, let store = try? ClickHouseAddress(store),
                let theirs = try? ClickHouseAddress(other.store)
            else { return false }
            return store.database == theirs.database
        }

        /// Whether the rows are for the same store without doubt: each shard has kept one of its hosts.
        func isFor(sameAs other: About) -> Bool {
            guard canBeSent(with: other), let store = try? ClickHouseAddress(store),
                let theirs = try? ClickHouseAddress(other.store)
            else { return false }
            return zip(store.shards, theirs.shards).allSatisfy { !Set($0).isDisjoint(with: $1) }
        }

        private static let first = "xmpptap-spool 2"

        /// Whether a text is that of another version.
        static func isOfOtherVersion(_ text: String) -> Bool {
            text.hasPrefix("xmpptap-spool ") && !text.hasPrefix("\(first)\n")
        }

        var text: String {
            let source = isOfRecordings ? "recordings" : "sessions"
            return "\(Self.first)\nstore \(store)\nshards \(shards)\nrun \(run)\nword \(word)\nsource \(source)\n"
        }

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
                let word = value("word"), let shards = value("shards").flatMap({ Int($0) }), shards > 0
            else { return nil }
            self.init(store: store, shards: shards, run: run)
            self.word = word
            isOfRecordings = value("source") == "recordings"
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
        var path = "\(spool)/\(about.run)"
        var number = 1
        while mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw FileBytes.fault(path) }
            number += 1
            path = "\(spool)/\(about.run)-\(number)"
        }
        guard let lock = try lockFolder(path) else { throw StoreFault(code: .locked, path: path) }
        let folder = SpoolFolder(path, about, lock: lock)
        do throws(StoreFault) {
            try FileBytes.write(Array(about.text.utf8), to: "\(path)/about")
        } catch {
            rmdir(path)
            throw error
        }
        return folder
    }

    /// The folders in a spool.
    struct Found {
        var free: [SpoolFolder] = []
        /// The paths of those that other programs use.
        var inUse: [String] = []
        /// The paths of those that another version of xmpptap has written.
        var others: [String] = []
    }

    /// Returns the folders of runs in a spool, or the folder itself if it is of one run.
    static func all(in spool: String) -> Found {
        var found = Found()
        let names = FileStatus(path: "\(spool)/about") == nil ? FileStatus.names(in: spool) ?? [] : []
        let paths = names.isEmpty ? [spool] : names.filter { !$0.hasPrefix(".") }.sorted().map { "\(spool)/\($0)" }
        for path in paths {
            guard let bytes = try? FileBytes.read("\(path)/about") else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let about = About(text) else {
                if About.isOfOtherVersion(text) { found.others.append(path) }
                continue
            }
            if let lock = try? lockFolder(path) {
                found.free.append(SpoolFolder(path, about, lock: lock))
            } else {
                found.inUse.append(path)
            }
        }
        return found
    }

    /// Returns the segments, in the order in which they were written.
    func segments() -> [SpoolSegment] {
        let places = (FileStatus.names(in: path) ?? []).compactMap(SpoolSegment.place)
        return places.sorted { $0.number < $1.number }.map { place in
            var segment = SpoolSegment(self, shard: place.shard, number: place.number)
            segment.bytes = Int64(clamping: FileStatus(path: segment.path)?.size ?? 0)
            // One that cannot be read now is read again when it is sent.
            try? segment.addFacts()
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

    /// Locks a folder, and returns the descriptor of the lock; nil if another program has locked it.
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
