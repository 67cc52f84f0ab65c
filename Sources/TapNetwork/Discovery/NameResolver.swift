internal import NIOCore

/// Where all sessions of a proxy ask for names.
struct NameResolver: Sendable {
    struct RecordQuestion: Hashable, Sendable {
        let service: ServiceRecord.Service
        let domain: String
    }

    struct AddressQuestion: Hashable, Sendable {
        let server: ServiceRecord
        let domain: String
        let isFromRecord: Bool
    }

    typealias Addresses = (usable: [SocketAddress], refused: [(SocketAddress, String)])

    let resolver: ServiceResolver
    let records: SharedLookup<RecordQuestion, Result<[ServiceRecord], LookupFault>>
    let addresses: SharedLookup<AddressQuestion, Result<Addresses, LookupFault>>

    init(_ resolver: ServiceResolver) {
        self.resolver = resolver
        records = SharedLookup { question in
            Result { () throws(LookupFault) in try resolver.records(question.service, of: question.domain) }
        }
        addresses = SharedLookup { question in
            Result { () throws(LookupFault) in
                try resolver.addresses(
                    of: question.server,
                    domain: question.domain,
                    isFromRecord: question.isFromRecord
                )
            }
        }
    }
}
