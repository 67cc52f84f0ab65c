/// What HTML pages have in common.
package enum PageStyle {
    /// The colours, for light and dark displays.
    package static let colours = """
        :root { color-scheme: light dark; --paper: #fff; --ink: #1d2733; --faint: #6b7785; --lane: #c3ccd6; --item: #2f6db5;
        --tap: #a85f00; --bad: #b91f1f; --good: #23783e; --box: #fbecec }
        @media (prefers-color-scheme: dark) { :root { --paper: #14191f; --ink: #d7dee6; --faint: #8b97a5; --lane: #3b4652;
        --item: #6aa5e8; --tap: #ffbf5e; --bad: #ff8b8b; --good: #6fce8d; --box: #3a1d1f } }
        """

    /// Escapes text from any source for a page.
    package static func escaped(_ text: String) -> String { DiagramText.escaped(text) }
}
