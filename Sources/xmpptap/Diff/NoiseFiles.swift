internal import Glibc
internal import TapCapture
internal import TapReplay

/// Finds, reads and extends noise files.
enum NoiseFiles {
    /// Returns the path of a recording's noise file: in the same folder, with the same name and the extension `.noise`.
    /// The extension of a compression is ignored.
    static func path(beside recording: String) -> String {
        let ending = Compression(path: recording)?.ending ?? ""
        let recording = String(recording.dropLast(ending.count))
        let slash = recording.lastIndex(of: "/").map { recording.index(after: $0) } ?? recording.startIndex
        guard let dot = recording[slash...].lastIndex(of: "."), dot > slash else { return recording + ".noise" }
        return recording[..<dot] + ".noise"
    }

    /// Returns the rules of the named files, followed by those of the noise files beside the recordings, if they exist.
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

    /// Appends rules to a file; creates the file if it does not exist.
    static func add(_ rules: [NoiseRules.Rule], to path: String) throws(Failure) {
        let text =
            access(path, F_OK) == 0
            ? try TextFile.read(path) : "# What differs between two recordings of one session.\n"
        let gap = text.isEmpty || text.hasSuffix("\n") ? "" : "\n"
        try OutputText.write(text + gap + NoiseFile.text(rules), to: path)
    }
}

/// Writes files that are replaced as a whole.
enum OutputText {
    /// Replaces the content of a file by a text; `-` is standard output. See ``replace(_:_:)``.
    static func write(_ text: String, to path: String) throws(Failure) {
        guard path != "-" else { return Console.write(Array(text.utf8)) }
        try replace(path) { draft throws(Failure) in
            let file = try Draft(draft, as: path)
            try file.write(Array(text.utf8))
            try file.finish()
        }
    }

    /// Replaces a file; other programs never see a partly written one.
    ///
    /// `body` writes to an empty draft in the same folder, which is renamed afterwards. A target that is not a regular
    /// file, such as a pipe, is written directly.
    static func replace(_ path: String, _ body: (_ draft: String) throws(Failure) -> Void) throws(Failure) {
        let status = FileStatus(path: path)
        guard status?.isRegular ?? true else { return try body(path) }
        // Replace the target of a symbolic link, not the link.
        let place = realpath(path, nil).map { resolved in
            defer { free(resolved) }
            return String(cString: resolved)
        }
        let target = place ?? path
        // The draft keeps the extension, which decides whether the data is compressed.
        let ending = Compression(path: path)?.ending ?? ""
        var name = Array("\(target).XXXXXX\(ending)".utf8CString)
        let descriptor = name.withUnsafeMutableBufferPointer {
            $0.baseAddress.map { mkstemps($0, Int32(ending.utf8.count)) } ?? -1
        }
        guard descriptor >= 0 else { throw failure(path) }
        let draft = name.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        if let status { fchmod(descriptor, mode_t(status.rights)) }
        close(descriptor)
        do throws(Failure) {
            try body(draft)
            guard rename(draft, target) == 0 else { throw failure(path) }
        } catch {
            unlink(draft)
            throw error
        }
    }

    /// A file that is written in parts; compressed if its name has the extension of a compression.
    struct Draft: ~Copyable {
        private let descriptor: Int32
        private let path: String
        private let compressor: Compressor?

        /// Opens a draft for writing; errors name it `path`.
        init(_ draft: String, as path: String) throws(Failure) {
            descriptor = open(draft, O_WRONLY | O_CLOEXEC)
            self.path = path
            let compression = Compression(path: path)
            compressor = compression.flatMap { Compressor($0) }
            guard compression == nil || compressor != nil else {
                throw .file("cannot compress \(path): \(Compression.missingLibrary)")
            }
            guard descriptor >= 0 else { throw OutputText.failure(path) }
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        func write(_ bytes: [UInt8]) throws(Failure) {
            guard let compressor else { return try writeThrough(bytes) }
            guard let compressed = compressor.compress(bytes.span.bytes) else {
                throw .file("cannot write \(path): \(String(cString: strerror(ENOMEM)))")
            }
            try writeThrough(compressed)
        }

        /// Writes the end of compressed data; has no effect without compression.
        func finish() throws(Failure) {
            if let compressor { try writeThrough(compressor.finish()) }
        }

        private func writeThrough(_ bytes: [UInt8]) throws(Failure) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw OutputText.failure(path) }
                rest = rest.dropFirst(count)
            }
        }
    }

    fileprivate static func failure(_ path: String) -> Failure {
        .file("cannot write \(path): \(String(cString: strerror(errno)))")
    }
}
