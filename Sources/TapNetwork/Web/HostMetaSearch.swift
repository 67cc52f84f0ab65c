package import NIOCore
internal import NIOHTTP1
package import TapSecurity
internal import XMPPCore

/// The host-meta files of a domain (XEP-0156): their links, and their faults.
package struct HostMetaReport: Sendable {
    /// The links of `host-meta` (XRD), or the reason why there are none.
    var xrd: Result<HostMetaFile, HostMetaFile.Fault>
    /// The links of `host-meta.json`, or the reason why there are none.
    var json: Result<HostMetaFile, HostMetaFile.Fault>
    /// The XMPP domain.
    let domain: String
    /// The names of files that pages of other sites cannot read.
    var unshared: [String] = []

    /// The WebSockets with TLS, those of the XRD file first.
    package var servers: [WebServer] {
        var servers: [WebServer] = []
        for link in links where link.relation == .webSocket && link.isSecure {
            guard var server = try? WebServer(link.address) else { continue }
            server.domain = domain
            if !servers.contains(server) { servers.append(server) }
        }
        return servers
    }

    private var links: [HostMetaFile.Link] { Self.links(xrd) + Self.links(json) }

    private static func links(_ file: Result<HostMetaFile, HostMetaFile.Fault>) -> [HostMetaFile.Link] {
        (try? file.get())?.links ?? []
    }

    /// One line for each file: its links, or why there are none.
    package var lines: [String] { [Self.line("host-meta", xrd), Self.line("host-meta.json", json)] }

    private static func line(_ name: String, _ file: Result<HostMetaFile, HostMetaFile.Fault>) -> String {
        switch file {
        case .failure(let fault): return "\(name): \(fault)"
        case .success(let file):
            let links = file.links.map { ($0.relation == .bosh ? "BOSH " : "") + $0.shown }
            return "\(name): \(links.isEmpty ? "no link to a WebSocket or BOSH" : links.joined(separator: ", "))"
        }
    }

    /// The faults of the files, as clauses.
    package var warnings: [String] {
        var warnings: [String] = []
        if case (.failure, .success) = (xrd, json) { warnings.append("host-meta cannot be used, but is required") }
        if case (.success(let xrd), .success(let json)) = (xrd, json), Set(xrd.links) != Set(json.links) {
            let (first, second) = (Set(xrd.links), Set(json.links))
            let only = [
                Self.only("host-meta", xrd.links.filter { !second.contains($0) }),
                Self.only("host-meta.json", json.links.filter { !first.contains($0) }),
            ]
            warnings.append("the files differ: \(only.compactMap(\.self).joined(separator: "; "))")
        }
        var seen: Set<HostMetaFile.Link> = []
        for link in links where seen.insert(link).inserted {
            if !link.isSecure {
                warnings.append("\(link.shown): clients must not use it, since it is not \(link.secureScheme)://")
            } else if link.relation == .webSocket, (try? WebServer(link.address)) == nil {
                warnings.append("\(link.shown): not the URL of a WebSocket")
            }
        }
        for name in unshared {
            warnings.append("\(name): no field Access-Control-Allow-Origin: *, so pages of other sites cannot read it")
        }
        return warnings
    }

    private static func only(_ name: String, _ links: [HostMetaFile.Link]) -> String? {
        links.isEmpty ? nil : "only \(name) has \(links.map(\.shown).joined(separator: ", "))"
    }

    /// Whether both files could be read.
    var isComplete: Bool { if case (.success, .success) = (xrd, json) { true } else { false } }
}

extension HostMetaFile.Link {
    fileprivate var secureScheme: String { relation == .webSocket ? "wss" : "https" }
}

/// Gets the host-meta files of a domain.
package enum HostMetaSearch {
    /// Gets both files.
    ///
    /// - Parameters:
    ///   - domain: The XMPP domain.
    ///   - base: The address of the files; nil means the domain.
    ///   - tls: How certificates are verified. One for the domain is as good as one for the URL's host.
    ///   - timeout: Time limit.
    ///   - loop: The event loop to use.
    /// - Throws: ``TLSContextError``, ``JIDError``, ``EndpointError``.
    package static func report(
        _ domain: String,
        at base: HTTPSAddress? = nil,
        tls: ServerLegTLS,
        timeout: TimeAmount,
        on loop: any EventLoop
    ) async throws -> HostMetaReport {
        var lenient = tls
        lenient.isInsecure = true
        // Pins are those of the servers that the files name.
        lenient.pins = []
        let options = WebFetch.Options(
            tls: try TLSContext(lenient),
            domain: try ServerReference(domain: domain),
            isInsecure: tls.isInsecure,
            timeout: timeout
        )
        let base = try base ?? HTTPSAddress(for: domain)
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: HostMetaReport.self)
            get(base, options, on: loop) { promise.succeed($0) }
            return promise.futureResult
        }.get()
    }

    /// Gets both files, and calls `done` once, on the event loop.
    static func get(
        _ base: HTTPSAddress,
        _ options: WebFetch.Options,
        on loop: any EventLoop,
        _ done: @escaping (HostMetaReport) -> Void
    ) {
        WebFetch.get(base.with(path: "/.well-known/host-meta"), options, on: loop) { xrd in
            WebFetch.get(base.with(path: "/.well-known/host-meta.json"), options, on: loop) { json in
                var report = HostMetaReport(
                    xrd: parsed(xrd) { bytes throws(HostMetaFile.Fault) in try HostMetaFile(xrd: bytes) },
                    json: parsed(json) { bytes throws(HostMetaFile.Fault) in try HostMetaFile(json: bytes) },
                    domain: options.domain.domain
                )
                for (name, file) in [("host-meta", xrd), ("host-meta.json", json)] {
                    guard case .success(let file) = file else { continue }
                    if file.headers["access-control-allow-origin"] != ["*"] { report.unshared.append(name) }
                }
                done(report)
            }
        }
    }

    private static func parsed(
        _ file: Result<WebFetch.File, WebFetch.Failure>,
        _ parse: ([UInt8]) throws(HostMetaFile.Fault) -> HostMetaFile
    ) -> Result<HostMetaFile, HostMetaFile.Fault> {
        switch file {
        case .failure(let failure): .failure(HostMetaFile.Fault(description: failure.text))
        case .success(let file):
            Result { () throws(HostMetaFile.Fault) in
                do throws(HostMetaFile.Fault) {
                    return try parse(file.body)
                } catch {
                    throw HostMetaFile.Fault(description: "\(file.address): \(error)")
                }
            }
        }
    }
}

extension HTTPSAddress {
    /// Creates the address of an XMPP domain.
    init(for domain: String) throws(EndpointError) {
        let name = (try? ServerReference(domain: domain))?.hostName ?? domain
        try self.init("https://\(name)")
    }
}
