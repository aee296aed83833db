"""Launches that flags, a file beside the source or a form give, in place of a main()."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpuwatch.engine.options import Options
from gpuwatch.errors import UserError
from gpuwatch.launch import (
    KernelSignature,
    Launch,
    LaunchForm,
    form_from_flags,
    form_from_toml,
    form_key,
    guess_form,
    launch_file,
    launch_from_form,
    read_signature,
    remember,
    remembered,
)
from gpuwatch.ptx.model import Module


class GivenLaunches:
    """Of each kernel: what flags say, else the file beside the source, else what was used last."""

    def __init__(self, options: Options, module: Module, demangled: Mapping[str, str]) -> None:
        self._options = options
        self._source = Path(options.source)
        self._module = module
        self._demangled = demangled
        self._launches: dict[str, Launch] = {}

    def launch(self, mangled: str) -> Launch:
        """Raises UserError when nothing describes the launch, or what does has a mistake."""
        if mangled not in self._launches:
            signature = self._signature(mangled)
            form = self._described(mangled, signature)
            if form is None:
                raise self._nothing_given(signature)
            self._launches[mangled] = launch_from_form(signature, form)
        return self._launches[mangled]

    def known(self, mangled: str) -> Launch | None:
        """The launch if it was asked for before."""
        return self._launches.get(mangled)

    def described(self, mangled: str) -> bool:
        """Whether anything says how the kernel is launched."""
        if mangled in self._launches:
            return True
        return self._described(mangled, self._signature(mangled)) is not None

    def form(self, mangled: str) -> LaunchForm:
        """The launch as editable texts; a guess from the signature where nothing describes it."""
        signature = self._signature(mangled)
        return self._described(mangled, signature) or guess_form(signature)

    @contextmanager
    def giving(self, mangled: str, form: LaunchForm) -> Iterator[None]:
        """Takes a filled form, and remembers it unless the block raises; when either fails, the
        former launch is back. Raises UserError when the form does not fit."""
        former = self._launches.copy()
        self._launches[mangled] = launch_from_form(self._signature(mangled), form)
        try:
            yield
            remember(self._key(mangled), form)
        except BaseException:
            self._launches = former
            raise

    def _signature(self, mangled: str) -> KernelSignature:
        sources = [self._source, *map(Path, self._options.link)]
        return read_signature(self._module, mangled, self._demangled[mangled], sources)

    def _described(self, mangled: str, signature: KernelSignature) -> LaunchForm | None:
        options = self._options
        if options.grid or options.block or options.values:
            guess = guess_form(signature)
            grid, block = options.grid or guess.grid, options.block or guess.block
            return form_from_flags(grid, block, options.shared or guess.shared, options.values)
        file = launch_file(self._source)
        if file is not None:
            return form_from_toml(file, signature)
        return remembered(self._key(mangled), signature)

    def _key(self, mangled: str) -> str:
        return form_key(str(self._source.resolve()), mangled)

    def _nothing_given(self, signature: KernelSignature) -> UserError:
        guess = guess_form(signature)
        flags = [f"--grid '{guess.grid}'", f"--block {guess.block.replace(' ', '')}"]
        flags += [f"--arg '{name}={value}'" for name, value in guess.arguments]
        beside = self._source.with_suffix(".launch.toml").name
        return UserError(
            f"nothing says how to launch {signature.demangled}",
            detail="for example:\n  " + " ".join(flags),
            hint=f"give --grid, --block and an --arg for each parameter, or write {beside} "
            "beside the source; the live view asks",
        )
