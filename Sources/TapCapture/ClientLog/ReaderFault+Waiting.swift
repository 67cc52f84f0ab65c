extension ReaderFault {
    /// Whether the fault passes if more is written to the file: it is empty, or it is a short log that does not show XMPP
    /// yet. The format of a log is learned from its beginning, so that a longer file cannot become readable.
    package var mayPass: Bool {
        guard code == .empty || code == .notOurs, let status = FileStatus(path: path), status.isRegular else {
            return false
        }
        return status.size < UInt64(ClientLogSource.learningBytes)
    }
}
