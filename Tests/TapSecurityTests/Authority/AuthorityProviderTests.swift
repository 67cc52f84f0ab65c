import Synchronization
import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

struct AuthorityProviderTests {
    private let temporary: TemporaryFolder
    private let folder: AuthorityFolder
    private let now: Timestamp
    private var policy = AuthorityProvider.Policy()

    init() throws {
        temporary = try TemporaryFolder()
        folder = AuthorityFolder(temporary.path(of: "ca"))
        now = try .day("2026-11-21")
        policy.suffixes = PublicSuffixes(path: "/dev/null", ownName: "Laptop.lan")
    }

    /// Returns the name of a created authority, or the error.
    private func made(
        _ name: String,
        below wildcard: String? = nil,
        _ policy: AuthorityProvider.Policy
    ) throws -> Result<String, AuthorityError> {
        let provider = AuthorityProvider(folder, policy)
        let wildcard = try wildcard.map { try CertificateName($0) }
        let name = try CertificateName(name)
        do throws(AuthorityError) {
            return .success(try provider.makeAuthority(for: name, below: wildcard, at: now).authority.name.description)
        } catch {
            return .failure(error)
        }
    }

    @Test func `The authority with the longest matching name is found, whichever was used before`() throws {
        let provider = AuthorityProvider(folder, policy)
        #expect(try provider.authority(covering: .domain("example.org"), at: now) == nil)
        for domain in ["example.org", "chat.example.org"] { _ = try folder.create(for: .domain(domain), at: now) }
        for name in ["example.org", "chat.example.org", "a.chat.example.org", "a.b.example.org"] {
            let found = try provider.authority(covering: .domain(name), at: now)
            #expect(found?.name == .domain(name.hasSuffix("chat.example.org") ? "chat.example.org" : "example.org"))
        }
        #expect(try provider.authority(covering: .domain("example.net"), at: now) == nil)
    }

    @Test func `A renewed authority is used once the old one expires, and a valid one stays cached`() throws {
        let provider = AuthorityProvider(folder, policy)
        let name = CertificateName.domain("example.org")
        let old = try folder.create(for: name, at: now).authority
        #expect(try provider.authority(covering: name, at: now)?.certificate == old.certificate)
        try folder.remove(name)
        let later = now + Timestamp.days(400)
        let new = try folder.create(for: name, at: later).authority
        #expect(try provider.authority(covering: name, at: now)?.certificate == old.certificate)
        #expect(try provider.authority(covering: name, at: later)?.certificate == new.certificate)
    }

    @Test func `The number of cached authorities is limited`() throws {
        let provider = AuthorityProvider(folder, policy)
        for number in 0..<(AuthorityProvider.cacheLimit + 8) {
            let name = CertificateName.domain("n\(number).example")
            _ = try folder.create(for: name, at: now)
            #expect(try provider.authority(covering: name, at: now)?.name == name)
        }
        #expect((1...AuthorityProvider.cacheLimit).contains(provider.countAtHand))
        #expect(try provider.authority(covering: .domain("n0.example"), at: now) != nil)
    }

    @Test func `Configured domains take precedence over wildcards, and other names need permission`() throws {
        var named = policy
        named.domains = [.domain("example.org")]
        #expect(try made("chat.example.org", below: "example.org", named).get() == "example.org")
        #expect(try made("a.b.example.org", below: "b.example.org", named).get() == "example.org")
        let refused = #expect(throws: AuthorityError.self) {
            try made("a.example.net", below: "example.net", named).get()
        }
        #expect(refused?.code == .outside([]))
        #expect(try folder.names() == [.domain("example.org")])
    }

    @Test func `No authority is created on demand for a possible top-level domain`() throws {
        var any = policy
        any.mayMakeAny = true
        any.ownNames = ["localhost", "laptop"]
        for name in ["localhost", "laptop", "example.org", "192.0.2.1", "::1"] {
            #expect(try made(name, any).get() == name, "\(name)")
        }
        for (name, code) in [
            ("com", AuthorityError.Code.publicSuffix), ("lan", .outside([])), ("jabber", .publicSuffix),
            ("xn--p1ai", .publicSuffix), ("co.uk", .publicSuffix),
        ] {
            let error = #expect(throws: AuthorityError.self, "\(name)") { try made(name, any).get() }
            #expect(error?.code == code, "\(name)")
        }
        // A configured public suffix needs confirmation too.
        any.domains = [.domain("co.uk")]
        #expect(throws: AuthorityError.self) { try made("a.co.uk", any).get() }
        #expect(try made("shop.com.au", below: "com.au", any).get() == "shop.com.au")
    }

    @Test func `No authority is created beyond the limit, and existing ones are still found`() async throws {
        var limited = policy
        limited.mayMakeAny = true
        limited.limit = 5
        let told = Mutex<[CertificateName]>([])
        let provider = AuthorityProvider(folder, limited) { made in told.withLock { $0.append(made.name) } }
        let now = now
        let outcomes = await withTaskGroup(of: AuthorityError.Code?.self) { group in
            for number in 0..<24 {
                group.addTask {
                    let name = CertificateName.domain("n\(number / 2).example")
                    do throws(AuthorityError) {
                        _ = try provider.makeAuthority(for: name, below: nil, at: now)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(try folder.names().count == 5)
        #expect(Set(told.withLock { $0 }) == Set(try folder.names()) && told.withLock { $0.count } == 5)
        #expect(outcomes.allSatisfy { $0 == nil || $0 == .tooMany(limit: 5) })
        #expect(outcomes.count { $0 == nil } == 10)
        for name in try folder.names() { #expect(try provider.authority(covering: name, at: now) != nil) }
    }
}
