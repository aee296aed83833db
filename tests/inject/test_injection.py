"""The injected library before a listener that weaves nothing: what it tells, what it bears."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inject_support import PLAIN_NS, Fake, Listener

from gpuwatch.inject.protocol import INJECTION, RUN, VERSION, DeviceWords
from gpuwatch.inject.server import Link, Wishes
from gpuwatch.launch.binary import PTX, fat_binaries

Listen = Callable[..., Listener]

HELD = Wishes(hold=True, wait=True)
SHAPE = "8 1 1 128 1 1 0"


@pytest.fixture
def listen(fake: Fake) -> Iterator[Listen]:
    """Makes listeners that end with the test."""
    made: list[Listener] = []

    def begin(wishes: Wishes | None = None) -> Listener:
        made.append(Listener(fake, wishes))
        return made[-1]

    yield begin
    for one in made:
        one.close()


# ---- what it tells


def test_a_process_says_what_it_is(listen: Listen, fake: Fake) -> None:
    listener = listen()
    command = fake.command("many", 3)
    assert listener.run(command) == fake.alone(command)
    (link,) = listener.server.links
    assert listener.child is not None
    assert (link.pid, link.parent) == (listener.child.pid, os.getpid())
    assert (link.timed, link.command) == (True, command[0])
    (device,) = [DeviceWords.of(list(words)) for words in listener.told("device")]
    assert (device.ordinal, device.arch, device.name) == (0, "sm_90", "Fake H200 0")
    assert (device.sm_count, device.threads_per_sm, device.blocks_per_sm) == (132, 2048, 32)
    assert listener.told("kernel") == [("1", "1", "vadd")]
    assert listener.told("bye") == [()]


def test_the_table_has_every_launch(listen: Listen, fake: Fake) -> None:
    listener = listen()
    listener.run(fake.command("shapes", 5))
    rows = listener.rows()
    assert rows["launches"].tolist() == [3, 2]
    assert rows["total_ns"].tolist() == [3 * PLAIN_NS, 2 * PLAIN_NS]
    assert rows["max_ns"].tolist() == [PLAIN_NS, PLAIN_NS]
    assert rows["grid"].tolist() == [[8, 1, 1], [2, 1, 1]]
    assert rows["block"].tolist() == [[128, 1, 1], [32, 1, 1]]
    assert rows["recents"].tolist() == [3, 2]
    assert not rows["probed"].any()
    table = listener.server.links[0].table
    assert table is not None
    assert (table.launches, table.lost) == (5, (0, 0))


def test_times_on_their_way_at_the_end_are_counted(listen: Listen, fake: Fake) -> None:
    listener = listen()
    listener.run(fake.command("many", 8), "FAKE_SLOW_LAUNCH=20000", "FAKE_SLOW_FLUSH=200000")
    assert listener.rows()["launches"].tolist() == [8]


@pytest.mark.parametrize("loader", ["data", "options", "linked", "library"])
def test_ptx_is_kept_as_it_was_loaded(listen: Listen, fake: Fake, loader: str) -> None:
    listener = listen()
    listener.run(fake.command("many", 1, loader))
    ((number, kind, name),) = listener.told("image")
    kept = listener.server.links[0].folder / name
    assert (number, kind) == ("1", "ptx")
    assert kept.read_bytes() == fake.image("ptx").read_bytes()
    assert listener.told("kernel") == [("1", "1", "vadd")]


@pytest.mark.parametrize("loader", ["fatbin", "wrapped", "library"])
def test_only_the_ptx_of_a_fat_binary_is_kept(listen: Listen, fake: Fake, loader: str) -> None:
    listener = listen()
    listener.run(fake.command("many", 1, loader, "fatbin"))
    ((_, kind, name),) = listener.told("image")
    kept = (listener.server.links[0].folder / name).read_bytes()
    (entries,) = fat_binaries(kept)
    assert (kind, [one.kind for one in entries]) == ("fatbin", [PTX])
    (whole,) = fat_binaries(fake.image("fatbin").read_bytes())
    assert entries == [one for one in whole if one.kind == PTX]


def test_machine_code_and_files_are_kept(listen: Listen, fake: Fake) -> None:
    listener = listen()
    listener.run(fake.command("many", 1, "data", "cubin"))
    listener.run(fake.command("many", 1, "library-file"))
    kinds = [listener.told("image", link)[0] for link in (0, 1)]
    assert [kind for _, kind, _ in kinds] == ["cubin", "file"]
    cubin, file = (
        (link.folder / name).read_bytes()
        for link, (_, _, name) in zip(listener.server.links, kinds, strict=True)
    )
    assert cubin == fake.image("cubin").read_bytes()
    assert file.decode() == str(fake.image("ptx"))


def test_what_is_loaded_again_is_another_image(listen: Listen, fake: Fake) -> None:
    listener = listen(HELD)
    listener.answers["kernel"] = lambda link, words: link.send(f"ignore {words[0]}")
    listener.run(fake.command("reload", 2))
    assert [words[0] for words in listener.told("image")] == ["1", "2", "3"]
    assert listener.told("kernel") == [(str(n), str(n), "vadd") for n in (1, 2, 3)]
    assert listener.rows()["launches"].tolist() == [2, 2]


def test_another_profiler_is_told_of(listen: Listen, fake: Fake) -> None:
    listener = listen()
    command = fake.command("many", 3)
    assert listener.run(command, "FAKE_SECOND_SUBSCRIBER=1") == fake.alone(command)
    (words,) = listener.told("problem")
    assert words[:2] == ("another", "profiler")
    assert len(listener.rows()) == 0
    assert not listener.server.links[0].timed


def test_a_child_of_a_process_is_no_other_one(listen: Listen, fake: Fake, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    listener = listen()
    listener.start(fake.command("fork-after", 3), f"PROGRAM_STOP={stop}")
    try:
        listener.until(lambda: listener.server.links and listener.server.links[0].gone)
        assert listener.told("bye") == [()]
    finally:
        stop.touch()
    listener.end()
    assert len(listener.server.links) == 1


# ---- what it waits for


def test_a_held_launch_waits_to_hear_whether_it_is_wanted(listen: Listen, fake: Fake) -> None:
    listener = listen(HELD)
    listener.start(fake.command("many", 3))
    listener.until(lambda: listener.told("kernel"))
    for _ in range(10):
        listener.turn()
    assert len(listener.rows()) == 0
    listener.server.links[0].send("ignore 1")
    assert listener.end().status == 0
    assert listener.rows()["launches"].tolist() == [3]


def test_a_held_launch_goes_on_where_there_is_no_probe(listen: Listen, fake: Fake) -> None:
    listener = listen(HELD)
    listener.answers["kernel"] = lambda link, words: link.send(f"watch {words[0]} 0 99")
    listener.answers["want"] = lambda link, words: link.send(f"none {' '.join(words)}")
    command = fake.command("many", 3)
    assert listener.run(command) == fake.alone(command)
    assert listener.told("want") == [("1", "1", "0", *SHAPE.split())]
    assert listener.rows()["skipped"].tolist() == [3]


def test_a_held_launch_goes_on_when_the_listener_goes(listen: Listen, fake: Fake) -> None:
    listener = listen(HELD)
    listener.start(fake.command("many", 3))
    listener.until(lambda: listener.told("kernel"))
    listener.server.close()
    assert listener.child is not None
    output, _ = listener.child.communicate()
    assert output == fake.alone(fake.command("many", 3)).output


# ---- what it bears


@pytest.mark.parametrize("where", ["", "/nowhere", "a file", "no socket", "nobody listens"])
def test_nobody_to_connect_to(fake: Fake, tmp_path: Path, where: str) -> None:
    folder = Path(where)
    if " " in where:
        folder = tmp_path / "run"
        folder.mkdir()
        if where == "a file":
            (folder / "control").touch()
        if where == "nobody listens":
            with socket.socket(socket.AF_UNIX) as unheard:
                unheard.bind(str(folder / "control"))
    given = (f"{INJECTION}={fake.library}", *([f"{RUN}={folder}"] if where else []))
    command = fake.command("many", 3)
    assert fake.alone(command, *given) == fake.alone(command)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no\n",
        b"\n",
        b"options\n",
        b"options 1 0\n",
        b"options x y z 0\n",
        b"x" * 300,
        b"\0\n",
    ],
    ids=lambda answer: answer[:20],
)
def test_answers_that_mean_nothing(fake: Fake, tmp_path: Path, answer: bytes) -> None:
    """The program goes on alone, and lets go of the connection."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/control")
        server.listen()
        stop = tmp_path / "stop"
        command = fake.command("until", 0)
        own = {INJECTION: str(fake.library), RUN: folder, "PROGRAM_STOP": str(stop)}
        child = subprocess.Popen(
            command, env={**os.environ, **fake.environment(), **own}, stdout=subprocess.PIPE
        )
        connection, _ = server.accept()
        with connection:
            assert connection.recv(4096).startswith(b"hello %d %d " % (VERSION, child.pid))
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):  # where it left something unread
                assert connection.recv(4096) == b""
        stop.touch()
        output, _ = child.communicate()
    assert (output, child.returncode) == (b"until: checksum 0, wrong 0\n", 0)


NONSENSE = [
    "", " ", "watch", "watch 0 0 9", "watch 99999 0 9", "watch x", "ignore 4294967295", "build",
    "build 1", "build 1 /nowhere x 1 - 4 32 8 1 256 0 0", "none", "none 1 0", "free",
    "free 1 99", "locate", "locate 99 9 x", "store", "store 99999 0", "pace", "pace x", "x",
    "x" * 300_000, "\0", "watch \0",
]  # fmt: skip


def test_commands_that_mean_nothing(listen: Listen, fake: Fake) -> None:
    listener = listen(HELD)

    def answer(link: Link, _words: list[str]) -> None:
        for line in NONSENSE:
            link.send(line)
        link.send("ignore 1")

    listener.answers["kernel"] = answer
    command = fake.command("many", 3)
    assert listener.run(command) == fake.alone(command)
    assert listener.rows()["launches"].tolist() == [3]


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("", "its module cannot be loaded: CUDA_ERROR_FILE_NOT_FOUND"),
        ("/nowhere vadd 1 - 4 28 8 1 256 0 0", "CUDA_ERROR_FILE_NOT_FOUND"),
        ("{cubin} other 1 - 4 28 8 1 256 0 0", "its module cannot be loaded"),
        ("{cubin} vadd 0 other 4 28 1 1 256 0 0", "its module cannot be loaded"),
        ("{cubin} vadd 1 - 4 28 8 1 256 1 other 0", "its variables are not to be found"),
        ("{cubin} vadd 1 - 4 28 8 1 256 0 1 0 /nowhere", "CUDA_ERROR_FILE_NOT_FOUND"),
        ("{cubin} vadd 1 - 4 28 8 1 99999999999999 0 0", "no memory for its maps"),
    ],
)
def test_builds_that_cannot_be_loaded(listen: Listen, fake: Fake, rest: str, problem: str) -> None:
    """Memory of those that failed half-way is the program's again."""
    listener = listen(HELD)
    cubin = listener.server.folder / "1.cubin"
    shutil.copyfile(fake.image("cubin"), cubin)
    order = f"build 1 {rest.format(cubin=cubin)}"
    listener.answers["kernel"] = lambda link, words: link.send(f"watch {words[0]} 0 99")
    listener.answers["want"] = lambda link, _words: link.send(order)
    ended = listener.run(fake.command("given-back", 0))
    assert ended.output == "memory given back: 1\ngiven-back: checksum 0, wrong 0\n"
    (words,) = listener.told("refused")
    assert words[:2] == ("1", "1")
    assert problem in " ".join(words[2:])


def test_variables_of_what_was_unloaded(listen: Listen, fake: Fake, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    listener = listen(HELD)

    def answer(link: Link, words: list[str]) -> None:
        link.send(f"none {words[0]}")
        if words[0] == "2":
            link.send("locate 1 total")
            link.send("locate 2 total")

    listener.answers["kernel"] = lambda link, words: link.send(f"watch {words[0]} 0 9")
    listener.answers["want"] = answer
    listener.start(fake.command("unloaded", 2), f"PROGRAM_STOP={stop}")
    listener.until(lambda: len(listener.told("located")) == 2 or listener.child.poll() is not None)
    stop.touch()
    assert listener.end().status == 0
    (at,) = listener.told("at")
    assert (at[:2], int(at[2]) > 0) == (("2", "total"), True)
