internal import TapRecord

extension AuditWriter {
    /// Adds what a store keeps of a record; see ``AuditRowMaker/entry(_:content:)``.
    func add(_ record: borrowing Record, content: Span<UInt8>, by maker: AuditRowMaker) throws(StoreFault) {
        // An entry would be copied several times.
        if record.kind == .stanza {
            if let row = maker.row(record, content: content) { try add(row) }
        } else if let session = maker.session(record) {
            try add(session)
        }
    }
}
