/// The texts of a row in one buffer, from which SQLite reads them: its copies would cost a tenth of an insertion.
struct BoundTexts {
    struct Place {
        let index: Int32
        let start: Int
        let isBlob: Bool
    }

    /// The first byte is not text: the address of an empty array would be NULL.
    private(set) var bytes: [UInt8] = [0]
    private(set) var places: [Place] = []

    mutating func removeAll() {
        bytes.removeSubrange(1...)
        places.removeAll(keepingCapacity: true)
    }

    /// Appends the text of a parameter.
    mutating func append(_ index: Int32, _ text: String?) {
        guard let text else { return }
        places.append(Place(index: index, start: bytes.count, isBlob: false))
        bytes += text.utf8
    }

    /// Appends the bytes of a parameter.
    mutating func append(_ index: Int32, _ value: [UInt8]?) {
        guard let value else { return }
        places.append(Place(index: index, start: bytes.count, isBlob: true))
        bytes += value
    }

    /// Appends an id in the form of ``CompactID``.
    mutating func append(_ index: Int32, id: String?) {
        guard let id else { return }
        let start = bytes.count
        guard CompactID.append(id, to: &bytes) else { return append(index, id) }
        places.append(Place(index: index, start: start, isBlob: true))
    }
}
