internal import TapRecord

/// Tells the driver which leg to read: a leg is not read while too many of its bytes wait.
struct Backpressure {
    /// Whether each leg may be read, as last reported to the driver.
    private var isRead = (client: true, server: true)

    /// Reports each leg of which the value has changed.
    ///
    /// - Parameter tls: The pending TLS negotiation, if any; it stores the waiting bytes of the legs.
    @inline(__always)
    mutating func update(_ tls: TLSNegotiation?, _ context: inout SessionContext) {
        let wanted = (client: Self.reads(.client, tls, context), server: Self.reads(.server, tls, context))
        guard wanted != isRead else { return }
        if wanted.client != isRead.client { Self.report(.client, wanted.client, tls, &context) }
        if wanted.server != isRead.server { Self.report(.server, wanted.server, tls, &context) }
        isRead = wanted
    }

    private static func reads(_ leg: Leg, _ tls: TLSNegotiation?, _ context: borrowing SessionContext) -> Bool {
        if let tls { return tls.reads(leg) }
        let direction = leg.inbound
        guard context.directions[direction].isStoring else { return true }
        let isWaiting =
            context.directions[direction].isHeld || context.directions[direction].isDelayed
            || leg == .client && context.negotiation.isAwaitingServer
        return !isWaiting || context.directions[direction].waiting < context.options.waitingBytes
    }

    private static func report(_ leg: Leg, _ isRead: Bool, _ tls: TLSNegotiation?, _ context: inout SessionContext) {
        context.outlet.request(.read(leg, isRead))
        let waiting = tls.map { $0.kept(leg.inbound).count } ?? context.directions[leg.inbound].waiting
        if !isRead, waiting >= context.options.waitingBytes { context.counters.count(.limitHit(.waiting)) }
    }
}
