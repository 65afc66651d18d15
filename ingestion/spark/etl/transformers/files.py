"""The operator's folder of files from which pipelines name transformers, and its Python files. They are read here, and nothing in them is run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from lakehub.kernel.suggest import did_you_mean

MAX_BYTES = 1_000_000
_SETTING = "LAKEHUB_TRANSFORMERS"


class NoTransformer(ValueError):
    """The folder has no such function; the message says why, and what to do."""


@dataclass(frozen=True)
class TransformerCode:
    """`name`: as `fares.py:round_fares`. `text`: of the whole file."""

    name: str
    text: str = field(repr=False)

    @property
    def file(self) -> str:
        return self.name.partition(":")[0]

    @property
    def function(self) -> str:
        return self.name.partition(":")[2]

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def read_transformer(folder: str, name: str) -> TransformerCode:
    """Raises NoTransformer."""
    text = _text_of(path_in_folder(folder, name.partition(":")[0], name), name)
    code = TransformerCode(name, text)
    try:
        statements = ast.parse(text, code.file).body
    except (SyntaxError, ValueError, RecursionError) as problem:
        line = f"{code.file}:{getattr(problem, 'lineno', None) or 1}"
        raise NoTransformer(f"The transformer `{name}` cannot be used: {line} is no Python: {problem}.") from None
    functions = [each.name for each in statements if isinstance(each, ast.FunctionDef)]
    if code.function not in functions:
        raise NoTransformer(
            f"The transformer `{name}` is not there: {code.file} has no function `{code.function}`.{did_you_mean(code.function, functions)}"
        )
    return code


def path_in_folder(folder: str, file: str, name: str) -> Path:
    """Of a file that the transformer `name` needs. Raises NoTransformer where it is not in the folder itself."""
    if not folder:
        raise NoTransformer(
            f"The transformer `{name}` cannot be used: this instance takes none. Its operator allows them by a folder of files in {_SETTING}."
        )
    root = Path(folder)
    path = (root / file).resolve()
    if not root.is_dir():
        raise NoTransformer(
            f"The transformer `{name}` is not there: the folder that {_SETTING} names is not on this machine. Put it there, with the same files on every machine that runs jobs."
        )
    if path.parent != root.resolve():
        raise NoTransformer(
            f"The transformer `{name}` cannot be used: `{file}` leads out of the folder of {_SETTING}. Put the file itself there."
        )
    if not path.is_file():
        there = sorted(each.name for each in root.glob(f"*{path.suffix}"))
        raise NoTransformer(
            f"The transformer `{name}` is not there: the folder of {_SETTING} has no file `{file}`.{did_you_mean(file, there)}"
        )
    return path


def _text_of(path: Path, name: str) -> str:
    content, file = path.open("rb").read(MAX_BYTES + 1), name.partition(":")[0]
    if len(content) > MAX_BYTES:
        raise NoTransformer(f"The transformer `{name}` cannot be used: `{file}` has more than {MAX_BYTES:,} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise NoTransformer(f"The transformer `{name}` cannot be used: `{file}` is no text in UTF-8.") from None
