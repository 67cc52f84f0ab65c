internal import ArgumentParser
internal import TapNetwork
internal import TapRecord
internal import TapSecurity
internal import TapStore

/// The flags for stores that are servers.
struct StoreAccessOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read the password of a clickhouse:// store from the first line of this file.",
            valueName: "file"
        ),
        completion: .file()
    )
    var storePasswordFile: String?

    @Option(
        help: ArgumentHelp("Trust only these certificates (PEM) for a clickhouses:// store.", valueName: "file"),
        completion: .file()
    )
    var storeCa: String?

    /// Returns the store with a name: a path, or an address of ClickHouse.
    ///
    /// - Parameter spool: Where rows wait for its servers.
    func place(_ name: String, spool: Spool.Configuration? = nil) throws(Failure) -> StorePlace {
        guard ClickHouseAddress.isAddress(name) else {
            guard !name.contains("://") else {
                throw .usage(
                    "\(Console.escaped(Self.withoutPassword(name))): write a store on servers as clickhouse://USER@HOST:8123/DATABASE"
                )
            }
            try refuseWithoutServer()
            return .file(name)
        }
        let address: ClickHouseAddress
        do throws(ClickHouseAddress.Fault) {
            address = try ClickHouseAddress(name)
        } catch {
            throw .usage("\(Console.escaped(Self.withoutPassword(name))): \(error)")
        }
        let password = try storePasswordFile.map { path throws(Failure) in
            try PasswordFile.read(path, of: address.description, flag: "--store-password-file")
        }
        var tls: ServerLegTLS?
        if address.isSecure {
            var options = ServerLegTLS()
            if let storeCa { options.trust = .file(storeCa) }
            tls = options
        }
        // Checks the files of certificates before anything is done.
        if let host = address.shards.first?.first { _ = try Self.transport(to: host, tls) }
        let configuration = spool ?? Spool.Configuration(folder: "")
        return .clickHouse(address, password: password, spool: configuration) { [tls] host throws(StoreFault) in
            do throws(Failure) {
                return try Self.transport(to: host, tls)
            } catch {
                throw StoreFault(code: .other(error.message), path: address.description)
            }
        }
    }

    /// Refuses flags that have no effect on files.
    func refuseWithoutServer() throws(Failure) {
        guard storePasswordFile == nil, storeCa == nil else {
            throw .usage("--store-password-file and --store-ca are for stores like clickhouse://HOST/DATABASE")
        }
    }

    /// Hides the part before the host, which may contain a password.
    private static func withoutPassword(_ text: String) -> String { WebServer.withoutSecrets(text) }

    private static func transport(
        to host: ClickHouseAddress.Host,
        _ tls: ServerLegTLS?
    ) throws(Failure) -> ClickHouseTransport {
        let client: WebClient
        do {
            let server = try WebServer("\(tls == nil ? "ws" : "wss")://\(host.name):\(host.port)")
            client = try WebClient(server, tls)
        } catch let error as WebClient.Failure {
            throw .file("--store: \(error.text)")
        } catch {
            throw .usage("--store: \(error)")
        }
        return { request throws(ClickHouseUnreachable) in
            do throws(WebClient.Failure) {
                let answer = try client.send("POST", request.target, fields: request.fields, body: request.body)
                return ClickHouseAnswer(
                    status: answer.status,
                    exception: answer.fields["x-clickhouse-exception-code"],
                    body: answer.body
                )
            } catch {
                throw ClickHouseUnreachable(text: error.text)
            }
        }
    }
}
