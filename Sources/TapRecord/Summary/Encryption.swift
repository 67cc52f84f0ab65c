import XMPPCore

// Messages that only their receivers can read.
extension SummaryFormatter {
    static let encryption: [SummaryFormatter] = [
        SummaryFormatter("XEP-0384", .omemo, .omemo1, .omemoLegacy) { element, line in
            let namespace = element.namespace
            switch element.name {
            case "encrypted":
                line.phrase("OMEMO message")
                guard let header = element.child("header", namespace) else { return }
                let keys = header.children.reduce(0) { sum, child in
                    sum + (child.isNamed("keys") ? child.count("key", namespace) : child.isNamed("key") ? 1 : 0)
                }
                line.append(after: " from device ", "sid", of: header)
                line.append(", ")
                line.append(count: keys, "key", "keys")
                if let payload = element.child("payload", namespace) {
                    line.append(",")
                    line.append(sizeOf: payload)
                } else {
                    line.append(", no payload")
                }
            case "bundle":
                let keys = element.firstChild { $0.isNamed("prekeys") }?.children.count ?? 0
                line.phrase("OMEMO bundle, ")
                line.append(count: keys, "prekey", "prekeys")
            case "devices", "list":
                line.phrase("OMEMO devices: ")
                line.append(number: element.count("device", namespace))
            default: line.appendName(element)
            }
        },
        SummaryFormatter("XEP-0373", .openPGP) { element, line in
            line.phrase("OpenPGP ")
            line.append(nameOf: element)
        },
        SummaryFormatter("XEP-0027", .openPGPLegacy) { _, line in line.phrase("OpenPGP message") },
        SummaryFormatter("XEP-0380", .encryptionHint) { hint, line in
            line.phrase("encrypted by ")
            let uri = hint.attribute("namespace")
            line.append(text: hint.attribute("name") ?? uri.flatMap(method) ?? uri ?? "something")
        },
    ]

    /// The names that XEP-0380 §4 lists, for hints that give the namespace alone.
    private static func method(_ uri: String) -> String? {
        switch uri {
        case "eu.siacs.conversations.axolotl", "urn:xmpp:omemo:1", "urn:xmpp:omemo:2": "OMEMO"
        case "jabber:x:encrypted": "legacy OpenPGP"
        case "urn:xmpp:openpgp:0": "OpenPGP"
        case "urn:xmpp:otr:0": "OTR"
        default: nil
        }
    }
}
