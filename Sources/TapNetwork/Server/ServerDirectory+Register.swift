internal import XMPPCore

/// In-band registration (XEP-0077): before the log-in to make an account, after it to change or remove one's own.
extension ServerDirectory {
    /// Answers a request of a connection that has not logged in.
    func registerStranger(_ payload: Element, isSet: Bool) -> IQAnswer {
        guard settings.allowsRegistration else { return .error(.notAllowed) }
        guard isSet else {
            return .result {
                $0.element("query", .register) {
                    $0.element("instructions", text: "Choose a user name and a password.")
                    $0.element("username")
                    $0.element("password")
                }
            }
        }
        guard let (name, password) = fields(payload), let jid = address(of: name) else { return .error(.notAcceptable) }
        guard accounts[jid] == nil else { return .error(.conflict) }
        guard accounts.count < settings.accountLimit else { return .error(.resourceConstraint) }
        do {
            try setPassword(password, of: jid)
        } catch {
            return .error(.internalServerError)
        }
        accounts[jid] = ServerAccount(jid: jid)
        return .result()
    }

    /// Answers a request of an account's own client.
    func register(_ payload: Element, isSet: Bool, _ sender: ServerSender) -> IQAnswer {
        guard settings.allowsRegistration else { return .error(.notAllowed) }
        let account = sender.jid.bare
        guard isSet else {
            return .result {
                $0.element("query", .register) {
                    $0.element("registered")
                    $0.element("username", text: account.local)
                    $0.element("password")
                }
            }
        }
        if payload.child("remove", .register) != nil {
            // The answer goes out first, then the account's last stream ends as well (XEP-0077 §3.2).
            removeAccount(account, except: sender.connection)
            command(.terminate(sender.connection, .notAuthorized))
            return .result()
        }
        guard let (name, password) = fields(payload) else { return .error(.badRequest) }
        guard address(of: name) == account else { return .error(.notAllowed) }
        do {
            try setPassword(password, of: account)
        } catch {
            return .error(.internalServerError)
        }
        return .result()
    }

    private func fields(_ payload: Element) -> (name: String, password: String)? {
        guard let name = payload.childText("username", .register), !name.isEmpty,
            let password = payload.childText("password", .register), !password.isEmpty
        else { return nil }
        return (name, password)
    }
}
