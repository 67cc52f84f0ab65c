import XMPPCore

// What messages carry beside their text.
extension SummaryFormatter {
    static let messages: [SummaryFormatter] = [
        SummaryFormatter("XEP-0085", .chatStates) { state, line in
            if state.isNamed("composing") {
                line.phrase("is typing")
            } else if state.isNamed("paused") {
                line.phrase("paused typing")
            } else {
                line.asymmetric()
                line.append(nameOf: state)
            }
        },
        SummaryFormatter("XEP-0184", .receipts) { receipt, line in
            guard receipt.isNamed("received") else { return line.phrase("receipt requested") }
            line.phrase("receipt")
            line.append(after: " for ", "id", of: receipt)
        },
        SummaryFormatter("XEP-0333", .markers) { marker, line in
            guard !marker.isNamed("markable") else { return line.phrase("markable") }
            line.phrase("marks")
            line.append(after: " ", "id", of: marker)
            line.append(" as ")
            line.append(nameOf: marker)
        },
        SummaryFormatter("XEP-0308", .correction) { replace, line in
            line.phrase("corrects")
            line.append(after: " ", "id", of: replace)
        },
        SummaryFormatter("XEP-0424", .retraction, .retractionLegacy) { retract, line in
            line.phrase(retract.isNamed("retracted") ? "was retracted" : "retracts")
            line.append(after: " ", "id", of: retract)
        },
        SummaryFormatter("XEP-0422", .fastening) { fastening, line in
            line.phrase("applies to")
            line.append(after: " ", "id", of: fastening)
            guard let payload = fastening.firstChild else { return }
            line.append(": ")
            line.append(within: payload)
        },
        SummaryFormatter("XEP-0425", .moderation) { moderate, line in
            line.phrase(moderate.isNamed("moderated") ? "moderated" : "moderates")
            line.append(after: " by ", "by", of: moderate)
            line.append(after: " ", "id", of: moderate)
        },
        SummaryFormatter("XEP-0444", .reactions) { reactions, line in
            line.asymmetric()
            line.append(count: reactions.count("reaction", .reactions), "reaction", "reactions")
            line.append(after: " to ", "id", of: reactions)
        },
        SummaryFormatter("XEP-0461", .reply) { reply, line in
            line.phrase("reply")
            line.append(after: " to ", "to", of: reply)
        },
        SummaryFormatter("XEP-0066", .outOfBand) { data, line in
            line.phrase("link")
            if let url = data.firstChild(where: { $0.isNamed("url") }) { line.append(sizeOf: url) }
        },
        SummaryFormatter("XEP-0224", .attention) { _, line in line.phrase("asks for attention") },
        SummaryFormatter("XEP-0382", .spoiler) { _, line in line.phrase("spoiler") },
        SummaryFormatter("XEP-0203", .delay, .delayLegacy) { delay, line in
            line.phrase("delayed")
            line.append(after: " since ", "stamp", of: delay)
        },
        // Beside others they say nothing that a reader waits for.
        SummaryFormatter("XEP-0359", .stanzaID, .occupantID) { _, _ in },
        SummaryFormatter("XEP-0334", .hints) { _, _ in },
        SummaryFormatter("XEP-0428", .fallback, .xhtml) { _, _ in },
    ]
}
