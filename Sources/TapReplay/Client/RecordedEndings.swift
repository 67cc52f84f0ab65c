internal import XMPPCore

extension ReplayScript.Maker {
    /// Moves the end of each client's connection before the unavailable presence that it causes. The recording may
    /// contain the presence first, because other clients receive it before the proxy notices the end (RFC 6121 §4.5.2).
    ///
    /// Call this function after the steps are sorted.
    mutating func moveEndings() {
        /// The client for each address that others see: its full JID, and its occupant JIDs in rooms.
        var addresses: [String: Int] = [:]
        for (index, client) in clients.enumerated() where client.role == .recorded {
            addresses[client.jid.description] = index
        }
        var firstEffects: [Int: Int] = [:]
        var number = 0
        while number < places.count {
            let step = places[number].step
            switch step {
            case .send(let client, let item):
                firstEffects[client] = nil
                updateAddresses(items[item], of: client, &addresses)
            case .expect(let receiver, let item):
                firstEffects[receiver] = nil
                guard items[item].kind == .presence, items[item].type == "unavailable",
                    let client = items[item].from.flatMap({ addresses[$0] }), client != receiver
                else { break }
                firstEffects[client] = firstEffects[client] ?? number
            case .close(let client), .drop(let client):
                guard let first = firstEffects.removeValue(forKey: client) else { break }
                let place = places.remove(at: number)
                places.insert(place, at: first)
                for (other, index) in firstEffects where index >= first { firstEffects[other] = index + 1 }
            case .connect, .prepare, .awaitHandling, .end: break
            }
            number += 1
        }
    }

    /// Updates the addresses after presence that a client sends. Unavailable presence removes an address: the end of
    /// the connection then causes no more presence from this address.
    private func updateAddresses(_ item: RecordedItem, of client: Int, _ addresses: inout [String: Int]) {
        guard item.kind == .presence else { return }
        switch (item.type, item.to) {
        case ("unavailable", nil): addresses = addresses.filter { $0.value != client }
        case ("unavailable", let to?): addresses[to] = nil
        case (nil, let to?) where to.contains("/"): addresses[to] = client
        default: break
        }
    }
}
