import XMPPCore

// What an entity is, has and can.
extension SummaryFormatter {
    static let discovery: [SummaryFormatter] = [
        SummaryFormatter("XEP-0030", .discoInfo) { query, line in
            if line.isRequest {
                line.phrase("asks for identity and features")
            } else {
                line.phrase("is ")
                let identities = query.children("identity", .discoInfo)
                if identities.isEmpty { line.append("without identity") }
                for (index, identity) in identities.prefix(2).enumerated() {
                    if index > 0 { line.append(", ") }
                    line.append(text: identity.attribute("category") ?? "?")
                    line.append("/")
                    line.append(text: identity.attribute("type") ?? "?")
                }
                line.append(", ")
                line.append(count: query.count("feature", .discoInfo), "feature", "features")
            }
            line.append(after: ", node ", "node", of: query)
        },
        SummaryFormatter("XEP-0030", .discoItems) { query, line in
            if line.isRequest {
                line.phrase("asks for its items")
            } else {
                line.phrase("has ")
                line.append(query.children("item", .discoItems), "item", "items") {
                    $0.attribute("jid") ?? $0.attribute("node")
                }
            }
            line.append(after: ", node ", "node", of: query)
        },
        // Every presence has it.
        SummaryFormatter("XEP-0115", .capabilities) { _, _ in },
        SummaryFormatter("XEP-0215", .serviceDiscoveryExternal, .serviceDiscoveryExternal1) { services, line in
            guard !line.isRequest else {
                line.phrase("asks for services")
                return line.append(after: " of type ", "type", of: services)
            }
            line.asymmetric()
            let list = services.children.filter { $0.isNamed("service") }
            line.append(list, "service", "services") { service in
                service.attribute("type").map { "\($0) \(service.attribute("host") ?? "")" }
            }
        },
    ]
}
