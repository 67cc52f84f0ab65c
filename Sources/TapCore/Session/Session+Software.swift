public import TapDiagnosis
internal import TapRecord
import XMPPCore

// The client's software name, stored for sessions from the same address that fail before the client sends it.
extension Session {
    /// The largest number of searched stanzas, of the kinds that can contain it.
    static let mostSoftwareStanzas: UInt8 = 8

    private static let capabilities = Array("http://jabber.org/protocol/caps".utf8)

    /// The known software of a session's client, whose ClientHello was sent by `library`.
    public func clientSoftware(_ library: ClientSoftware.Library?) -> ClientSoftware {
        ClientSoftware(names: remote.map { run.software.names(at: RuleContext.host($0)) } ?? [], library: library)
    }

    /// Searches a stanza of the client for its software name: its capabilities (XEP-0115), or a result with its version
    /// (XEP-0092) or identity (XEP-0030).
    mutating func noteSoftware(_ event: StreamEvent, isResult: Bool) {
        guard softwareStanzas > 0, info.kind == .client, !event.isTruncated else { return }
        switch event.head.kind {
        case .presence where event.head.type == nil:
            softwareStanzas -= 1
            guard context.directions.bytes(.send).contains(Self.capabilities.span) else { return }
            noteSoftware(context.parse(.send)?.child("c", .capabilities)?.attribute("node"))
        case .iq where isResult:
            switch event.head.payloadNamespace.namespace {
            case .version:
                softwareStanzas -= 1
                let query = context.parse(.send)?.child("query", .version)
                noteSoftware(query?.childText("name", .version))
            case .discoInfo:
                softwareStanzas -= 1
                let query = context.parse(.send)?.child("query", .discoInfo)
                let identity = query?.children("identity", .discoInfo).first { $0.attribute("category") == "client" }
                noteSoftware(identity?.attribute("name"))
            default: break
            }
        default: break
        }
    }

    /// Stores the software name that the client sent; nil if it sent none.
    mutating func noteSoftware(_ name: String?) {
        guard let name, !name.isEmpty, let remote, recording == nil else { return }
        softwareStanzas = 0
        run.software.note(name, at: RuleContext.host(remote))
    }
}
