internal import TapControl
internal import TapNetwork
internal import TapSecurity

/// Opens the port of the page, which only this machine can reach.
enum PagePort {
    /// Listens on an address, and makes the token of the run.
    ///
    /// - Parameter flag: The flag that names the address, for errors.
    static func open(_ spec: ListenSpec, flag: String) throws(Failure) -> (port: TCPPort, token: String) {
        guard spec.upstream == nil else { throw .usage("\(flag) has no server; leave out what follows =") }
        let host = spec.host == nil || spec.host?.lowercased() == "localhost" ? "127.0.0.1" : spec.host ?? ""
        guard Endpoint(host: host, port: spec.port).isLoopback else {
            throw .usage(
                "\(flag) \(spec): other machines could read all traffic; listen on this machine only (\(flag) \(spec.port)), and "
                    + "reach it from another one by 'ssh -L \(spec.port):127.0.0.1:\(spec.port) HOST'"
            )
        }
        guard let token = try? OpenSSLCryptography().randomBytes(count: 16) else {
            throw Failure(status: .checkFailed, message: "OpenSSL cannot generate random numbers; see 'xmpptap doctor'")
        }
        do throws(ControlError) {
            return (try TCPPort(host: host, port: spec.port), token.hexadecimal)
        } catch {
            let advice = AdviceTable.advice(for: error.code).map { "; \($0)" } ?? ""
            throw .network("\(flag): \(error)\(advice)")
        }
    }
}
