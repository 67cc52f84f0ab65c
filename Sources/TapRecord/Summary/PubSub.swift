import XMPPCore

// Publish-subscribe (XEP-0060) and personal eventing (XEP-0163).
extension SummaryFormatter {
    static let pubsub: [SummaryFormatter] = [
        SummaryFormatter("XEP-0060", .pubsub) { pubsub, line in
            guard let action = pubsub.firstChild else { return line.phrase("pubsub") }
            request(action, &line)
            if pubsub.child("publish-options", .pubsub) != nil { line.append(", with options") }
            if let set = pubsub.child("set", .resultSets) { page(set, &line) }
        },
        SummaryFormatter("XEP-0060", .pubsubOwner) { pubsub, line in
            guard let action = pubsub.firstChild else { return line.phrase("pubsub") }
            line.separate()
            if action.isNamed("delete") {
                line.append("deletes ")
            } else if action.isNamed("purge") {
                line.append("empties ")
            } else {
                let isSettings = action.isNamed("configure") || action.isNamed("default")
                if line.isRequest { line.append(line.isType("set") ? "sets " : "asks for ") }
                line.append(text: isSettings ? "settings" : action.name)
                line.append(" of ")
            }
            line.append(text: action.attribute("node") ?? "the service")
        },
        SummaryFormatter("XEP-0060", .pubsubEvent) { event, line in
            for event in event.children.prefix(3) { appendEvent(event, &line) }
        },
        SummaryFormatter("XEP-0357", .push) { push, line in
            line.phrase(
                push.isNamed("disable") ? "disables push" : push.isNamed("enable") ? "enables push" : "push",
                after: " by ",
                "jid",
                of: push
            )
        },
    ]

    private static let verbs = [
        "subscribe": "subscribes to", "unsubscribe": "unsubscribes from", "create": "creates",
        "configure": "configures", "options": "options of",
    ]

    private static let events = [
        "purge": "emptied", "delete": "deleted", "configuration": "configured", "create": "created",
        "collection": "collection changed", "subscription": "subscription",
    ]

    private static func request(_ action: Element, _ line: inout SummaryLine) {
        switch action.name {
        case "publish":
            line.phrase(line.isRequest ? "publishes " : "published ")
            items(action, &line)
        case "items":
            line.separate()
            if line.isRequest {
                let item = action.child("item", .pubsub)?.attribute("id")
                line.append(item == nil ? "asks for items" : "asks for item")
                line.append(after: ", at most ", "max_items", of: action)
                line.append(after: " ", text: item)
                node(" of ", action, &line)
            } else {
                items(action, &line)
            }
        case "retract":
            line.phrase("retracts", text: action.firstChild?.attribute("id"))
            node(" from ", action, &line)
        case "affiliations", "subscriptions", "default":
            line.phrase(line.isRequest ? "asks for " : "")
            line.append(text: action.isNamed("default") ? "default settings" : action.name)
            node(" of ", action, &line)
        case "subscribe", "unsubscribe", "create", "configure", "options":
            line.phrase(line.isRequest ? "" : "done: ")
            line.append(trusted: verbs[action.name] ?? "")
            node(" ", action, &line)
            line.append(after: " as ", "jid", of: action)
        case "subscription":
            line.phrase("subscription", "subscription", of: action)
            node(" to ", action, &line)
        default: line.appendName(action)
        }
    }

    private static func appendEvent(_ event: Element, _ line: inout SummaryLine) {
        switch event.name {
        case "items":
            let retracted = event.count("retract", .pubsubEvent)
            guard retracted > 0 else {
                line.separate()
                return items(event, &line)
            }
            line.separate()
            line.append(count: retracted, "item retracted", "items retracted")
            node(" from ", event, &line)
        default:
            guard let verb = events[event.name] else { return line.appendName(event) }
            line.phrase("node")
            node(" ", event, &line)
            line.append(" ")
            line.append(trusted: verb)
            line.append(after: " ", "subscription", of: event)
        }
    }

    /// Appends the number of items unless it is 1, then the content of the first item and the node: `avatar image/png
    /// 2.1 kB 64×64 (urn:xmpp:avatar:metadata)`.
    private static func items(_ list: Element, _ line: inout SummaryLine) {
        let items = list.children.filter { $0.isNamed("item") }
        if items.count != 1 { line.append(count: items.count, "item", "items") }
        if let first = items.first {
            if items.count > 1 { line.append(": ") }
            if let payload = first.firstChild {
                line.append(within: payload)
            } else {
                line.append("item")
                line.append(after: " ", "id", of: first)
            }
        }
        guard let node = list.attribute("node") else { return }
        line.append(inBrackets: node)
    }

    private static func node(_ literal: StaticString, _ element: Element, _ line: inout SummaryLine) {
        line.append(after: literal, "node", of: element)
    }
}
