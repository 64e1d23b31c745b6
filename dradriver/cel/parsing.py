"""From tokens to a tree: a Pratt parser of CEL's grammar (cel-go `parser/gen/CEL.g4`).

Depth is bounded as in cel-go (250), so that neither this module nor those that walk the tree can exhaust the stack.
"""

from __future__ import annotations

from dradriver.cel import literals, macros, syntax, tokens
from dradriver.cel.errors import CompileError, Span
from dradriver.cel.tokens import Kind, Token

MAX_DEPTH = 250
"""Levels of nesting; cel-go's default `MaxRecursionDepth`, which Kubernetes keeps."""

_ANYTHING, _NO_CONDITIONAL, _OR, _AND, _RELATION, _SUM, _PRODUCT = range(7)
_POWERS = {
    "||": _OR,
    "&&": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), _RELATION),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_WORDS_OF_OTHER_LANGUAGES = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! before the condition",
    "is": "write == to compare",
    "like": "write .matches(pattern) or .contains(text)",
    "matches": "write text.matches(pattern)",
    "contains": "write text.contains(part)",
    "AND": "write && for and",
    "OR": "write || for or",
    "NOT": "write ! before the condition",
}


def parse(text: str, level: int, *, quoted_names: bool) -> syntax.Node:
    """The tree of an expression with the macros of a level (see `environments`). Raises CompileError.

    `quoted_names` is whether a field may be written in backquotes.
    """
    parser = _Parser(tokens.split(text), level, quoted_names=quoted_names)
    node = parser.expression()
    parser.expect_end()
    return node


class _Parser:
    """A cursor over the tokens of one expression."""

    def __init__(self, words: list[Token], level: int, *, quoted_names: bool) -> None:
        self._tokens = words
        self._level = level
        self._quoted_names = quoted_names
        self._at = 0
        self._depth = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _advance(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _since(self, start: int) -> Span:
        """From a position to the end of the last token taken, parentheses included."""
        return Span(start, self._tokens[self._at - 1].span.end)

    def _is(self, sign: str) -> bool:
        token = self._tokens[self._at]
        return token.text == sign and token.kind in (Kind.SIGN, Kind.IDENTIFIER)

    def _accept(self, sign: str) -> bool:
        if self._is(sign):
            self._at += 1
            return True
        return False

    def _expect(self, sign: str, where: str) -> Token:
        if not self._is(sign):
            raise self._unexpected(f"{sign!r} {where}")
        return self._advance()

    def expect_end(self) -> None:
        if self._token.kind is not Kind.END:
            raise self._unexpected("an operator such as && or the end")

    def _unexpected(self, wanted: str) -> CompileError:
        token = self._token
        if token.kind is Kind.END:
            return CompileError(token.span, f"the expression ends too early: {wanted} is missing")
        remedy = _WORDS_OF_OTHER_LANGUAGES.get(token.text)
        if remedy is None and self._at and self._tokens[self._at - 1].text in _WORDS_OF_OTHER_LANGUAGES:
            token = self._tokens[self._at - 1]
            remedy = _WORDS_OF_OTHER_LANGUAGES[token.text]
        advice = f": {remedy}" if remedy else f": expected {wanted}"
        return CompileError(token.span, f"unexpected {token.text!r}{advice}")

    def _deeper(self, span: Span, chain: int = 0) -> None:
        if self._depth + chain > MAX_DEPTH:
            raise CompileError(span, f"the expression is nested deeper than {MAX_DEPTH} levels: split it")

    def expression(self, power: int = _ANYTHING) -> syntax.Node:
        """Parse operators that bind tighter than `power`."""
        self._depth += 1
        self._deeper(self._token.span)
        start = self._token.span.start
        left = self._operand()
        chain = 0
        while (found := self._operator_power()) > power:
            chain += 1
            self._deeper(self._token.span, chain if found >= _RELATION else 0)
            left = self._logical(start, left, found) if found <= _AND else self._binary(start, left, found)
        if power == _ANYTHING and self._accept("?"):
            left = self._conditional(start, left)
        self._depth -= 1
        return left

    def _operator_power(self) -> int:
        token = self._token
        return _POWERS.get(token.text, 0) if token.kind in (Kind.SIGN, Kind.IDENTIFIER) else 0

    def _binary(self, start: int, left: syntax.Node, power: int) -> syntax.Node:
        operator = self._advance().text
        right = self.expression(power)
        return syntax.Binary(self._since(start), operator, left, right)

    def _logical(self, start: int, first: syntax.Node, power: int) -> syntax.Node:
        operator = self._token.text
        terms = [first]
        while self._accept(operator):
            terms.append(self.expression(power))
        return syntax.Logical(self._since(start), operator, tuple(terms))

    def _conditional(self, start: int, condition: syntax.Node) -> syntax.Node:
        then = self.expression(_NO_CONDITIONAL)
        self._expect(":", "of the conditional a ? b : c")
        otherwise = self.expression()
        return syntax.Conditional(self._since(start), condition, then, otherwise)

    def _operand(self) -> syntax.Node:
        """Parse signs, a primary, and what follows it: fields, indices, calls."""
        token = self._token
        if token.text in ("!", "-") and token.kind is Kind.SIGN:
            return self._unary()
        return self._postfix(token.span.start, self._primary())

    def _unary(self) -> syntax.Node:
        """An even number of signs is none at all, as in cel-go; `-1` is a literal."""
        first = self._advance()
        signs = 1
        while self._accept(first.text):
            signs += 1
        if first.text == "-" and signs == 1 and self._token.kind in (Kind.INT, Kind.DOUBLE):
            return self._postfix(first.span.start, self._negative(first))
        if first.text == "!" and self._is("-") and self._tokens[self._at + 1].kind in (Kind.INT, Kind.DOUBLE):
            operand = self._postfix(self._token.span.start, self._negative(self._advance()))
        else:
            operand = self._postfix(self._token.span.start, self._primary())
        if signs % 2 == 0:
            return operand
        return syntax.Unary(self._since(first.span.start), first.text, operand)

    def _negative(self, sign: Token) -> syntax.Node:
        value = literals.number(self._advance(), negative=True)
        return syntax.Literal(self._since(sign.span.start), value)

    def _primary(self) -> syntax.Node:
        token = self._token
        match token.kind:
            case Kind.INT | Kind.UINT | Kind.DOUBLE:
                return syntax.Literal(token.span, literals.number(self._advance(), negative=False))
            case Kind.STRING | Kind.BYTES:
                return syntax.Literal(token.span, literals.string(self._advance()))
            case Kind.IDENTIFIER:
                return self._word()
        match token.text:
            case "(":
                return self._nested()
            case "[":
                return self._list()
            case "{":
                return self._map()
            case ".":
                self._advance()
                return self._word()
        raise self._unexpected("a value")

    def _nested(self) -> syntax.Node:
        opening = self._advance()
        node = self.expression()
        self._expect(")", f"to close the ( at {opening.span.start}")
        return node

    def _word(self) -> syntax.Node:
        token = self._token
        if token.kind is not Kind.IDENTIFIER:
            raise self._unexpected("a name")
        self._advance()
        if token.text in _CONSTANTS:
            return syntax.Literal(token.span, _CONSTANTS[token.text])
        if token.text in tokens.RESERVED:
            raise CompileError(token.span, f"{token.text!r} is a reserved word and cannot be a name")
        if token.text == "in":
            raise CompileError(token.span, "`in` needs a value on its left, as in 'a' in m")
        if self._is("("):
            return self._call(None, token, token.span.start)
        return syntax.Identifier(token.span, token.text)

    def _postfix(self, start: int, node: syntax.Node) -> syntax.Node:
        chain = 0
        while True:
            if self._is("{") and isinstance(node, syntax.Identifier | syntax.Select):
                raise CompileError(node.span, "messages cannot be built in a selector: no such type is declared")
            if self._is("."):
                node = self._member(start, node)
            elif self._is("["):
                node = self._index(start, node)
            else:
                return node
            chain += 1
            self._deeper(node.span, chain)

    def _member(self, start: int, operand: syntax.Node) -> syntax.Node:
        self._advance()
        optional = self._accept("?")
        name = self._token
        if name.kind is Kind.QUOTED:
            return self._quoted_member(start, operand, optional=optional)
        if name.kind is not Kind.IDENTIFIER or name.text in tokens.KEYWORDS:
            raise self._unexpected("the name of a field or function after the dot")
        self._advance()
        if self._is("(") and not optional:
            return self._call(operand, name, start)
        return syntax.Select(self._since(start), operand, name.text, name.span, optional)

    def _quoted_member(self, start: int, operand: syntax.Node, *, optional: bool) -> syntax.Node:
        name = self._advance()
        if not self._quoted_names:
            raise CompileError(name.span, "names in ` came with Kubernetes 1.37: use an index, as in m['name']")
        return syntax.Select(self._since(start), operand, name.text[1:-1], name.span, optional)

    def _index(self, start: int, operand: syntax.Node) -> syntax.Node:
        opening = self._advance()
        optional = self._accept("?")
        index = self.expression()
        self._expect("]", f"to close the [ at {opening.span.start}")
        return syntax.Index(self._since(start), operand, index, optional)

    def _call(self, target: syntax.Node | None, name: Token, start: int) -> syntax.Node:
        opening = self._advance()
        arguments: list[syntax.Node] = []
        while not self._is(")"):
            arguments.append(self.expression())
            if not self._accept(","):
                break
            if self._is(")"):
                raise self._unexpected("another argument after the comma")
        self._expect(")", f"to close the ( at {opening.span.start}")
        call = syntax.Call(self._since(start), name.text, name.span, target, tuple(arguments))
        return macros.expand(call, self._level)

    def _list(self) -> syntax.Node:
        opening = self._advance()
        elements: list[syntax.Node] = []
        optional = set()
        while not self._is("]") and not (not elements and self._accept(",")):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]", f"to close the [ at {opening.span.start}")
        return syntax.ListLiteral(self._since(opening.span.start), tuple(elements), frozenset(optional))

    def _map(self) -> syntax.Node:
        opening = self._advance()
        entries: list[tuple[syntax.Node, syntax.Node]] = []
        optional = set()
        while not self._is("}") and not (not entries and self._accept(",")):
            if self._accept("?"):
                optional.add(len(entries))
            key = self.expression()
            self._expect(":", "between a key and its value")
            entries.append((key, self.expression()))
            if not self._accept(","):
                break
        self._expect("}", f"to close the {{ at {opening.span.start}")
        return syntax.MapLiteral(self._since(opening.span.start), tuple(entries), frozenset(optional))


_CONSTANTS = {"true": True, "false": False, "null": None}
