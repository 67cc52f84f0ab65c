import XMPPCore

// Forms, and what is asked by them.
extension SummaryFormatter {
    static let forms: [SummaryFormatter] = [
        SummaryFormatter("XEP-0004", .dataForms) { form, line in
            line.phrase("form")
            if let type = form.attribute("type"), type != "form" {
                line.append(" (")
                line.append(text: type)
                line.append(")")
            }
            for field in form.children("field", .dataForms).prefix(8) where field.attribute("var") == "FORM_TYPE" {
                line.append(after: " ", text: field.childText("value", .dataForms))
            }
            line.append(", ")
            line.append(count: form.count("field", .dataForms), "field", "fields")
            let rows = form.count("item", .dataForms)
            guard rows > 0 else { return }
            line.append(", ")
            line.append(count: rows, "row", "rows")
        },
        SummaryFormatter("XEP-0050", .commands) { command, line in
            line.phrase("command")
            line.append(after: " ", "node", of: command)
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
