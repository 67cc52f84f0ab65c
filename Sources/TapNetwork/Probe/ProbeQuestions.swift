internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// What a probe asks of a session that is ready, one thing after the other.
struct ProbeQuestions {
    enum Question: String {
        case streamManagement, ping, disco, version
    }

    /// What is waited for.
    var awaited: Question?
    /// Stanzas that came since stream management was enabled.
    var received: UInt32 = 0
    var isManaged = false
    /// What the server calls itself.
    var name = ""
    /// The number of its features.
    var features: Int?
}

extension ProbeDriver {
    /// Begins.
    func ask(_ features: StreamFeatures) {
        guard let version = features.streamManagement else {
            report.streamManagement = .notOffered
            report.add(.streamManagement, .note, ["not offered"])
            return next(.ping)
        }
        questions.awaited = .streamManagement
        connection?.send(XMLWriter.bytes { $0.element("enable", version, ["resume": "true"]) })
    }

    private func next(_ question: ProbeQuestions.Question?) {
        guard let question else {
            questions.awaited = nil
            return leave()
        }
        questions.awaited = question
        _ = elapsed()
        let domain = plan.account.domain
        connection?.send(
            XMLWriter.bytes {
                $0.element("iq", ["type": "get", "id": question.rawValue, "to": domain]) {
                    switch question {
                    case .ping, .streamManagement: $0.element("ping", .ping)
                    case .disco: $0.element("query", .discoInfo)
                    case .version: $0.element("query", .version)
                    }
                }
            }
        )
    }

    /// Takes an element of a session that is ready.
    func take(_ element: Element) {
        // Behind the end of our stream nothing may follow.
        guard let awaited = questions.awaited else { return }
        if element.namespace == .client { questions.received &+= 1 }
        if element.isNamed("r"), [.streamManagement, .streamManagement2].contains(element.namespace) {
            let count = "\(questions.received)"
            connection?.send(XMLWriter.bytes { $0.element("a", element.namespace, ["h": count]) })
            return
        }
        switch awaited {
        case .streamManagement: takeManagement(element)
        case .ping: if let isResult = answer(element) { takePing(isResult) }
        case .disco: if let isResult = answer(element) { takeInfo(isResult ? element : nil) }
        case .version: if let isResult = answer(element) { takeVersion(isResult ? element : nil) }
        }
    }

    /// Whether the element is the awaited answer, and then whether it is a result.
    private func answer(_ element: Element) -> Bool? {
        guard element.matches("iq", .client), element.attribute("id") == questions.awaited?.rawValue else { return nil }
        return element.attribute("type") == "result"
    }

    private func takeManagement(_ element: Element) {
        guard [.streamManagement, .streamManagement2].contains(element.namespace) else { return }
        if element.isNamed("enabled") {
            questions.received = 0
            let isResumable = ["true", "1"].contains(element.attribute("resume") ?? "")
            let seconds = element.attribute("max").flatMap { Int($0) }
            report.streamManagement = .enabled(isResumable: isResumable, seconds: seconds)
            var words = isResumable ? "resumable" : "enabled, not resumable"
            if isResumable, let seconds { words += " for \(Self.span(seconds))" }
            var details: Attributes = ["resumable": .boolean(isResumable)]
            if let seconds { details["max"] = .integer(Int64(seconds)) }
            if let location = element.attribute("location") {
                words += ", preferred address \(location)"
                details["location"] = .string(location)
            }
            report.add(.streamManagement, isResumable ? .ok : .note, [words], took: elapsed(), details)
        } else {
            let condition = element.firstChild { $0.namespace == .stanzaErrors }?.name ?? "no reason"
            report.streamManagement = .refused(condition)
            report.add(.streamManagement, .note, ["offered, but refused: \(condition)"], took: elapsed())
        }
        next(.ping)
    }

    private func takePing(_ isResult: Bool) {
        let duration = elapsed()
        // An error comes back as quickly.
        let words = isResult ? "answered" : "answered with an error: XEP-0199 is not supported"
        report.add(.ping, isResult ? .ok : .note, [words], took: duration, ["answered": .boolean(isResult)])
        next(.disco)
    }

    private func takeInfo(_ element: Element?) {
        if let query = element?.child("query", .discoInfo) {
            let features = query.children("feature", .discoInfo).count
            let name = query.children("identity", .discoInfo).compactMap { $0.attribute("name") }.first
            questions.name = name ?? ""
            questions.features = features
        }
        next(.version)
    }

    private func takeVersion(_ element: Element?) {
        let query = element?.child("query", .version)
        let parts = [query?.childText("name", .version), query?.childText("version", .version)].compactMap(\.self)
        // A server may say anything of itself.
        noteServer(String(parts.joined(separator: " ").prefix(100)))
        next(nil)
    }

    private func noteServer(_ software: String) {
        let name = software.isEmpty ? questions.name : software
        let features = questions.features.map { "\($0) features (XEP-0030)" } ?? ""
        let words = [name, features].filter { !$0.isEmpty }.joined(separator: ", ")
        guard !words.isEmpty else { return }
        report.add(
            .server,
            .ok,
            [words],
            took: elapsed(),
            software.isEmpty ? [:] : ["software": .string(software)]
        )
    }

    /// The session is over before all was answered.
    func giveUpQuestions(_ reason: String) {
        switch questions.awaited {
        case .streamManagement: report.add(.streamManagement, .note, [reason], took: elapsed())
        case .ping: report.add(.ping, .note, [reason], took: elapsed())
        case .disco, .version: noteServer("")
        case nil: break
        }
    }

    private static func span(_ seconds: Int) -> String {
        seconds >= 120 && seconds.isMultiple(of: 60) ? "\(seconds / 60) min" : "\(seconds) s"
    }
}
