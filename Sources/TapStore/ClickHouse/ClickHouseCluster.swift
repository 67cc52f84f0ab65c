/// The shards of a store in ClickHouse.
package struct ClickHouseCluster {
    let address: ClickHouseAddress
    let shards: [ClickHouseServer]

    /// - Parameter transport: Returns the transport to a host.
    package init(
        _ address: ClickHouseAddress,
        password: String?,
        transport: (ClickHouseAddress.Host) throws(StoreFault) -> ClickHouseTransport
    ) throws(StoreFault) {
        self.address = address
        var shards: [ClickHouseServer] = []
        for hosts in address.shards {
            var servers: [(ClickHouseAddress.Host, ClickHouseTransport)] = []
            for host in hosts { servers.append((host, try transport(host))) }
            shards.append(ClickHouseServer(address, servers, password: password))
        }
        self.shards = shards
    }

    /// Returns the shard of a text: FNV-1a with 64 bits, modulo the number of shards. The result is part of the format: it must be the
    /// same in all programs and versions.
    static func shard(_ text: String, of count: Int) -> Int {
        guard count > 1 else { return 0 }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return Int(hash % UInt64(count))
    }
}
