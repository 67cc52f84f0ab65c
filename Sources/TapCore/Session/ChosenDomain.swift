internal import TapRecord
import XMPPCore

/// Keeps a session at the domain by which its server was chosen.
enum ChosenDomain {
    /// Whether two names are the same domain, ignoring case and script.
    static func isSame(_ domain: String, _ other: String) -> Bool {
        guard let one = Address(domain).jid, let two = Address(other).jid, two.isServer, two.isBare else {
            return false
        }
        return one.asciiDomain == two.asciiDomain
    }

    /// Refuses a header that names a domain other than the chosen one.
    static func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard event.item == .header, direction == .send, let chosenDomain = context.chosenDomain,
            !context.negotiation.isRefusing,
            let to = context.text(event.head.to, .send), !isSame(chosenDomain, to)
        else { return nil }
        return .refuse(
            Refusal(
                answer: .streamError(
                    .hostUnknown,
                    "This session is for \(chosenDomain) and cannot change to another domain."
                ),
                code: "host-unknown",
                message:
                    "the session is for \(chosenDomain), a new stream for \(context.tools.redactor.disclose(address: to))",
                condition: .hostUnknown,
                direction: .send,
                diagnosis: "the session is for \(chosenDomain), but the client requested another domain"
            )
        )
    }

    /// The same for the SNI of a ClientHello, with a TLS alert.
    static func refuseOtherName(_ hello: ClientHello, _ context: inout SessionContext) {
        guard let chosenDomain = context.chosenDomain, !context.negotiation.isFinished, let name = hello.serverName,
            !isSame(chosenDomain, name)
        else { return }
        context.login?.observe(
            .refused("the session is for \(chosenDomain), but the client's ClientHello names another host")
        )
        context.note(
            .error,
            .error,
            code: "host-unknown",
            "the session is for \(chosenDomain), TLS for \(name)",
            condition: .hostUnknown,
            direction: .send,
            part: .tls
        )
        context.info.ending = .tap(condition: StreamErrorCondition.hostUnknown.rawValue)
        context.alert(.unrecognizedName)
    }
}
