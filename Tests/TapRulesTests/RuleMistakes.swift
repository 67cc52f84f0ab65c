/// The mistakes and their messages, without the file name. Each mistake follows ``RuleFileTests/definitions``.
let ruleMistakes: [(file: String, faults: [String])] = [
    (
        "KNID: message\nDROP.",
        [
            "1:1: unknown condition \"KNID\"; expected a condition such as KIND: message, or an action such as DROP.; did you mean \"KIND\"?"
        ]
    ),
    (
        "kind: message\nDROP.",
        [
            "1:1: unknown condition \"kind\"; expected a condition such as KIND: message, or an action such as DROP.; did you mean \"KIND\"?"
        ]
    ),
    (
        "KIND: messag\nDROP.",
        [
            "1:7: \"messag\" is not a kind of stanza; expected message, presence or iq; ELEMENT names other elements; did you mean \"message\"?"
        ]
    ),
    ("KIND: ,\nDROP.", ["1:7: the list is empty"]), ("TYPE: |\nDROP.", ["1:7: the list is empty"]),
    ("NTH: ,\nDROP.", ["1:6: the list is empty"]), ("SESSION: ,\nDROP.", ["1:10: the list is empty"]),
    (
        "DAY: Monkey\nDROP.",
        ["1:6: \"Monkey\" is not a day; expected days or ranges, as in Mon-Fri, Sunday; did you mean \"monday\"?"]
    ),
    (
        "TIME: +5:00-+6:+30\nDROP.",
        ["1:7: \"+5:00-+6:+30\" is not a range of times; expected one as in 22:00-6:00 or 10pm-6am"]
    ),
    (
        "ELEMENT: urn:xmpp:sm:3\nDROP.",
        ["1:10: \"urn:xmpp:sm:3\" is not an element name; expected {namespace}name, {namespace}* or name"]
    ),
    ("%PATTERN p: %\nCOUNT: p in body > 1\nDROP.", ["1:13: the pattern is wrong: \"%\" at the end"]),
    ("KIND message\nDROP.", ["1:1: no \":\" after KIND; expected KIND: VALUE"]),
    ("KIND:\nDROP.", ["1:6: KIND without a value; expected KIND: VALUE"]),
    ("TYPE: chatt\nDROP.", ["1:7: \"chatt\" is not a type of a stanza; did you mean \"chat\"?"]),
    (
        "INSPECT: body=x\nDROP.",
        ["1:10: \"body\" is an element, not a text; append # for the text of the element, or @name for an attribute"]
    ),
    (
        "INSPECT: {urn:x/body\nDROP.",
        [
            "1:10: \"{urn:x/body\" is not a path: \"{\" without \"}\"; expected a path, as in {urn:xmpp:ping}ping or body#"
        ]
    ),
    (
        "INSPECT: body#/name\nDROP.",
        [
            "1:10: \"body#/name\" is not a path: \"#\" must be the end of a path; expected a path, as in {urn:xmpp:ping}ping or body#"
        ]
    ),
    (
        "INSPECT: a/\nDROP.",
        ["1:10: \"a/\" is not a path: \"/\" at the end; expected a path, as in {urn:xmpp:ping}ping or body#"]
    ),
    (
        "INSPECT: body#|=x\nDROP.",
        [
            "1:10: \"body#|\" is not a path: \"#\" must be the end of a path; expected a path, as in {urn:xmpp:ping}ping or body#"
        ]
    ),
    ("INSPECT: body#~=[a\nDROP.", ["1:17: the pattern is wrong: \"[\" without \"]\""]),
    ("INSPECT: body#~=(a)%1\nDROP.", ["1:20: the pattern is wrong: back references are not supported"]),
    ("INSPECT: body#~~=(a)\\1\nDROP.", ["1:21: the regular expression is wrong: back references are not supported"]),
    (
        "INSPECT: body#$=$<@from|bear>\nDROP.",
        [
            "1:17: \"bear\" is not a function of an expression; expected bare, node, host or resource, or ||\"default\" at the end"
        ]
    ),
    ("INSPECT: body#$=$<body#\nDROP.", ["1:17: \"$<\" without \">\""]),
    ("FROM: @example.org\nDROP.", ["1:7: \"@example.org\" is not a JID: local part: it is empty"]),
    ("FROM: a@b@c\nDROP.", ["1:7: \"a@b@c\" is not a JID: domain part: U+0040 at byte 1 is not allowed there"]),
    ("FROM: x<*>@example.org\nDROP.", ["1:7: \"x<*>\" mixes text and < >; expected <…> around the whole part"]),
    ("FROM: <<[a>>@example.org\nDROP.", ["1:7: \"<<[a>>\": \"[\" without \"]\"; expected a Lua pattern in << >>"]),
    (
        "FROM IP: 1.2.3\nDROP.",
        ["1:10: \"1.2.3\" is not an IP address; expected one as in 192.0.2.7; FROM SUBNET takes networks"]
    ),
    (
        "FROM IP: 10.0.0.0/8\nDROP.",
        ["1:10: \"10.0.0.0/8\" is not an IP address; expected one as in 192.0.2.7; FROM SUBNET takes networks"]
    ),
    (
        "FROM SUBNET: 10.0.0.0/33\nDROP.",
        ["1:14: \"10.0.0.0/33\" is not an IP network; expected one as in 192.0.2.0/24"]
    ),
    (
        "FROM COUNTRY: SE\nDROP.",
        ["1:1: FROM COUNTRY is not supported; countries of IP addresses need a data file, which xmpptap does not have"]
    ),
    (
        "MAY: xmpp:federate\nDROP.",
        ["1:1: MAY is not supported; only the server knows permissions; list the JIDs in a %ZONE or a %LIST"]
    ),
    ("TO ROLE: prosody:admin\nDROP.", ["1:1: TO ROLE is not supported; only the server knows roles"]),
    ("FROM ROLE: prosody:admin\nDROP.", ["1:1: FROM ROLE is not supported; only the server knows roles"]),
    ("FROM_ADMIN?\nDROP.", ["1:1: FROM ADMIN is not supported; only the server knows administrators"]),
    ("TO ADMIN?\nDROP.", ["1:1: TO ADMIN is not supported; only the server knows administrators"]),
    (
        "FROM ADMIN OF: example.net\nDROP.",
        ["1:1: FROM ADMIN OF is not supported; only the server knows administrators"]
    ),
    ("NOT TO ADMIN OF: *\nDROP.", ["1:1: TO ADMIN OF is not supported; only the server knows administrators"]),
    (
        "FROM GROUP: staff\nDROP.",
        ["1:1: FROM GROUP is not supported; only the server knows user groups; list the members in a %ZONE"]
    ),
    (
        "TO GROUP: staff\nDROP.",
        ["1:1: TO GROUP is not supported; only the server knows user groups; list the members in a %ZONE"]
    ),
    (
        "CROSSING GROUPS: a, b\nDROP.",
        [
            "1:1: CROSSING GROUPS is not supported; only the server knows user groups; list the members in a %ZONE and use CROSSING"
        ]
    ),
    (
        "ENTERING: staf\nDROP.",
        [
            "1:11: no zone \"staf\" is defined; expected a line %ZONE staf: … in one of the files; did you mean \"staff\"?"
        ]
    ),
    ("IN ROSTER\nDROP.", ["1:10: no \"?\" after IN ROSTER; expected IN ROSTER?"]),
    ("IN ROSTER? yes\nDROP.", ["1:12: unexpected \"yes\"; expected the end of the line"]),
    ("IN ROSTER: maybe\nDROP.", ["1:12: \"maybe\" is not a valid answer; expected yes, true, no, false"]),
    ("TO SELF: yes\nDROP.", ["1:8: TO SELF takes no value; expected TO SELF?"]),
    (
        "TIME: 25:00-26:00\nDROP.",
        ["1:7: \"25:00-26:00\" is not a range of times; expected one as in 22:00-6:00 or 10pm-6am"]
    ),
    ("TIME: 9-17\nDROP.", ["1:7: \"9-17\" is not a range of times; expected one as in 22:00-6:00 or 10pm-6am"]),
    (
        "TIME: -9:00-17:00\nDROP.",
        ["1:7: \"-9:00-17:00\" is not a range of times; expected one as in 22:00-6:00 or 10pm-6am"]
    ),
    (
        "TIME: 9:00-17:00-\nDROP.",
        ["1:7: \"9:00-17:00-\" is not a range of times; expected one as in 22:00-6:00 or 10pm-6am"]
    ),
    (
        "DAY: Mon-\nDROP.",
        ["1:6: \"Mon-\" is not a day or a range of days; expected days or ranges, as in Mon-Fri, Sunday"]
    ),
    (
        "DAY: -Fri\nDROP.",
        ["1:6: \"-Fri\" is not a day or a range of days; expected days or ranges, as in Mon-Fri, Sunday"]
    ),
    (
        "DAY: Sun, Mon-Fri-\nDROP.",
        ["1:11: \"Mon-Fri-\" is not a day or a range of days; expected days or ranges, as in Mon-Fri, Sunday"]
    ),
    ("DAY: Mo\nDROP.", ["1:6: \"Mo\" is not a day; expected days or ranges, as in Mon-Fri, Sunday"]),
    (
        "DAY: Blursday\nDROP.",
        ["1:6: \"Blursday\" is not a day; expected days or ranges, as in Mon-Fri, Sunday; did you mean \"thursday\"?"]
    ),
    (
        "LIMIT: nomal\nDROP.",
        [
            "1:8: no rate \"nomal\" is defined; expected a line %RATE nomal: … in one of the files; did you mean \"normal\"?"
        ]
    ),
    (
        "LIMIT: normal at $<@from>\nDROP.",
        ["1:15: \"at\" instead of \"on\"; expected LIMIT: RATE, or LIMIT: RATE on $<@from|bare>"]
    ),
    (
        "ORIGIN MARKED: 7up\nDROP.",
        ["1:16: \"7up\" is not a name of a mark; expected letters, digits and _, a letter first"]
    ),
    ("ORIGIN MARKED: spam (3600)\nDROP.", ["1:22: a duration without a unit; expected ms, s, min or h, as in 500ms"]),
    (
        "CHECK LIST: bad has $<@from>\nDROP.",
        ["1:17: \"has\" instead of \"contains\"; expected CHECK LIST: LIST contains $<@from>"]
    ),
    (
        "CHECK LIST: baad contains $<@from>\nDROP.",
        ["1:13: no list \"baad\" is defined; expected a line %LIST baad: … in one of the files; did you mean \"bad\"?"]
    ),
    ("SCAN: body for word\nDROP.", ["1:20: \"in\" is missing; expected SCAN: SEARCH for PATTERN in LIST"]),
    ("COUNT: word in body\nDROP.", ["1:20: missing comparison; expected >, <, >=, <= or ="]),
    ("COUNT: word in body ~ 3\nDROP.", ["1:21: missing comparison; expected >, <, >=, <= or ="]),
    ("COUNT: word in body > many\nDROP.", ["1:23: missing number; expected a whole number from 0"]),
    (
        "DIRECTION: sent\nDROP.",
        ["1:12: \"sent\" is not a valid direction; expected send, recv; did you mean \"send\"?"]
    ),
    (
        "PHASE: opened\nDROP.",
        [
            "1:8: \"opened\" is not a phase; expected opening, authenticating, binding, open, closing, handshake; did you mean \"open\"?"
        ]
    ),
    ("SESSION: 0\nDROP.", ["1:10: \"0\" is not a number of a session; expected a whole number from 1"]),
    (
        "ELEMENT: {urn:x}a/b\nDROP.",
        ["1:10: \"{urn:x}a/b\" is not an element name; expected {namespace}name, {namespace}* or name"]
    ),
    ("SIZE: 10kB\nDROP.", ["1:7: missing comparison; expected >, <, >=, <= or ="]),
    ("SIZE: > 10kilo\nDROP.", ["1:9: \"kilo\" is not a unit of size; expected B, kB, MB, KiB or MiB"]),
    ("ROUND TRIP: > 2\nDROP.", ["1:15: a duration without a unit; expected ms, s, min or h, as in 500ms"]),
    ("ORIGIN: client\nDROP.", ["1:9: \"client\" is not a valid origin; expected peer, tap"]),
    ("TRANSPORT: ssl\nDROP.", ["1:12: \"ssl\" is not a valid transport; expected tcp, tls"]),
    ("EVERY: 0\nDROP.", ["1:8: 0 is not a valid number; expected 1 to 1000000000"]),
    ("NTH: 1, x\nDROP.", ["1:9: \"x\" is not a number; expected a whole number from 1"]),
    ("PROBABILITY: 150%\nDROP.", ["1:14: a probability above 1; expected 0 to 1, or 0% to 100%"]),
    ("KIND: message", ["1:1: conditions without an action; expected an action such as DROP."]),
    ("KIND: message\n\nDROP.", ["2:1: conditions without an action; expected an action such as DROP."]),
    (
        "KIND: message\nDROP.\nTYPE: chat",
        [
            "3:1: a condition after an action; expected an empty line between two rules",
            "3:1: conditions without an action; expected an action such as DROP.",
        ]
    ),
    ("KIND: message\n::send\nDROP.", ["2:1: \"::\" inside a rule; expected an action of the rule before it"]),
    (
        "::delivery\nDROP.",
        [
            "1:3: unknown chain \"delivery\"; expected both, send, recv, handshake, preroute, deliver, deliver_remote or user/NAME; did you mean \"deliver\"?"
        ]
    ),
    (
        "DORP.",
        [
            "1:1: unknown action \"DORP\"; expected an action such as DROP. or BOUNCE=policy-violation; did you mean \"DROP\"?"
        ]
    ),
    (
        "DROP",
        [
            "1:1: DROP is an action; expected DROP."
        ]
    ),
    ("REPLY: Busy", ["1:1: REPLY is an action; expected REPLY=VALUE"]),
    (
        "DROP.\nDORP.",
        [
            "2:1: unknown action \"DORP\"; expected an action such as DROP. or BOUNCE=policy-violation; did you mean \"DROP\"?"
        ]
    ),
    ("DROP=yes", ["1:6: DROP takes no value; expected DROP."]),
    ("DROP. now", ["1:7: unexpected \"now\"; expected the end of the line"]),
    (
        "BOUNCE=policy-violtion",
        [
            "1:8: \"policy-violtion\" is not a stanza error; expected a condition of RFC 6120 §8.3.3, as in BOUNCE=policy-violation (too long); did you mean \"policy-violation\"?"
        ]
    ),
    (
        "BOUNCE=forbidden:aut",
        [
            "1:8: \"aut\" is not a type of a stanza error; expected auth, cancel, continue, modify, wait; did you mean \"auth\"?"
        ]
    ),
    ("BOUNCE=forbidden too many", ["1:18: unexpected \"too many\"; write the text in parentheses: (too many)"]),
    ("REPLY=", ["1:1: REPLY without a value; expected REPLY=VALUE"]),
    ("REDIRECT=a@b@c", ["1:10: \"a@b@c\" is not a JID: domain part: U+0040 at byte 1 is not allowed there"]),
    ("STRIP=a/b", ["1:7: \"a/b\" is not an element name; expected STRIP=NAME or STRIP=NAME NAMESPACE"]),
    ("STRIP={urn:x}a", ["1:7: \"{urn:x}a\" is not an element name; expected STRIP=NAME or STRIP=NAME NAMESPACE"]),
    ("INJECT=<a>", ["1:8: the XML is wrong: the element is not complete; expected one whole element"]),
    ("INJECT=<a/><b/>", ["1:8: the XML is wrong: more than one element; expected one whole element"]),
    ("INJECT=text", ["1:8: the XML is wrong: text between stanzas; expected one whole element"]),
    (
        "INJECT=<a b='1' b='2'/>",
        ["1:8: the XML is wrong: the same attribute twice in one tag; expected one whole element"]
    ),
    (
        "INJECT=<a>&nbsp;</a>",
        ["1:8: the XML is wrong: a reference to an undeclared entity; expected one whole element"]
    ),
    ("MARK ORIGIN=7up", ["1:13: \"7up\" is not a name of a mark; expected letters, digits and _, a letter first"]),
    ("ADD TO=bad", ["1:11: nothing to add; expected ADD TO=LIST $<@from|bare>"]),
    (
        "ADD TO=baad $<@from>",
        ["1:8: no list \"baad\" is defined; expected a line %LIST baad: … in one of the files; did you mean \"bad\"?"]
    ),
    (
        "LOG=$(os.execute(\"ls\"))",
        [
            "1:5: \"$(os.execute(\"ls\"))\" is Lua code; xmpptap does not run Lua; expected $<…>, $(stanza.attr.NAME) or one of $(stanza), $(stanza:top_tag()), $(stanza.name), $(session.full_jid), $(session.username), $(session.host), $(session.ip)"
        ]
    ),
    (
        "JUMP CHAIN=spam",
        ["1:12: unknown chain \"spam\"; expected user/NAME; did you mean \"user/spam\"?"]
    ),
    (
        "JUMP CHAIN=user/",
        [
            "1:12: unknown chain \"user/\"; expected both, send, recv, handshake, preroute, deliver, deliver_remote or user/NAME"
        ]
    ),
    ("KIND: message\nBOUNCE policy-violation", ["2:1: no \"=\" after BOUNCE; expected BOUNCE=VALUE"]),
    ("KIND: message\nDROP now\n\nPASS.", ["2:1: no \".\" after DROP; expected DROP."]),
    (
        "::user/a\nJUMP CHAIN=user/b\n\n::user/b\nJUMP CHAIN=user/a\n\n::both\nJUMP CHAIN=user/a",
        [
            "2:12: jump loop: user/b → user/a → user/b; a chain must not lead back to itself",
            "5:12: jump loop: user/a → user/b → user/a; a chain must not lead back to itself",
            "8:12: jump loop: user/a → user/b → user/a; a chain must not lead back to itself",
        ]
    ),
    (
        "::deliver\nJUMP CHAIN=user/a\n\n::user/a\nJUMP CHAIN=user/b\n\n::user/b\nJUMP CHAIN=user/b",
        [
            "2:12: user/a leads to a loop of jumps: user/b → user/b; remove one of these jumps",
            "5:12: jump loop: user/b → user/b; a chain must not lead back to itself",
            "8:12: jump loop: user/b → user/b; a chain must not lead back to itself",
        ]
    ),
    ("RULEDEP=x", ["1:1: RULEDEP is not supported; it loads code into the server"]),
    ("EVENT=x", ["1:1: EVENT is not supported; events exist only inside the server"]),
    ("JUMP EVENT=x", ["1:1: JUMP EVENT is not supported; events exist only inside the server"]),
    (
        "REPORT TO=a@b",
        [
            "1:1: REPORT TO is not supported; the server sends reports on its own behalf; FORWARD=JID sends the stanza to a person"
        ]
    ),
    ("DELAY=2", ["1:7: a duration without a unit; expected ms, s, min or h, as in 500ms"]),
    ("DELAY=2s (jiter 1s)", ["1:11: unknown option \"jiter 1s\"; expected (jitter 500ms)"]),
    ("DUPLICATE=0", ["1:11: 0 is not a valid number of copies; expected 1 to 1000"]),
    (
        "SET=body=x",
        ["1:5: \"body\" is an element, not a text; append # for the text of the element, or @name for an attribute"]
    ),
    ("SET=@to", ["1:8: no \"=\" after @to; expected SET=PATH=TEXT or SET=PATH ~PATTERN=TEXT"]),
    ("SET=@xml:lang=x", ["1:5: \"@xml:lang\" has a namespace; only attributes without one can be edited"]),
    ("SET=@to ~dom=x", ["1:10: no pattern \"dom\" is defined; expected a line %PATTERN dom: … in one of the files"]),
    ("SET=@to ~word=%3", ["1:16: 3 is not a valid capture after %; expected 0 to 1"]),
    ("REPLACE=body# <a/>", ["1:9: \"body#\" is a text, not an element; use SET to change a text"]),
    ("REPLACE=<iq/><iq/>", ["1:9: the XML is wrong: more than one element; expected one whole element"]),
    ("REPLACE=<open/>", ["1:9: \"<open>\" is not a stanza; expected <message>, <presence> or <iq>"]),
    ("REPLACE=body", ["1:13: missing XML; expected REPLACE=PATH XML"]),
    ("RECORD=maybe", ["1:8: \"maybe\" is not a valid switch; expected on, off"]),
    ("LEVEL=debug", ["1:7: \"debug\" is not a valid level; expected error, warn, info, verbose, trace"]),
    ("CUT AFTER=soon", ["1:11: missing number of bytes; expected 0 to 1099511627776"]),
    ("THROTTLE=0", ["1:10: the rate is 0; use STALL. to stop the stream"]),
    ("SLICE=0", ["1:7: 0 is not a valid number of bytes; expected 1 to 1073741824"]),
    ("SLICE=1 (each 7ms)", ["1:10: unknown option \"each 7ms\"; expected (every 7ms)"]),
    (
        "STREAM ERROR=polcy-violation",
        [
            "1:14: \"polcy-violation\" is not a stream error; expected a condition of RFC 6120 §4.9.3, as in STREAM ERROR=policy-violation; did you mean \"policy-violation\"?"
        ]
    ),
    (
        "SASL FAILURE=temporary-auth-failur",
        [
            "1:14: \"temporary-auth-failur\" is not a valid SASL failure; expected aborted, account-disabled, credentials-expired, encryption-required, incorrect-encoding, invalid-authzid, invalid-mechanism, malformed-request, mechanism-too-weak, not-authorized, temporary-auth-failure; did you mean \"temporary-auth-failure\"?"
        ]
    ),
    ("%ZONE staff\nDROP.", ["1:12: no \":\" after staff; expected %ZONE staff: VALUE"]),
    (
        "%ZONES staff: a\nDROP.",
        ["1:2: unknown definition \"%ZONES\"; expected %LIST, %PATTERN, %RATE, %SEARCH, %ZONE; did you mean \"%ZONE\"?"]
    ),
    ("%ZONE 7up: a\nDROP.", ["1:7: \"7up\" is not a name of a zone; expected letters, digits and _, a letter first"]),
    ("%RATE r: fast\nDROP.", ["1:10: missing rate; expected a number"]),
    (
        "%RATE r: 2 (bust 3)\nDROP.",
        [
            "1:13: unknown option \"bust 3\"; expected (burst SECONDS), (entries N) or (allow overflow); did you mean \"burst\"?"
        ]
    ),
    (
        "%RATE r: 0.1\nDROP.",
        ["1:10: the limit never allows an event: rate × burst is below 1; expected a burst of at least 10"]
    ),
    (
        "%RATE r: 0.00000000000000000000001\nDROP.",
        ["1:10: the limit never allows an event: rate × burst is below 1; expected a larger rate"]
    ),
    (
        "JUMP CHAIN=user/c0" + (0...3000).map { "\n\n::user/c\($0)\nJUMP CHAIN=user/c\($0 + 1)" }.joined()
            + "\n\n::user/c3001\nDROP.",
        ["1:12: jumps nested deeper than 100 chains"]
    ),
    (
        "%RATE r: 2 (burst 3\nDROP.",
        ["1:12: unexpected \"(burst 3\"; expected an option in parentheses, as in (burst 3), or the end of the line"]
    ),
    (
        "%LIST l: https://example.com/list (ttl: 3600, hash: sha1)\nDROP.",
        ["1:10: lists over HTTP are not supported; download the file and use file:PATH"]
    ),
    (
        "SET=@to=romeo@\nDROP.",
        ["1:5: to=\"romeo@\" is not a JID: domain part: there is none"]
    ),
    (
        "SET=@from=",
        ["1:5: from=\"\" is not a JID: domain part: there is none; use REMOVE=@from to remove it"]
    ),
    (
        "REPLACE=<message to='a@b@c'/>",
        ["1:9: to=\"a@b@c\" is not a JID: domain part: U+0040 at byte 1 is not allowed there"]
    ),
    (
        "KIND: message\nLOSE ACK.",
        [
            "1:1: LOSE ACK. can never act: the rule is not asked about acknowledgements; add the condition ELEMENT: {urn:xmpp:sm:3}a"
        ]
    ),
    (
        "ELEMENT: {urn:xmpp:sm:3}r\nLOSE ACK.",
        [
            "1:1: LOSE ACK. can never act: the rule is not asked about acknowledgements; add the condition ELEMENT: {urn:xmpp:sm:3}a"
        ]
    ),
    (
        "::handshake\n\nELEMENT: {urn:xmpp:sm:3}a\nLOSE ACK.",
        [
            "3:1: LOSE ACK. can never act: the rule is not asked about acknowledgements; add the condition ELEMENT: {urn:xmpp:sm:3}a"
        ]
    ),
    (
        "::recv\n\nELEMENT: auth\nSASL FAILURE=aborted",
        ["3:1: SASL FAILURE can never act: the rule is not asked about the client's login; put it below ::handshake"]
    ),
    ("EVERY: 2 (all)\nDROP.", ["1:11: unknown option \"all\"; expected (all sessions)"]),
    (
        "%LIST l: http://example.com/list\nDROP.",
        ["1:10: lists over HTTP are not supported; download the file and use file:PATH"]
    ),
    (
        "%LIST l: file:lists/missing.txt\nDROP.",
        ["1:10: lists/missing.txt does not exist; create it, or append (missing: ignore)"]
    ),
    (
        "%LIST l: file:lists/huge.txt\nDROP.",
        ["1:10: lists/huge.txt is larger than 16 MiB; that is the limit for such a file"]
    ),
    ("%LIST l: file:lists/latin1.txt\nDROP.", ["1:10: lists/latin1.txt is not UTF-8 text"]),
    (
        "%LIST l: memry\nDROP.",
        ["1:10: unknown kind of list \"memry\"; expected memory or file:PATH; did you mean \"memory\"?"]
    ),
    (
        "%LIST l: memory (limit: none)\nDROP.",
        ["1:18: \"none\" is not a limit of a list; expected a whole number from 1"]
    ),
    (
        "%LIST l: memory (filter: sha1)\nDROP.",
        ["1:18: \"sha1\" is not a filter of a list; expected upper, lower, prep or bare"]
    ),
    (
        "%SEARCH s: body\nDROP.",
        ["1:12: \"body\" is an element, not a text; append # for the text of the element, or @name for an attribute"]
    ),
    ("%PATTERN p: %\nDROP.", ["1:13: the pattern is wrong: \"%\" at the end"]),
    ("%PATTERN p (regexp): a\nDROP.", ["1:13: \"(regexp):\"; expected (regex)"]),
    ("%PATTERN p (regex): (a\nDROP.", ["1:21: the regular expression is wrong: \"(\" without \")\""]),
    (
        "@@ tracing = on\nDROP.",
        ["1:4: unknown setting \"tracing\"; expected @@ trace = on or @@ refused_edit = drop"]
    ),
    ("@@ refused_edit\nDROP.", ["1:16: no value of \"refused_edit\"; expected @@ refused_edit = drop"]),
    (
        "@@ refused_edit = bounce\nDROP.",
        ["1:19: \"bounce\" is not a valid value of \"refused_edit\"; expected drop, pass"]
    ),
    ("@@ trace = yes\nDROP.", ["1:12: \"yes\" is not a valid value of \"trace\"; expected on, off"]),
    (
        "hello\nDROP.",
        ["1:1: unknown condition \"hello\"; expected a condition such as KIND: message, or an action such as DROP."]
    ),
    ("KIND=message", ["1:1: KIND is a condition, not an action; expected KIND: VALUE"]),
    ("%LIST l: file:lists/secret.txt\nDROP.", ["1:10: cannot read lists/secret.txt: Permission denied"]),
    (
        "%SEARCH l:< lists/missing.txt\nDROP.",
        ["1:30: lists/missing.txt does not exist; create it, or append (missing: ignore)"]
    ),
    (
        "INSPECT: body#%=x\nDROP.",
        [
            "1:10: \"body#%\" is not a path: \"#\" must be the end of a path; expected a path, as in {urn:xmpp:ping}ping or body#"
        ]
    ),
    (
        "NOT: x\nDROP.",
        [
            "1:1: \"NOT: x\" is neither condition nor action; expected a condition such as KIND: message, or an action such as DROP."
        ]
    ),
    ("SESSION: romeo@\nDROP.", ["1:10: \"romeo@\" is not a JID: domain part: there is none"]),
]
