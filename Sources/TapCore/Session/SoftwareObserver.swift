internal import TapRecord
import TapRules
import XMPPCore

/// Searches the stanzas of a client for its software name. The name helps to diagnose sessions from the same address
/// that fail before the client sends its name.
struct SoftwareObserver {
    /// The largest number of stanzas that are searched.
    static let maximumStanzas: UInt8 = 8
    /// The number of stanzas that may still be searched.
    private var remaining = maximumStanzas

    private static let capabilities = Array("http://jabber.org/protocol/caps".utf8)

    /// Searches a stanza that can contain the name: in its capabilities (XEP-0115), or in a result with a version
    /// (XEP-0092) or an identity (XEP-0030).
    mutating func observe(_ event: StreamEvent, isResult: Bool, _ context: inout SessionContext) {
        guard remaining > 0, context.info.kind == .client, !event.isTruncated else { return }
        switch event.head.kind {
        case .presence where event.head.type == nil:
            remaining -= 1
            guard context.directions.bytes(.send).contains(Self.capabilities.span) else { return }
            observe(context.parse(.send)?.child("c", .capabilities)?.attribute("node"), &context)
        case .iq where isResult:
            switch event.head.payloadNamespace.namespace {
            case .version:
                remaining -= 1
                observe(context.parse(.send)?.child("query", .version)?.childText("name", .version), &context)
            case .discoInfo:
                remaining -= 1
                let query = context.parse(.send)?.child("query", .discoInfo)
                let identity = query?.children("identity", .discoInfo).first { $0.attribute("category") == "client" }
                observe(identity?.attribute("name"), &context)
            default: break
            }
        default: break
        }
    }

    /// Stores the software name that the client sent. Does nothing if the name is nil or empty.
    mutating func observe(_ name: String?, _ context: inout SessionContext) {
        guard let name, !name.isEmpty, let remote = context.remote, !context.options.isRecorded else { return }
        remaining = 0
        context.requestShared(.software(name, host: RuleContext.host(remote)))
    }
}
