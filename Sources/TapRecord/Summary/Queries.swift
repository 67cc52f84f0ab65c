import XMPPCore

// Queries about entities: discovery, simple queries, forms.
extension SummaryFormatter {
    static let queries: [SummaryFormatter] = [
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
                line.append(after: ", ", count: query.count("feature", .discoInfo), "feature", "features")
            }
            line.append(after: ", node ", "node", of: query)
        },
        SummaryFormatter("XEP-0030", .discoItems) { query, line in
            if line.isRequest {
                line.phrase("asks for items")
            } else {
                line.phrase("has ")
                line.append(query.children("item", .discoItems), "item", "items") {
                    $0.attribute("jid") ?? $0.attribute("node")
                }
            }
            line.append(after: ", node ", "node", of: query)
        },
        // No summary, because nearly every presence contains capabilities.
        SummaryFormatter("XEP-0115", .capabilities) { _, _ in },
        SummaryFormatter("XEP-0215", .serviceDiscoveryExternal, .serviceDiscoveryExternal1) { services, line in
            guard !line.isRequest else {
                line.phrase("asks for services")
                return line.append(after: " of type ", "type", of: services)
            }
            line.separate()
            let list = services.children.filter { $0.isNamed("service") }
            line.append(list, "service", "services") { service in
                service.attribute("type").map { "\($0) \(service.attribute("host") ?? "")" }
            }
        },
        SummaryFormatter("XEP-0199", .ping) { _, line in line.phrase("ping") },
        SummaryFormatter("XEP-0092", .version) { query, line in
            guard !line.isRequest else { return line.phrase("asks for its version") }
            line.phrase("version", text: query.childText("name", .version))
            line.append(after: " ", text: query.childText("version", .version))
            line.append(after: " on ", text: query.childText("os", .version))
        },
        SummaryFormatter("XEP-0202", .time, .timeLegacy) { time, line in
            guard !line.isRequest else { return line.phrase("asks for the time") }
            line.phrase("time", text: time.childText("utc", time.namespace))
            line.append(after: " at ", text: time.childText("tzo", time.namespace))
        },
        SummaryFormatter("XEP-0012", .lastActivity) { query, line in
            guard let seconds = query.attribute("seconds") else {
                return line.phrase(line.isRequest ? "asks for last activity" : "last activity")
            }
            line.phrase("last active ")
            line.append(text: seconds)
            line.append(" s ago")
        },
        SummaryFormatter("XEP-0004", .dataForms) { form, line in
            line.phrase("form")
            if let type = form.attribute("type"), type != "form" {
                line.append(inBrackets: type)
            }
            for field in form.children("field", .dataForms).prefix(8) where field.attribute("var") == "FORM_TYPE" {
                line.append(after: " ", text: field.childText("value", .dataForms))
            }
            line.append(after: ", ", count: form.count("field", .dataForms), "field", "fields")
            let rows = form.count("item", .dataForms)
            guard rows > 0 else { return }
            line.append(after: ", ", count: rows, "row", "rows")
        },
        SummaryFormatter("XEP-0050", .commands) { command, line in
            line.phrase("command", "node", of: command)
            line.append(after: ", ", text: command.attribute("action") ?? command.attribute("status"))
            if let form = command.child("x", .dataForms) { line.append(payload: form) }
        },
        SummaryFormatter("XEP-0077", .register) { query, line in
            if query.child("remove", .register) != nil { return line.phrase("deletes the account") }
            if line.isType("get") { return line.phrase("asks how to register") }
            if line.isType("set") {
                line.phrase("registers, or changes the password")
                return line.append(after: ": ", text: query.childText("username", .register))
            }
            line.phrase(query.child("registered", .register) == nil ? "registration form" : "already registered")
        },
        SummaryFormatter("XEP-0055", .search) { query, line in
            line.verb(set: "searches", get: "asks how to search")
            guard !line.isRequest else { return }
            line.append("search: ")
            line.append(count: query.count("item", .search), "find", "finds")
        },
        SummaryFormatter("XEP-0078", .iqAuth) { query, line in
            line.phrase(
                line.isType("set")
                    ? "logs in (legacy authentication)"
                    : line.isRequest ? "asks how to log in" : "legacy authentication"
            )
        },
    ]
}
