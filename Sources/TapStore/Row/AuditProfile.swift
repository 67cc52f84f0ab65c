/// An avatar or a vCard in a stanza, with the address to which it belongs.
package struct AuditProfile: Sendable, Hashable {
    package enum Content: Sendable, Hashable {
        /// The bytes of an avatar.
        case picture([UInt8])
        /// The XML of a vCard, without the bytes of pictures and sounds.
        case vCard(String)
    }

    /// The bare address. An occupant of a room has the full address, because the bare one is the room's.
    package var contact: String
    package var content: Content
    /// Of a picture the SHA-1, by which XEP-0084 and XEP-0153 identify it; of a vCard the SHA-256 of its XML.
    package var hash: [UInt8]
}

/// The format of a picture, by its first bytes: the format that the sender names may be another one. Other formats, such as
/// SVG, which may contain scripts, are not distinguished.
package enum PictureType: String, Sendable, Hashable, CaseIterable {
    case png = "image/png"
    case jpeg = "image/jpeg"
    case gif = "image/gif"
    case webP = "image/webp"
    case other = "application/octet-stream"

    package init(_ bytes: [UInt8]) {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if bytes.starts(with: "GIF87a".utf8) || bytes.starts(with: "GIF89a".utf8) {
            self = .gif
        } else if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
            self = .webP
        } else {
            self = .other
        }
    }

    /// The ending of file names, without the dot.
    package var ending: String {
        switch self {
        case .png: "png"
        case .jpeg: "jpg"
        case .gif: "gif"
        case .webP: "webp"
        case .other: "bin"
        }
    }
}
