import XMPPCore

// Who somebody is: vCard, avatar, nickname, mood.
extension SummaryFormatter {
    static let people: [SummaryFormatter] = [
        SummaryFormatter("XEP-0054", .vCard) { card, line in
            guard !line.isType("get") else { return line.phrase("asks for the vCard") }
            guard card.elementCount > 0 else {
                return line.phrase(line.isType("set") ? "empties the vCard" : "empty vCard")
            }
            line.phrase(line.isType("set") ? "sets the vCard" : "vCard")
            guard let photo = card.child("PHOTO", .vCard) else {
                line.append(", ")
                return line.append(count: card.elementCount, "field", "fields")
            }
            line.append(", photo")
            line.append(after: " ", text: photo.childText("TYPE", .vCard))
            if let data = photo.child("BINVAL", .vCard) {
                line.append(" ")
                line.append(size: decodedSize(data))
            }
        },
        SummaryFormatter("XEP-0292", .vCard4) { card, line in
            guard !line.isType("get") else { return line.phrase("asks for the vCard") }
            line.phrase("vCard, ")
            line.append(count: card.elementCount, "field", "fields")
        },
        SummaryFormatter("XEP-0153", .vCardUpdate) { update, line in
            guard let photo = update.child("photo", .vCardUpdate) else { return }
            guard photo.textSize > 0 else { return line.phrase("no avatar") }
            line.phrase("avatar ")
            line.append(text: String(photo.text.prefix(8)))
        },
        SummaryFormatter("XEP-0084", .avatarMetadata) { metadata, line in
            let images = metadata.children("info", .avatarMetadata)
            guard let info = images.first else { return line.phrase("no avatar") }
            line.phrase("avatar")
            line.append(after: " ", "type", of: info)
            line.append(after: " ", size: info.attribute("bytes"))
            if let width = info.attribute("width"), let height = info.attribute("height") {
                line.append(after: " ", text: "\(width.prefix(8))×\(height.prefix(8))")
            }
            guard images.count > 1 else { return }
            line.append(", ")
            line.append(count: images.count, "image", "images")
        },
        SummaryFormatter("XEP-0084", .avatarData) { data, line in
            line.phrase("avatar data ")
            line.append(size: decodedSize(data))
        },
        SummaryFormatter("XEP-0172", .nick) { nick, line in
            line.phrase("nickname ")
            line.append(textOf: nick)
        },
        SummaryFormatter("XEP-0107", .mood) { mood, line in
            line.phrase("mood")
            line.append(after: " ", text: mood.firstChild { !$0.isNamed("text") }?.name ?? "none")
        },
        SummaryFormatter("XEP-0108", .activity) { activity, line in
            line.phrase("activity")
            line.append(after: " ", text: activity.firstChild { !$0.isNamed("text") }?.name ?? "none")
        },
        SummaryFormatter("XEP-0118", .tune) { tune, line in line.phrase(tune.children.isEmpty ? "no tune" : "tune") },
        SummaryFormatter("XEP-0080", .location) { location, line in
            line.phrase(location.children.isEmpty ? "no location" : "location")
        },
        SummaryFormatter("XEP-0319", .idle) { idle, line in
            line.phrase("idle")
            line.append(after: " since ", "since", of: idle)
        },
    ]

    /// How many bytes the base64 in an element stands for, line breaks not counted.
    static func decodedSize(_ element: Element) -> Int {
        var digits = 0
        element.forEachText { text in
            text.withUnsafeBufferPointer { bytes in
                // Without a branch it is done sixteen bytes at a time.
                for byte in bytes { digits &+= byte > 0x20 && byte != 0x3D ? 1 : 0 }
            }
        }
        return digits / 4 * 3 + max(0, digits % 4 - 1)
    }
}
