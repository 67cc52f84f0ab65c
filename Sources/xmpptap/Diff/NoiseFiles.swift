internal import Glibc
internal import TapReplay

/// Noise files: which ones there are, and how they are written.
enum NoiseFiles {
    /// Where a recording's noise file lies: beside it, with `.noise` in the place of its ending.
    static func path(beside recording: String) -> String {
        let slash = recording.lastIndex(of: "/").map { recording.index(after: $0) } ?? recording.startIndex
        guard let dot = recording[slash...].lastIndex(of: "."), dot > slash else { return recording + ".noise" }
        return recording[..<dot] + ".noise"
    }

    /// The rules of the files that were named, then of those beside the recordings, where there are any.
    static func rules(_ named: [String], beside recordings: [String]) throws(Failure) -> NoiseRules {
        var files = named
        for recording in recordings where recording != "-" {
            let path = path(beside: recording)
            if !files.contains(path), access(path, F_OK) == 0 { files.append(path) }
        }
        var rules: [NoiseRules.Rule] = []
        for file in files { rules += try read(file) }
        return NoiseRules(rules)
    }

    private static func read(_ file: String) throws(Failure) -> [NoiseRules.Rule] {
        let text = try TextFile.read(file)
        do throws(NoiseFile.Faults) {
            return try NoiseFile.rules(text, file: file)
        } catch {
            throw .usage(error.faults.map(\.description).joined(separator: "\n"))
        }
    }

    /// Adds rules to a file, which is made where there is none; what stands in it stays.
    static func add(_ rules: [NoiseRules.Rule], to path: String) throws(Failure) {
        let text =
            access(path, F_OK) == 0
            ? try TextFile.read(path) : "# What differs between two recordings of one session.\n"
        let gap = text.isEmpty || text.hasSuffix("\n") ? "" : "\n"
        try OutputText.write(text + gap + NoiseFile.text(rules), to: path)
    }
}

/// Small files, written whole.
enum OutputText {
    /// Replaces a file; `-` is standard output.
    static func write(_ text: String, to path: String) throws(Failure) {
        guard path != "-" else { return Console.write(Array(text.utf8)) }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .file("cannot write \(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .file("cannot write \(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }
}
