internal import TapRecord

/// Reports to the driver which leg may be read: a leg is not read while too many of its bytes wait.
struct Backpressure {
    /// Whether the legs may be read, as last reported.
    private var isRead = (client: true, server: true)

    /// Reports the legs for which that has changed.
    ///
    /// - Parameter tls: The TLS negotiation of the legs, which then stores their bytes.
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
