import XMPPCore

// Payloads of messages besides their text, and encrypted messages.
extension SummaryFormatter {
    static let messages: [SummaryFormatter] = [
        SummaryFormatter("XEP-0085", .chatStates) { state, line in
            if state.isNamed("composing") {
                line.phrase("is typing")
            } else if state.isNamed("paused") {
                line.phrase("paused typing")
            } else {
                line.separate()
                line.append(nameOf: state)
            }
        },
        SummaryFormatter("XEP-0184", .receipts) { receipt, line in
            guard receipt.isNamed("received") else { return line.phrase("receipt requested") }
            line.phrase("receipt", after: " for ", "id", of: receipt)
        },
        SummaryFormatter("XEP-0333", .markers) { marker, line in
            guard !marker.isNamed("markable") else { return line.phrase("markable") }
            line.phrase("marks", "id", of: marker)
            line.append(" as ")
            line.append(nameOf: marker)
        },
        SummaryFormatter("XEP-0308", .correction) { replace, line in line.phrase("corrects", "id", of: replace) },
        SummaryFormatter("XEP-0424", .retraction, .retractionLegacy) { retract, line in
            line.phrase(retract.isNamed("retracted") ? "was retracted" : "retracts", "id", of: retract)
        },
        SummaryFormatter("XEP-0422", .fastening) { fastening, line in
            line.phrase("applies to", "id", of: fastening)
            guard let payload = fastening.firstChild else { return }
            line.append(": ")
            line.append(within: payload)
        },
        SummaryFormatter("XEP-0425", .moderation) { moderate, line in
            line.phrase(moderate.isNamed("moderated") ? "moderated" : "moderates", after: " by ", "by", of: moderate)
            line.append(after: " ", "id", of: moderate)
        },
        SummaryFormatter("XEP-0444", .reactions) { reactions, line in
            line.separate()
            line.append(count: reactions.count("reaction", .reactions), "reaction", "reactions")
            line.append(after: " to ", "id", of: reactions)
        },
        SummaryFormatter("XEP-0461", .reply) { reply, line in line.phrase("reply", after: " to ", "to", of: reply) },
        SummaryFormatter("XEP-0066", .outOfBand) { data, line in
            line.phrase("link")
            if let url = data.firstChild(where: { $0.isNamed("url") }) { line.append(sizeOf: url) }
        },
        SummaryFormatter("XEP-0224", .attention) { _, line in line.phrase("asks for attention") },
        SummaryFormatter("XEP-0382", .spoiler) { _, line in line.phrase("spoiler") },
        SummaryFormatter("XEP-0203", .delay, .delayLegacy) { delay, line in
            line.phrase("delayed", after: " since ", "stamp", of: delay)
        },
        // No summary, because these payloads add no useful information to others.
        SummaryFormatter("XEP-0359", .stanzaID, .occupantID) { _, _ in },
        SummaryFormatter("XEP-0334", .hints) { _, _ in },
        SummaryFormatter("XEP-0428", .fallback, .xhtml) { _, _ in },
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
                line.append(after: ", ", count: keys, "key", "keys")
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

    /// Returns the name that XEP-0380 §4 lists, for hints with a namespace only.
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
