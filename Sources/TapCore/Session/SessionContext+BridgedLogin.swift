internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Sends and records the messages of a login that xmpptap performs itself, in both directions of both legs.
extension SessionContext {
    /// Sends an element of the login to a peer; returns the element as the peer will read it.
    mutating func sendLogin(_ bytes: [UInt8], to leg: Leg) -> Element? {
        outlet.answer(bytes, to: leg)
        return tools.elements.read(bytes.span)
    }

    /// Records a message of the login that xmpptap has sent.
    mutating func recordLogin(_ bytes: [UInt8], _ step: AuthenticationStep, _ leg: Leg) {
        var record = makeRecord(.element, .info, part: .sasl)
        record.origin = .tap
        record.direction = leg.inbound.opposite
        record.leg = leg
        record.epoch = directions[leg.inbound.opposite].decoder.epoch
        record.length = UInt64(bytes.count)
        record.sasl = step.details
        if step.kind == .failure {
            record.level = .error
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = step.text.map { Prose($0) }
        }
        record.xml = compose(bytes)
        record.name = record.xml.map { outlet.elementName(in: $0) }
        emit(consume record)
    }

    // MARK: Remarks

    mutating func record(_ remark: SASLBridge.Remark) {
        switch remark {
        case .unknownAccount(let user, isBound: true):
            login?.observe(.missedAccount)
            record(
                .error,
                "account-missing",
                "\(account(user)) is not in the accounts file, and its login uses channel binding to xmpptap's TLS "
                    + "connection; login refused",
                .addAccount
            )
        case .unknownAccount(let user, isBound: false):
            record(.info, "login-not-ended", "\(account(user)) is not in the accounts file; login relayed unchanged")
        case .foreignMechanism(let mechanism):
            record(
                .warn,
                "login-not-ended",
                "the client uses \(mechanism), which was not offered; login relayed unchanged"
            )
        case .ownLogin(let choice, let user):
            let binding = choice.binding.binding.map { ", channel binding \($0.type)" } ?? ""
            let remark = choice.remark.map { ", no channel binding: \($0)" } ?? ""
            record(
                .info,
                "own-login",
                "client authenticated as \(account(user)); xmpptap logs in to the server by "
                    + "\(choice.mechanism)\(binding)\(remark)"
            )
        case .ownLoginRefused(let user):
            record(
                .error,
                "own-login-refused",
                "the server refused xmpptap's own login for \(account(user))",
                .usual(.ownLoginRefused)
            )
        case .ownLoginFailed(let explanation, let user, let isServerAtFault):
            login?.observe(.ownFailure(Prose(explanation), isServerUnproven: isServerAtFault))
            record(
                .error,
                "own-login-failed",
                "xmpptap gave up the login for \(user.isEmpty ? "the client" : account(user)): \(explanation)"
            )
        case .noMechanism(let list):
            record(
                .error,
                "own-login-failed",
                "the server offers no mechanism that xmpptap can use (\(list.joined(separator: ", ")))",
                .offerMechanism
            )
        case .noKeys(let mechanism, let has, let user):
            let base = BridgedOffer.base(of: mechanism)
            record(
                .error,
                "client-login-refused",
                "\(account(user)) has no stored key for \(base), but for \(has.joined(separator: ", ")), and its client uses "
                    + "\(mechanism); login refused",
                .addKey(mechanism: base)
            )
        case .clientRefused(let explanation, let user):
            record(
                .error,
                "client-login-refused",
                "xmpptap refused the client's login"
                    + "\(user.map { " for \(account($0))" } ?? ""): \(explanation)"
            )
        }
    }

    private mutating func record(_ level: Level, _ code: String, _ message: Prose, _ remedy: Remedy? = nil) {
        report(level == .error ? .error : .note, level, code: code, message, part: .sasl, remedy: remedy)
    }

    private func account(_ user: String) -> String {
        let name = tools.redactor.disclose(user: user, at: info.domain)
        guard let domain = info.domain, !name.contains("@") else { return name }
        return "\(name)@\(tools.redactor.disclose(address: domain))"
    }
}
