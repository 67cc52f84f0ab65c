internal import Glibc

/// The files that a writer creates, one after the other, and their rotation.
///
/// For a path, `x.log` is the file being written, `x.log.1` is the newest rotated file and `x.log.N` the oldest, as
/// with logrotate. Numbered files, and rotated files of a capture `x.xtap` (`x-0001.xtap`, `x-0002.xtap`), keep their
/// names: the highest number is the newest file, so the names sort by time.
struct FileSeries {
    private(set) var destination: RecordWriter.Destination
    private let rotation: RecordWriter.Rotation?
    /// The number of the numbered file opened last; 0 if there is none.
    private var number = 0
    /// The numbers of the numbered files that this writer has created and not removed, the oldest first.
    private var own: [Int] = []

    init(_ destination: RecordWriter.Destination, _ rotation: RecordWriter.Rotation?) {
        self.destination = destination
        self.rotation = rotation
    }

    /// Opens the next numbered file, or the file at the path.
    mutating func open() throws(WriterFault) -> OutputFile {
        guard case .numbered(let stem, let ending) = destination else { return try OutputFile.open(destination) }
        repeat { number += 1 } while access(RecordWriter.Destination.path(stem, number, ending), F_OK) == 0
        let file = try OutputFile.open(.path(RecordWriter.Destination.path(stem, number, ending)))
        own.append(number)
        return file
    }

    /// Renames the file at the path, so that a new one can be opened. A capture gets its next number. Any other file
    /// becomes `.1`, after the number of each rotated file is increased by one; the oldest file is removed. Numbered
    /// files are not renamed.
    func shift() throws(WriterFault) {
        guard case .path(let path) = destination, let keep = rotation?.keep else { return }
        guard keep > 0 else {
            guard unlink(path) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
            return
        }
        if let (stem, ending) = Self.capture(path) {
            var numbers = Self.numbers(of: stem, ending)
            let next = (numbers.last ?? 0) + 1
            try move(path, RecordWriter.Destination.path(stem, next, ending), of: path)
            numbers.append(next)
            for number in numbers.prefix(max(0, numbers.count - keep)) {
                unlink(RecordWriter.Destination.path(stem, number, ending))
            }
            return
        }
        // Only files below the first unused number have to be renamed.
        var count = 0
        while count < keep, access("\(path).\(count + 1)", F_OK) == 0 { count += 1 }
        for number in stride(from: min(count, keep - 1), to: 0, by: -1) {
            try move("\(path).\(number)", "\(path).\(number + 1)", of: path)
        }
        try move(path, "\(path).1", of: path)
    }

    private func move(_ from: String, _ to: String, of path: String) throws(WriterFault) {
        guard Glibc.rename(from, to) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
    }

    /// Removes rotated files that are too old, and numbered files of this writer that exceed the number to keep.
    mutating func prune() {
        guard let rotation else { return }
        switch destination {
        case .standardOutput: return
        case .path(let path):
            if let (stem, ending) = Self.capture(path) {
                for number in rotation.keepAge == nil ? [] : Self.numbers(of: stem, ending) {
                    let file = RecordWriter.Destination.path(stem, number, ending)
                    if FileStatus(path: file).map(isOld) == true { unlink(file) }
                }
                return
            }
            var place = 1
            while let file = FileStatus(path: "\(path).\(place)") {
                if isOld(file) { unlink("\(path).\(place)") }
                place += 1
            }
        case .numbered(let stem, let ending):
            while own.count - 1 > rotation.keep {
                unlink(RecordWriter.Destination.path(stem, own.removeFirst(), ending))
            }
            pruneFolder(of: stem, ending)
        }
    }

    private func isOld(_ file: FileStatus) -> Bool {
        guard let age = rotation?.keepAge, file.isRegular, file.owner == geteuid() else { return false }
        return time(nil) - file.modified > age.components.seconds
    }

    /// Removes the old numbered files of all runs, except files that another writer has locked. A file belongs to the
    /// series if its name differs from this writer's names only in digits.
    private func pruneFolder(of stem: String, _ ending: String) {
        guard rotation?.keepAge != nil else { return }
        let (folder, base) = Self.parts(stem)
        let shape = Self.shape("\(base)-1\(ending)")
        for name in FileStatus.names(in: folder) ?? [] where Self.shape(name) == shape {
            guard let file = FileStatus(path: folder + name), isOld(file) else { continue }
            let descriptor = Glibc.open(folder + name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { continue }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(folder + name) }
            close(descriptor)
        }
    }

    /// Returns the stem and the ending of a capture's name; nil for other names.
    private static func capture(_ path: String) -> (stem: String, ending: String)? {
        RecordWriter.Destination.captureEnding(of: path).map { (String(path.dropLast($0.count)), $0) }
    }

    /// Returns the numbers of the existing files `STEM-0001ENDING` and so on, in ascending order.
    private static func numbers(of stem: String, _ ending: String) -> [Int] {
        let (folder, base) = parts(stem)
        let names = FileStatus.names(in: folder) ?? []
        return names.compactMap { name -> Int? in
            guard name.hasPrefix("\(base)-"), name.hasSuffix(ending), name.count > base.count + 1 + ending.count else {
                return nil
            }
            let number = Int(name.dropFirst(base.count + 1).dropLast(ending.count))
            return number.flatMap { RecordWriter.Destination.path(base, $0, ending) == name ? $0 : nil }
        }
        .sorted()
    }

    /// Returns the folder of a path, with a slash at the end, and the file name.
    private static func parts(_ path: String) -> (folder: String, base: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("./", path) }
        return (String(path[...slash]), String(path[path.index(after: slash)...]))
    }

    /// Returns a name with every digit replaced by 0. Several digits after the last hyphen are replaced by a single
    /// 0.
    private static func shape(_ name: String) -> String {
        let zeros = name.map { $0.isASCII && $0.isNumber ? "0" : $0 }
        guard let hyphen = zeros.lastIndex(of: "-") else { return String(zeros) }
        let number = zeros[(hyphen + 1)...].prefix { $0 == "0" }
        return String(zeros[...hyphen]) + "0" + String(zeros[number.endIndex...])
    }

    /// Renames the file, with a number appended if the name is taken: `a.xtap`, `a-2.xtap`.
    ///
    /// - Returns: The name; nil if the destination is not a path, or cannot be renamed.
    mutating func rename(to name: String) -> String? {
        guard case .path(let path) = destination else { return nil }
        let ending = RecordWriter.Destination.captureEnding(of: name) ?? ""
        for number in 1...9999 {
            let target = number == 1 ? name : "\(name.dropLast(ending.count))-\(number)\(ending)"
            // link(2) fails if a file has the name; rename(2) would replace it.
            if link(path, target) == 0 {
                unlink(path)
                destination = .path(target)
                return target
            }
            guard errno == EEXIST else { return nil }
        }
        return nil
    }
}
