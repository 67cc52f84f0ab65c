#!/usr/bin/env python3
"""Writes UnicodeData.swift from the files of Debian's package unicode-data.

    apt-get install unicode-data
    Sources/XMPPCore/JID/Unicode/generate.py [FOLDER]        FOLDER: /usr/share/unicode

The tables hold what PRECIS (RFC 8264), IDNA2008 (RFC 5892, RFC 5893) and NFC (UAX #15) ask of a code point. The derived
properties of the RFCs are computed here, so that no rule about sets of code points is left to the program.

A table is a text of numbers. A number is written in groups of five bits, the lowest first, each one character from "0"
(0x30) on; a group that another follows has 32 added to it. Signed numbers are doubled, less one when negative.
"""

import pathlib
import sys

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
COUNT = 0x110000
HERE = pathlib.Path(__file__).resolve().parent


def lines(name):
    """The fields of each line of a file, without comments."""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if fields != [""]:
            yield fields


def span(field):
    first, _, last = field.partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


def members(name, value, column=1):
    """The code points whose property in a file has a value."""
    return {code for fields in lines(name) if fields[column] == value for code in span(fields[0])}


def in_ranges(*ranges):
    return {code for first, last in ranges for code in range(first, last + 1)}


# --- What the files say -----------------------------------------------------------------------------------------------

version = (FOLDER / "DerivedAge.txt").read_text(encoding="utf-8").split("-", 1)[1].split(".txt")[0]

category = ["Cn"] * COUNT
combining = [0] * COUNT
bidi_name = [""] * COUNT
lower, decomposition, compatible, width = {}, {}, {}, {}

first = None
for fields in lines("UnicodeData.txt"):
    code = int(fields[0], 16)
    if fields[1].endswith("First>"):
        first = code
        continue
    for member in range(first if fields[1].endswith("Last>") else code, code + 1):
        category[member], combining[member], bidi_name[member] = fields[2], int(fields[3]), fields[4]
    if fields[5]:
        kind, _, rest = fields[5].rpartition("> ")
        target = [int(part, 16) for part in rest.split()]
        if not kind:
            decomposition[code] = target
        compatible[code] = target
        if kind in ("<wide", "<narrow"):
            assert len(target) == 1
            width[code] = target[0]
    if fields[13]:
        lower[code] = int(fields[13], 16)

noncharacter = members("PropList.txt", "Noncharacter_Code_Point")
white_space = members("PropList.txt", "White_Space")
join_control = members("PropList.txt", "Join_Control")
ignorable = members("DerivedCoreProperties.txt", "Default_Ignorable_Code_Point")
cased = members("DerivedCoreProperties.txt", "Cased")
case_ignorable = members("DerivedCoreProperties.txt", "Case_Ignorable")
excluded = members("DerivedNormalizationProps.txt", "Full_Composition_Exclusion")
not_quick = {
    code for f in lines("DerivedNormalizationProps.txt") if f[1] == "NFC_QC" for code in span(f[0])
}
old_hangul = {
    code for f in lines("HangulSyllableType.txt") if f[1] in ("L", "V", "T") for code in span(f[0])
}
joining = {code: f[1] for f in lines("extracted/DerivedJoiningType.txt") for code in span(f[0])}
script = {code: f[1] for f in lines("Scripts.txt") for code in span(f[0])}
folding = {
    int(f[0], 16): [int(part, 16) for part in f[2].split()] for f in lines("CaseFolding.txt") if f[1] in "CF"
}

# --- NFKC, for what RFC 5892 and RFC 8264 derive from it --------------------------------------------------------------

pairs = {tuple(t): c for c, t in decomposition.items() if c not in excluded}


def decompose(code):
    if 0xAC00 <= code < 0xAC00 + 11172:
        index = code - 0xAC00
        tail = [0x11A7 + index % 28] if index % 28 else []
        return [0x1100 + index // 588, 0x1161 + index % 588 // 28] + tail
    if code not in compatible:
        return [code]
    return [part for target in compatible[code] for part in decompose(target)]


def compose(left, right):
    if 0x1100 <= left < 0x1113 and 0x1161 <= right < 0x1176:
        return 0xAC00 + (left - 0x1100) * 588 + (right - 0x1161) * 28
    if 0xAC00 <= left < 0xAC00 + 11172 and (left - 0xAC00) % 28 == 0 and 0x11A7 < right < 0x11C3:
        return left + right - 0x11A7
    return pairs.get((left, right))


def nfkc(text):
    codes = [part for code in text for part in decompose(code)]
    start = 0
    for index in range(len(codes) + 1):
        if index == len(codes) or combining[codes[index]] == 0:
            codes[start:index] = sorted(codes[start:index], key=lambda code: combining[code])
            start = index
    result, starter, last = [], None, 0
    for code in codes:
        blocked = starter is None or (last >= combining[code] if last else starter != len(result) - 1)
        joined = None if blocked else compose(result[starter], code)
        if joined is not None:
            result[starter] = joined
            continue
        if combining[code] == 0:
            starter = len(result)
        last = combining[code]
        result.append(code)
    return result


def is_unstable(code):
    return nfkc([f for part in nfkc([code]) for f in folding.get(part, [part])]) != [code]


# --- Derived properties (RFC 5892 §2 and §3, RFC 8264 §8 and §9) ------------------------------------------------------

exceptions_valid = {0x00DF, 0x03C2, 0x06FD, 0x06FE, 0x0F0B, 0x3007}
exceptions_context = {0x00B7, 0x0375, 0x05F3, 0x05F4, 0x30FB} | in_ranges((0x0660, 0x0669), (0x06F0, 0x06F9))
exceptions_disallowed = {0x0640, 0x07FA, 0x302E, 0x302F, 0x303B} | in_ranges((0x3031, 0x3035))
ignorable_blocks = in_ranges((0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F))
letter_digits = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}

# In the order of the cases of CodePointProperties.Class.
CLASSES = [
    "valid", "unassigned", "contextJ", "contextO", "exception", "oldHangulJamo", "ignorable", "control",
    "compatibility", "otherLetterDigit", "space", "symbol", "punctuation", "other",
]


def precis_class(code):
    kind = category[code]
    if code in exceptions_valid: return "valid"
    if code in exceptions_context: return "contextO"
    if code in exceptions_disallowed: return "exception"
    if kind == "Cn" and code not in noncharacter: return "unassigned"
    if 0x21 <= code <= 0x7E: return "valid"
    if code in join_control: return "contextJ"
    if code in old_hangul: return "oldHangulJamo"
    if code in ignorable or code in noncharacter: return "ignorable"
    if kind == "Cc": return "control"
    if nfkc([code]) != [code]: return "compatibility"
    if kind in letter_digits: return "valid"
    if kind in ("Lt", "Nl", "No", "Me"): return "otherLetterDigit"
    if kind == "Zs": return "space"
    if kind in ("Sm", "Sc", "Sk", "So"): return "symbol"
    if kind in ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"): return "punctuation"
    return "other"


def is_label_code(code):
    """PVALID, CONTEXTJ or CONTEXTO in RFC 5892 §3."""
    if code in exceptions_valid or code in exceptions_context: return True
    if code in exceptions_disallowed or category[code] == "Cn": return False
    if code == 0x2D or 0x30 <= code <= 0x39 or 0x61 <= code <= 0x7A: return True
    if code in join_control: return True
    if is_unstable(code) or code in ignorable or code in white_space or code in noncharacter: return False
    if code in ignorable_blocks or code in old_hangul: return False
    return category[code] in letter_digits


# In the order of the cases of Bidi, Joining and Script in CodePointProperties; what is not named is 0.
BIDI = ["", "L", "R", "AL", "AN", "EN", "ES", "CS", "ET", "ON", "BN", "NSM"]
JOINING = ["", "L", "R", "D", "T"]
SCRIPTS = ["", "Greek", "Hebrew", "Hiragana", "Katakana", "Han"]


def position(value, names):
    return names.index(value) if value in names else 0


def properties(code):
    fields = [
        (CLASSES.index(precis_class(code)), 4),
        (is_label_code(code), 1),
        (position(bidi_name[code], BIDI), 4),
        (position(joining.get(code), JOINING), 3),
        (position(script.get(code), SCRIPTS), 3),
        (category[code][0] == "M", 1),
        (code in not_quick, 1),
        (code in lower or code in width, 1),
        (code in cased, 1),
        (code in case_ignorable, 1),
        (combining[code], 8),
        (category[code] == "Zs", 1),
    ]
    value, shift = 0, 0
    for field, bits in fields:
        assert 0 <= int(field) < 1 << bits
        value |= int(field) << shift
        shift += bits
    return value


# --- Writing ----------------------------------------------------------------------------------------------------------


def number(value):
    text = ""
    while value >= 32:
        text += chr(0x30 + (value & 31 | 32))
        value >>= 5
    return text + chr(0x30 + value)


def signed(value):
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def runs():
    """Lengths of runs of code points of the same properties, each with the number of its properties."""
    known, text, start, count = {}, "", 0, 0
    values = [properties(code) for code in range(COUNT)]
    for code in range(1, COUNT + 1):
        if code == COUNT or values[code] != values[start]:
            text += number(code - start) + number(known.setdefault(values[start], len(known)))
            start, count = code, count + 1
    return text, "".join(number(value) for value in known), count, len(known)


def mapping(table):
    """Steps from code point to code point, and by how much the distance to the target changes."""
    text, last, offset = "", 0, 0
    for code, target in sorted(table.items()):
        text += number(code - last) + signed(target - code - offset)
        last, offset = code, target - code
    return text


def decompositions():
    """Steps from code point to code point, doubled, odd if it never is composed; change of the first; the second or 0."""
    text, last, first = "", 0, 0
    for code, target in sorted(decomposition.items()):
        assert len(target) in (1, 2)
        text += number((code - last) * 2 + (code in excluded)) + signed(target[0] - first)
        text += number(target[1] if len(target) == 2 else 0)
        last, first = code, target[0]
    return text


def literal(name, comment, text):
    width = 112
    rows = [text[start:start + width] for start in range(0, len(text), width)]
    body = "\n".join(f"        {row}" for row in rows)
    return f'    /// {comment}\n    static let {name}: StaticString = #"""\n{body}\n        """#\n'


run_text, record_text, run_count, record_count = runs()
parts = [
    literal("runs", f"Pairs of a length and a number of {chr(96)}records{chr(96)}: {run_count} runs.", run_text),
    literal("records", f"The different properties, packed: {record_count}.", record_text),
    literal("lowerCase", f"Simple lower case: {len(lower)} code points.", mapping(lower)),
    literal("width", f"Decompositions of type wide and narrow: {len(width)} code points.", mapping(width)),
    literal("decompositions", f"Canonical decompositions of one step: {len(decomposition)}.", decompositions()),
]
(HERE / "UnicodeData.swift").write_text(
    f"""// Written by generate.py, which also says what the numbers are; do not edit.

/// Facts of the Unicode Character Database, as text that takes no time to compile.
///
/// From UnicodeData, PropList, DerivedCoreProperties, DerivedNormalizationProps, CaseFolding, HangulSyllableType, Scripts
/// and DerivedJoiningType of Unicode {version} (© 2022 Unicode, Inc., under the Unicode licence).
enum UnicodeData {{
    /// The version of Unicode that decides which code points are assigned.
    static let version = "{version}"

""" + "\n".join(parts) + "}\n",
    encoding="utf-8",
)
for part in parts:
    print(len(part), part.split("\n")[0].strip())
