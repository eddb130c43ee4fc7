"""Bounds on what a cell printed, without a kernel."""

from __future__ import annotations

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.sandbox.output import MAX_IMAGES, CellOutput, HeadTail, png_pixels

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 2, 3) + bytes(20)


@given(pieces=st.lists(st.text(max_size=50), max_size=40), limit=st.integers(2, 60))
def test_head_and_tail_are_the_texts_own_and_the_loss_is_exact(pieces: list[str], limit: int) -> None:
    kept, whole = HeadTail(limit), "".join(pieces)
    for piece in pieces:
        kept.add(piece)
    if len(whole) <= limit:
        assert kept.text() == whole and kept.dropped == 0
    else:
        head, tail = whole[: limit - limit // 2], whole[len(whole) - limit // 2 :]
        assert kept.dropped == len(whole) - limit
        assert kept.text() == f"{head}\n[... {kept.dropped} characters dropped ...]\n{tail}"


def test_what_the_sender_dropped_counts_as_dropped() -> None:
    kept = HeadTail(10)
    kept.add("ab")
    kept.add("cd", lost_before=100)
    assert kept.dropped == 100
    assert kept.text() == "ab\n[... 100 characters dropped ...]\ncd"


def test_memory_stays_bounded_by_the_limit() -> None:
    kept = HeadTail(100)
    for _ in range(10_000):
        kept.add("x" * 1000)
    assert sum(map(len, kept._tail)) <= 50 and len(kept._tail) <= 50


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["text", "name", "dropped", "data", "ename", "evalue", "traceback", "text/plain"])
kinds = st.sampled_from(
    ["stream", "display_data", "execute_result", "update_display_data", "error", "clear_output", "x"]
)


@given(messages=st.lists(st.tuples(kinds, st.dictionaries(fields, json_values, max_size=4)), max_size=6))
def test_no_message_content_raises_or_yields_unencodable_text(messages: list[tuple[str, dict[str, object]]]) -> None:
    output = CellOutput(50)
    for kind, content in messages:
        output.message(kind, content)
    text, dropped, images = output.result()
    text.encode("utf-8")
    assert dropped >= 0 and images == ()


def test_results_start_on_a_line_of_their_own() -> None:
    output = CellOutput(1000)
    output.message("stream", {"name": "stdout", "text": "no newline"})
    output.message("execute_result", {"data": {"text/plain": "42"}})
    output.message("error", {"ename": "E", "evalue": "v", "traceback": ["Traceback", "E: v"]})
    output.message("error", {"ename": "Again", "evalue": "", "traceback": []})
    assert output.result()[0] == "no newline\n42\nTraceback\nE: v\n"
    assert output.error_name == "E"


def test_images_are_checked_and_counted() -> None:
    output = CellOutput(1000)
    good = base64.encodebytes(PNG).decode()
    for data in [good] * (MAX_IMAGES + 1) + ["????", base64.b64encode(b"GIF").decode()]:
        output.message("display_data", {"data": {"image/png": data}})
    text, _, images = output.result()
    assert [image.data for image in images] == [PNG] * MAX_IMAGES
    assert "[3 image(s) dropped" in text


def test_a_png_header_that_promises_too_many_pixels_is_refused() -> None:
    huge = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 2**31, 2**31) + bytes(20)
    assert png_pixels(PNG) == 6
    assert png_pixels(huge) is None
    assert png_pixels(PNG[:20]) is None
