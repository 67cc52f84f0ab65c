internal import Glibc

/// The parts of a rotated log: `x.log` is being written, `x.log.1` is the newest full one, `x.log.N` the oldest.
struct FileParts {
    /// The file being written.
    let path: String
    /// How many full files are kept.
    let keep: Int

    /// Puts the file aside as `.1`, after each older part has moved up by one and the oldest has gone.
    func shift() throws(WriterFault) {
        guard keep > 0 else {
            guard unlink(path) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
            return
        }
        // Only parts without a gap below them need to move.
        var count = 0
        while count < keep, access("\(path).\(count + 1)", F_OK) == 0 { count += 1 }
        for number in stride(from: min(count, keep - 1), to: 0, by: -1) {
            try move("\(path).\(number)", "\(path).\(number + 1)")
        }
        try move(path, "\(path).1")
    }

    private func move(_ from: String, _ to: String) throws(WriterFault) {
        guard rename(from, to) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
    }
}
