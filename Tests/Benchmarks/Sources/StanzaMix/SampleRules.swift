/// The measured rule files.
public enum SampleRules {
    /// A hundred rules for each kind of stanza, by payload, address and type; no stanza of the mix matches.
    public static let unmatched = (1...25).map { number in
        """
        KIND: message
        PAYLOAD: urn:example:unknown:\(number)
        DROP.

        KIND: message
        TO: nobody\(number)@<<%.invalid$>>
        DROP.

        KIND: iq
        TYPE: set
        FROM: nobody\(number)@example.invalid
        DROP.

        KIND: presence
        TYPE: subscribe, probe
        SIZE: > \(number)kB
        DROP.


        """
    }.joined()

    /// A hundred rules with all kinds of address conditions; no stanza of the mix matches.
    public static let unmatchedAddresses = (1...25).map { number in
        """
        TO: nobody\(number)@garden.example
        DROP.

        FROM: <*>@host\(number).invalid
        DROP.

        TO: <*>@<*.invalid\(number)>
        DROP.

        FROM: <<nobody%d+x\(number)>>@garden.example
        DROP.


        """
    }.joined()

    /// Rules that rewrite each stanza in both directions, so that the returned data is unchanged.
    public static let rewriting = """
        %PATTERN lower: example
        %PATTERN upper: EXAMPLE
        ::send

        SET=@to ~lower=EXAMPLE

        ::recv

        SET=@to ~upper=example

        """
}
