internal import Glibc

/// Finds the captures in a folder that `--capture FOLDER` or `--capture 'FOLDER/%s.xtap'` has written.
enum CaptureFolder {
    /// Replaces each folder among `paths` by its captures, sorted by name.
    ///
    /// - Throws: ``ReaderFault`` if a folder contains no captures, or cannot be read.
    static func files(of paths: [String]) throws(ReaderFault) -> [String] {
        var files: [String] = []
        for path in paths {
            if path != "-", FileStatus(path: path)?.isFolder == true {
                files += try captures(in: path)
            } else {
                files.append(path)
            }
        }
        return files
    }

    private static func captures(in folder: String) throws(ReaderFault) -> [String] {
        guard let names = FileStatus.names(in: folder) else {
            throw ReaderFault(code: .cannotOpen(errno: errno), path: folder)
        }
        let prefix = folder.hasSuffix("/") ? folder : folder + "/"
        // A proxy that has just started may not have written its header yet: skip empty files.
        let files = names.filter(isCapture).sorted().map { prefix + $0 }.filter { file in
            FileStatus(path: file).map { $0.isRegular && $0.size > 0 } ?? false
        }
        guard !files.isEmpty else { throw ReaderFault(code: .cannotRead(errno: EISDIR), path: folder) }
        return files
    }

    /// Returns whether a file name is that of a capture. Rotated (`x-0001.xtap`, or `x.xtap.1` of older versions) and
    /// compressed captures are included.
    static func isCapture(_ name: String) -> Bool {
        guard !name.hasPrefix(".") else { return false }
        var stem = name[...]
        if let dot = stem.lastIndex(of: "."), case let part = stem[stem.index(after: dot)...], !part.isEmpty,
            part.allSatisfy({ $0.isASCII && $0.isNumber })
        {
            stem = stem[..<dot]
        }
        return RecordWriter.Destination.captureEnding(of: String(stem)) != nil
    }
}
