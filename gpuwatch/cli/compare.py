"""`gpuwatch compare`: two sources, two traces, or one of each."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from gpuwatch.cli.arguments import find_source, options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.report_console import report_console
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.cli.traces import (
    find_trace,
    names_trace,
    refuse_flags_of_launching,
    require_source_or_trace,
)
from gpuwatch.engine import compare_text
from gpuwatch.engine.compare import Run, comparison_of, run_of_source, run_of_trace
from gpuwatch.engine.replay import ReplaySession


def run(given: argparse.Namespace) -> int:
    for name in (given.source, given.after):
        require_source_or_trace(name)
    if names_trace(given.source) and names_trace(given.after):
        refuse_flags_of_launching(given, "launch")
    second = given.after_kernel if given.after_kernel is not None else given.kernel
    comparison = comparison_of(
        _look(given, given.source, given.kernel), _look(given, given.after, second)
    )
    if given.json:
        print(json.dumps(compare_text.as_json(comparison), indent=2))
    elif given.markdown:
        print(compare_text.as_markdown(comparison))
    else:
        compare_text.render(comparison, report_console())
    return 0


def _look(given: argparse.Namespace, name: str, kernel: str) -> Run:
    if names_trace(name):
        session = ReplaySession(find_trace(name), kernel)
        session.prepare()
        return run_of_trace(session)
    options = replace(options_of(given), source=find_source(name), kernel=kernel)
    with KeptOutput(), prepared_session(options, given.launches) as (session_, told):
        return run_of_source(session_, given.launches, told)
