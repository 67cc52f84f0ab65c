internal import TapRecord
import XMPPCore

/// TLS that is passed through: what it says in clear.
///
/// A class, so that each read changes it in place.
final class PassedTLS {
    private var hello: ClientHelloReader? = ClientHelloReader()
    private var answerReader: ServerHelloReader? = ServerHelloReader()
    private var answer: ServerHelloReader.Result?
    private var send = TLSRecordReader()
    private var recv = TLSRecordReader()

    /// The client's ClientHello is complete, and the server has answered it with a ServerHello.
    var isAnswered: Bool { answer == .hello && hello == nil }

    /// Reads on; gives what the client's first bytes are, once that is known.
    func read(_ direction: Direction, _ bytes: Span<UInt8>) -> ClientHelloReader.Result? {
        switch direction {
        case .send:
            send.append(bytes)
            let result = hello?.append(bytes)
            guard result != .needMore else { return nil }
            hello = nil
            return result
        case .recv:
            recv.append(bytes)
            answer = answer ?? answerReader?.append(bytes)
            if answer != nil { answerReader = nil }
            return nil
        }
    }

    /// Whether what has come ends with an alert.
    func endsWithAlert(_ direction: Direction) -> Bool {
        direction == .send ? send.endsWithAlert : recv.endsWithAlert
    }
}
