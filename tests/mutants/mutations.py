"""All small changes of a module: one operator, number, condition, argument or statement at a time."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
UNTOUCHED_FIELDS = ("annotation", "returns", "decorator_list", "bases", "type_params")
UNTOUCHED_FUNCTIONS = ("__repr__", "__str__")
"""What they say is for people."""


@dataclass(frozen=True)
class Mutant:
    """One change. ``before`` and ``after`` are excerpts; ``source`` is the whole changed module."""

    module: str
    function: str
    lines: range
    """Of the statement around it, without the statements in that."""
    kind: str
    before: str
    after: str
    occurrence: int
    source: str

    @property
    def key(self) -> str:
        """Stays the same while the code around it changes."""
        fields = (self.module, self.function, self.kind, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(fields).encode()).hexdigest()[:16]


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its text."""
    tree = ast.parse(source)
    seen, found = Counter[tuple[str, ...]](), []
    for place, function, lines in _places(tree):
        for kind, changed in _changes(place.node):
            before, after = _excerpt(place.node), _excerpt(changed)
            what = (function, kind, before, after)
            place.put(changed)
            found.append(Mutant(module, function, lines, kind, before, after, seen[what], ast.unparse(tree)))
            place.put(place.node)
            seen[what] += 1
    return found


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in the tree."""

    node: Any
    parent: ast.AST
    field: str
    index: int | None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(node: ast.AST, function: str = "", lines: range = range(0)) -> Iterator[tuple[_Place, str, range]]:
    """All places below ``node`` that are worth a change, with the function or class and the lines around them."""
    for field, value in ast.iter_fields(node):
        if field in UNTOUCHED_FIELDS or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue  # types and options of types decide nothing
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_untouched(child):
                continue
            inside, around = function, _lines(child) if isinstance(child, ast.stmt) else lines
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
            yield _Place(child, node, field, index), inside, around
            if not isinstance(child, ast.Raise):  # its message is for people
                yield from _places(child, inside, around)


def _lines(statement: ast.stmt) -> range:
    """The lines of a statement, up to the statements in it."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno
    assert last is not None
    return range(statement.lineno, last + 1)


def _is_untouched(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name):
            return name in UNTOUCHED_FUNCTIONS
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="warn"))):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "Sequence" | "dict" | "tuple" | "list")):
            return True
        case ast.Call(func=ast.Name(id="NewType" | "TypeVar" | "cast")):
            return True
        case ast.keyword(arg="strict"):  # of zip: an assertion
            return True
    return False


def _changes(node: Any) -> Iterator[tuple[str, ast.AST]]:
    """What may be put in place of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield "comparison", ast.Compare(left, [COMPARISONS[type(op)]()], right)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            if not any(_is_type(side) or _is_set(side) for side in (left, right)):
                yield "order", ast.BinOp(right, ast.BitOr(), left)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC and not _is_text(left):
            yield "arithmetic", ast.BinOp(left, ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "sign", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(2 * value or 1.0)
        case ast.If(test=test, body=body, orelse=orelse) if not _is_equality(test):
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test=test, body=body, orelse=orelse) if not _is_equality(test):
            yield "condition", ast.IfExp(test, orelse, body)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "statement", ast.Pass()
        case ast.Call(func=func, args=args, keywords=keywords):
            starred = any(isinstance(argument, ast.Starred) for argument in args[:2])
            if len(args) >= 2 and not starred and not _is_extremum(func):
                yield "order", ast.Call(func, [args[1], args[0], *args[2:]], keywords)
            for number, keyword in enumerate(keywords):
                if keyword.arg is not None and not _is_untouched(keyword):
                    yield "argument", ast.Call(func, args, keywords[:number] + keywords[number + 1 :])


def _is_extremum(function: ast.AST) -> bool:
    """Whether the order of the arguments never matters: the largest or smallest of some numbers."""
    return isinstance(function, ast.Name) and function.id in ("max", "min")


def _is_equality(node: ast.AST) -> bool:
    """Whether the change of a comparison is the negation already."""
    return isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_type(node: ast.AST) -> bool:
    """Whether this is part of a type such as ``int | None``."""
    if isinstance(node, ast.BinOp):
        return _is_type(node.left) or _is_type(node.right)
    builtin = isinstance(node, ast.Name) and node.id in ("int", "str", "float", "bool", "Tensor", "PathLike")
    return builtin or _is_none(node) or (isinstance(node, ast.Name) and node.id.istitle())


def _is_set(node: ast.AST) -> bool:
    """Whether the order of a union does not matter: that of sets, of flags and of conditions."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Compare() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Name(id=name):
            return name.isupper()
    return False


def _excerpt(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0][:160]
