internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The resolver that all sessions of a proxy share.
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

    /// The addresses of a server.
    struct Addresses: Sendable {
        var usable: [SocketAddress] = []
        /// With the reason.
        var refused: [(SocketAddress, String)] = []
        /// The certificates that the DNS names for the server (DANE, RFC 7673); only looked up for servers.
        var associations: [DNSReply.Association] = []
    }

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

/// Looks names up on NIO's thread pool, each question once for all concurrent callers: a silent name server
/// blocks one thread, not one for each client.
final class SharedLookup<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    /// An answer, and the duration of the lookup in nanoseconds.
    typealias Timed = (answer: Answer, duration: Int64)

    private let waiting = Mutex<[Question: [EventLoopPromise<Timed>]]>([:])
    private let resolve: @Sendable (Question) -> Answer

    /// - Parameter look: Returns the answer; may block.
    init(_ resolve: @escaping @Sendable (Question) -> Answer) { self.resolve = resolve }

    /// Looks up the answer; the future completes on `eventLoop`.
    func ask(_ question: Question, on eventLoop: any EventLoop) -> EventLoopFuture<Timed> {
        let promise = eventLoop.makePromise(of: Timed.self)
        let isFirst = waiting.withLock { waiting in
            waiting[question, default: []].append(promise)
            return waiting[question]?.count == 1
        }
        if isFirst {
            NIOThreadPool.singleton.submit { [self] _ in
                let began = NIODeadline.now()
                let answer = resolve(question)
                let duration = (NIODeadline.now() - began).nanoseconds
                let promises = waiting.withLock { $0.removeValue(forKey: question) ?? [] }
                for promise in promises { promise.succeed((answer, duration)) }
            }
        }
        return promise.futureResult
    }
}
