package import TapRecord

/// Inserts avatars and vCards into the tables of a store. A transaction must be open.
final class ProfileWriter {
    private let picture: SQLiteStatement
    private let avatar: SQLiteStatement
    private let card: SQLiteStatement

    init(_ database: SQLiteDatabase) throws(StoreFault) {
        // Of two pictures with the same SHA-1, which can be made, the first is kept.
        picture = try database.prepare("INSERT OR IGNORE INTO picture(hash, type, bytes) VALUES (?, ?, ?)")
        avatar = try database.prepare(
            "INSERT INTO avatar(hash, contact, first, last) VALUES (?, ?, ?, ?) \(Self.update)"
        )
        card = try database.prepare(
            "INSERT INTO vcard(hash, contact, first, last, xml) VALUES (?, ?, ?, ?, ?) \(Self.update)"
        )
    }

    /// Recordings are added in any order.
    private static let update =
        "ON CONFLICT(hash, contact) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)"

    /// Inserts an avatar or a vCard.
    ///
    /// - Parameters:
    ///   - contact: The number of its contact's name.
    ///   - seen: The time at which it was seen, in nanoseconds.
    func add(_ profile: AuditProfile, contact: Int64, seen: Int64) throws(StoreFault) {
        let statement: SQLiteStatement
        switch profile.content {
        case .picture(let bytes):
            picture.bind(1, profile.hash)
            picture.bind(2, PictureType(bytes).rawValue)
            picture.bind(3, bytes)
            try picture.run()
            statement = avatar
        case .vCard(let xml):
            card.bind(5, xml)
            statement = card
        }
        statement.bind(1, profile.hash)
        statement.bind(2, contact)
        statement.bind(3, seen)
        statement.bind(4, seen)
        try statement.run()
    }
}

/// An avatar of a contact in a store.
package struct StoredAvatar: Sendable, Hashable {
    /// The bare address. An occupant of a room has the full address.
    package var contact: String
    /// The SHA-1 of the picture.
    package var hash: [UInt8]
    package var type: PictureType
    /// Number of bytes.
    package var size: Int
    /// The times at which the picture was first and last sent.
    package var first: Timestamp
    package var last: Timestamp
}

/// A vCard of a contact in a store.
package struct StoredVCard: Sendable, Hashable {
    /// The bare address. An occupant of a room has the full address.
    package var contact: String
    /// The SHA-256 of the XML.
    package var hash: [UInt8]
    /// The times at which it was first and last sent.
    package var first: Timestamp
    package var last: Timestamp
    /// The vCard, without the bytes of pictures and sounds.
    package var xml: String
}

extension SQLiteStore {
    /// Calls `body` with each vCard, by contact and time.
    package func vCards(_ body: (StoredVCard) throws(StoreFault) -> Void) throws(StoreFault) {
        let statement = try database.prepare(
            "SELECT text, hash, first, last, xml FROM vcard JOIN name ON name.id = contact ORDER BY text, first, hash"
        )
        while try statement.step() {
            guard let contact = statement.text(0), let hash = statement.bytes(1), let xml = statement.text(4) else {
                throw StoreFault(code: .corrupt, path: path)
            }
            let first = Timestamp(nanoseconds: statement.integer(2) ?? 0)
            let last = Timestamp(nanoseconds: statement.integer(3) ?? 0)
            try body(StoredVCard(contact: contact, hash: hash, first: first, last: last, xml: xml))
        }
    }

    /// Returns the avatars, by contact and time.
    package func avatars() throws(StoreFault) -> [StoredAvatar] {
        let statement = try database.prepare(
            """
            SELECT text, hash, type, length(bytes), first, last FROM avatar JOIN picture USING (hash)
            JOIN name ON name.id = contact ORDER BY text, first, hash
            """
        )
        var avatars: [StoredAvatar] = []
        while try statement.step() {
            guard let contact = statement.text(0), let hash = statement.bytes(1) else {
                throw StoreFault(code: .corrupt, path: path)
            }
            avatars.append(
                StoredAvatar(
                    contact: contact,
                    hash: hash,
                    type: statement.text(2).flatMap { PictureType(rawValue: $0) } ?? .other,
                    size: Int(clamping: statement.integer(3) ?? 0),
                    first: Timestamp(nanoseconds: statement.integer(4) ?? 0),
                    last: Timestamp(nanoseconds: statement.integer(5) ?? 0)
                )
            )
        }
        return avatars
    }

    /// Returns the bytes of a picture; nil if the store does not have it.
    package func picture(_ hash: [UInt8]) throws(StoreFault) -> [UInt8]? {
        let statement = try database.prepare("SELECT bytes FROM picture WHERE hash = ?")
        statement.bind(1, hash)
        return try statement.step() ? statement.bytes(0) : nil
    }
}
