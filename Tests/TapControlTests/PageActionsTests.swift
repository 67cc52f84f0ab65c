import Testing

@testable import TapControl

/// The pages that are open and can act.
struct PageActionsTests {
    @Test func `a page is open until it is closed, or has asked for nothing for a minute`() async {
        let actions = PageActions(.test())
        let now = ContinuousClock.now
        actions.see("one", at: now)
        actions.see("two", at: now + .seconds(30))
        #expect(actions.pageCount == 2)
        await actions.expire(at: now + .seconds(59))
        #expect(actions.pageCount == 2)
        await actions.expire(at: now + .seconds(60))
        #expect(actions.pageCount == 1)
        await actions.close("two")
        #expect(actions.pageCount == 0)
    }

    @Test func `a request that arrives after its page was closed does not open the page again`() async {
        let actions = PageActions(.test())
        actions.see("one")
        await actions.close("one")
        actions.see("one")
        #expect(actions.pageCount == 0)
        for number in 0..<PageActions.maximumPages { await actions.close("page \(number)") }
        actions.see("one")
        #expect(actions.pageCount == 1)
    }

    @Test func `the number of pages is limited: the one that asked first is forgotten`() async {
        let actions = PageActions(.test())
        let now = ContinuousClock.now
        for number in 0..<PageActions.maximumPages + 5 { actions.see("\(number)", at: now + .seconds(number)) }
        #expect(actions.pageCount == PageActions.maximumPages)
        await actions.expire(at: now + .seconds(64))
        #expect(actions.pageCount == PageActions.maximumPages)
        actions.see("0", at: now + .seconds(PageActions.maximumPages + 5))
        #expect(actions.pageCount == PageActions.maximumPages)
    }
}
