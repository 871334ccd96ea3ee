"""Reading a seller's file: each kind of bad input is named with its line, and the good lines stay good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.imports.csvfile import FileLimits, parse
from ledger.imports.samples import sample_files
from ledger.posting import BIGINT

HEADER = b"seller,account,amount,reference\n"
GOOD = b"acme,A0001,100,r-1\n"

BAD_LINES = {
    "not a number": (b"acme,A0001,ten,r-2", "whole number of minor units"),
    "a fraction": (b"acme,A0001,12.50,r-2", "12.50 is 1250"),
    "thousands separator": (b'acme,A0001,"1,000",r-2', "whole number"),
    "other digits": ("acme,A0001,١٢,r-2".encode(), "whole number"),
    "no amount": (b"acme,A0001,,r-2", "whole number"),
    "exponent": (b"acme,A0001,1e3,r-2", "whole number"),
    "overflow": (b"acme,A0001,9223372036854775808,r-2", "leaves the range of BIGINT"),
    "far overflow": (b"acme,A0001," + b"9" * 5000 + b",r-2", "longer than 1000 bytes"),
    "wrong encoding": ("acme,A0001,5,Müller".encode("latin-1"), "byte 0xfc at position 15"),
    "missing column": (b"acme,A0001,5", "3 fields instead of 4"),
    "one too many": (b"acme,A0001,5,r-2,x", "5 fields instead of 4"),
    "duplicate": (b"acme,A0001,7,r-1", "r-1 of acme is on line 2 already"),
    "NUL": (b"acme,A0001,5,r\0", "NUL"),
    "open quote": (b'acme,A0001,5,"r-2', "not CSV"),
    "stray quote": (b'acme,A0001,5,"r"2', "not CSV"),
    "no seller": (b",A0001,5,r-2", "seller"),
    "slash in seller": (b"ac/me,A0001,5,r-2", "seller"),
    "long seller": (b"s" * 41 + b",A0001,5,r-2", "seller"),
    "account with a space": (b"acme,A 1,5,r-2", "account"),
    "long account": (b"acme," + b"A" * 41 + b",5,r-2", "account"),
    "no reference": (b"acme,A0001,5,", "reference"),
    "long reference": (b"acme,A0001,5," + b"r" * 51, "reference"),
    "formula": (b"acme,A0001,5,=cmd()", "reference"),
    "control character": (b"acme,A0001,5,r\x1b2", "reference"),
    "turned around": ("acme,A0001,5,r\u202e2".encode(), "reference"),
    "isolated": ("acme,A0001,5,r\u20662".encode(), "reference"),
}

BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\r\n \n", "the file is empty"),
    "no lines": (HEADER, "no lines after its header"),
    "no header": (GOOD, "missing seller"),
    "column missing": (b"seller,account,amount\na,b,1\n", "missing reference"),
    "column twice": (b"seller,account,amount,reference,amount\n", "each once"),
    "semicolons": (b"seller;account;amount;reference\n", "not semicolons"),
    "UTF-16": ("seller,account,amount,reference\n".encode("utf-16"), "UTF-16: save it as CSV UTF-8"),
    "too many bytes": (HEADER + GOOD * 300, "more than 5,000 bytes"),
    "too many rows": (HEADER + b"a,b,1,x\n" * 101, "more than 100 lines"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "UTF-8"),
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_stops_no_other(line, problem):
    parsed = parse(HEADER + GOOD + line + b"\nacme,A0001,-5,r-3\n")
    assert [each.number for each in parsed.good] == [2, 4]
    assert parsed.bad[0].number == 3
    assert problem in parsed.bad[0].problem


@pytest.mark.parametrize(("content", "problem"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_has_no_lines_and_says_why(content, problem):
    parsed = parse(content, FileLimits(max_bytes=5000, max_rows=100))
    assert problem in parsed.problem
    assert not parsed.good
    assert not parsed.bad


def test_what_spreadsheets_write_is_read():
    written = '\ufeffReference,AMOUNT,account,seller\r\n\r\nr-1,+100,A0001,Café & Söhne\r\n"r,2",-3,B,x'
    first, second = parse(written.encode()).good
    assert (first.number, first.seller, first.amount) == (3, "Café & Söhne", 100)
    assert second.reference == "r,2"
    assert first.key == "import/Café & Söhne/r-1"


def test_the_same_reference_of_two_sellers_are_two_payments():
    parsed = parse(HEADER + b"acme,A,1,r-1\nbolt,A,1,r-1\n")
    assert len({line.key for line in parsed.good}) == 2


def fields(alphabet: str) -> st.SearchStrategy[str]:
    return st.text(alphabet=alphabet, max_size=12)


rows = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.tuples(fields('ab/ "'), fields("A1,"), fields("-+0123456789.e"), fields('r1"\0\n=')).map(
            lambda row: ",".join(row).encode()
        ),
    ),
    max_size=8,
)


@given(st.one_of(st.binary(max_size=300), rows.map(lambda some: HEADER + b"\n".join(some))))
def test_no_bytes_break_the_parser(content):
    parsed = parse(content, FileLimits(max_rows=5))
    numbers = [line.number for line in (*parsed.good, *parsed.bad)]
    assert len(set(numbers)) == len(numbers) <= 5
    assert bool(parsed.problem) != bool(numbers)
    assert len({line.key for line in parsed.good}) == len(parsed.good)
    for line in parsed.good:
        assert abs(line.amount) <= BIGINT
        assert len(line.key) <= 100
        assert "\0" not in line.key


def test_sample_files_are_good_skewed_and_the_same_each_time():
    files = sample_files()
    assert files == sample_files()
    parsed = [parse(content) for content in files.values()]
    assert not any(each.bad or each.problem for each in parsed)
    lines = [line for each in parsed for line in each.good]
    hot = sum(line.account == "A0001" for line in lines)
    assert hot > len(lines) / 4
    assert any(line.amount < 0 for line in lines)


def test_the_shipped_samples_are_what_the_generator_writes(request):
    folder = request.config.rootpath / "samples"
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == sample_files()
