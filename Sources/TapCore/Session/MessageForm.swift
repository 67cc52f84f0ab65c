internal import TapRecord
internal import XMPPCore

/// Reports messages of WebSockets that contain one element, but not in the form that RFC 7395 requires: each deviation once
/// for each direction, since a program that deviates does so in all of its messages.
struct MessageForm {
    private var sent = MessageTraits()
    private var received = MessageTraits()

    /// Checks the last event's message.
    @inline(__always)
    mutating func check(_ direction: Direction, _ context: inout SessionContext) {
        let traits = context.directions[direction].messageTraits
        let new = traits.subtracting(direction == .send ? sent : received)
        if !new.isEmpty { report(new, direction, &context) }
    }

    private mutating func report(_ new: MessageTraits, _ direction: Direction, _ context: inout SessionContext) {
        if direction == .send { sent.formUnion(new) } else { received.formUnion(new) }
        if new.contains(.binary) {
            context.report(
                code: "framing-binary",
                "a binary message, but RFC 7395 §3.2 requires text: Prosody closes the connection, ejabberd accepts it",
                direction: direction
            )
        }
        if new.contains(.leadingSpace) {
            context.report(
                code: "framing-white-space",
                "white space before the element: a message must begin with < (RFC 7395 §3.3.3)",
                direction: direction
            )
        }
        if new.contains(.declaration) {
            context.report(
                .note,
                .info,
                code: "framing-declaration",
                "an XML declaration before the element, which messages do not need (RFC 7395 §3.3.3)",
                direction: direction
            )
        }
    }
}
