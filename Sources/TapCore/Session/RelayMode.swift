/// The relay mode of a session.
package enum RelayMode: String, Sendable, Hashable, CaseIterable {
    /// At least one direction forwards items when they are complete.
    case store
    /// Both directions forward bytes on arrival.
    case cutThrough = "cut-through"
    /// At least one direction is not decoded.
    case opaque
    /// The session is over; its connections are not closed yet.
    case closing

    init(_ context: borrowing SessionContext) {
        if context.negotiation.isFinished {
            self = .closing
        } else if context.directions.send.isOpaque || context.directions.recv.isOpaque {
            self = .opaque
        } else {
            self = context.directions.send.isCutThrough && context.directions.recv.isCutThrough ? .cutThrough : .store
        }
    }
}
