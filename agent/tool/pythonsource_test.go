package tool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/tool"
)

func TestASignatureIsReadFromPython(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, want string }{
		"numpy's style": {`
def roll(sides: int, times: int = 1, low: int = 0, high: int = 9, kind: str = "a") -> str:
    """Roll some dice.

    A note:
        that is no argument.

    Parameters
    ----------
    sides : int
        How many sides
        a die has.
    times : int, optional
        How often: it is rolled.

    low, high : int
        The bounds.

    Returns
    -------
    kind : str
        The result.

    Other Parameters
    ----------------
    kind
        Of the die.
    """
`, `roll|Roll some dice.

A note:
    that is no argument.|{"type":"object","properties":{` +
			`"sides":{"description":"How many sides a die has.","type":"integer"},` +
			`"times":{"description":"How often: it is rolled.","type":"integer"},` +
			`"low":{"description":"The bounds.","type":"integer"},"high":{"description":"The bounds.","type":"integer"},` +
			`"kind":{"description":"Of the die.","type":"string"}},"required":["sides"]}`},
		"Sphinx's style": {`
def roll(sides: int, times: int = 1, kind: str = "a") -> str:
    """Roll some dice.

    :param int sides: How many sides
        a die has.
    :param times: How often: it is rolled.
    :type times: int
    :param kind: Of
    the die.

    And more.

    :raises ValueError: never
    :returns: kind: the result
    :rtype: str
    """
`, `roll|Roll some dice.|{"type":"object","properties":{` +
			`"sides":{"description":"How many sides a die has.","type":"integer"},` +
			`"times":{"description":"How often: it is rolled.","type":"integer"},` +
			`"kind":{"description":"Of the die.","type":"string"}},"required":["sides"]}`},
		"types and descriptions": {`
import os  # def no(x: int):

def helper(a):
    return a

def roll_dice(sides: int, times: int = 1, *, label: "str" = ")", kind: Literal['a', "b"] = "a") -> str:
    """
    Roll some dice.

    Each roll is fair: no die is loaded.

    Args:
        sides (int): How many sides a die has.
        times: How often
            it is rolled.
        label (Optional[str], optional): A name: any.

    Returns:
        str: The result.
    """
    return "def last(x):"
`, `roll_dice|Roll some dice.

Each roll is fair: no die is loaded.|{"type":"object","properties":{` +
			`"sides":{"description":"How many sides a die has.","type":"integer"},` +
			`"times":{"description":"How often it is rolled.","type":"integer"},` +
			`"label":{"description":"A name: any.","type":"string"},` +
			`"kind":{"enum":["a","b"],"type":"string"}},"required":["sides"]}`},
		"types of many forms": {`
async def f(
    self,
    a: Optional[str],  # "comment, with (brackets
    b: int | None,
    c: typing.List[typing.Dict[str, float]],
    d: dict[str, list[int]] = {"x": [1, 2]},
    e: Union[int, str] = lambda x: x,
    g: Any = None,
    h: Literal[1, -2] = 1,
    agent_state: "AgentState" = None,
    i: list = [],
    j: Annotated[bool, "why"] = True,
):
    r'''Does \n much.'''
`, `f|Does \n much.|{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},` +
			`"c":{"items":{"additionalProperties":{"type":"number"},"type":"object"},"type":"array"},` +
			`"d":{"additionalProperties":{"items":{"type":"integer"},"type":"array"},"type":"object"},` +
			`"e":{"anyOf":[{"type":"integer"},{"type":"string"}]},"g":{},"h":{"enum":[1,-2],"type":"integer"},` +
			`"i":{"items":{},"type":"array"},"j":{"type":"boolean"}},"required":["c"]}`},
		"classes of pydantic's": {`
from pydantic import BaseModel, Field

class Base(BaseModel):
    """What all have."""
    model_config: dict = {}
    id: int = Field(..., description="Of the "
                    "thing: its number.")  # note: no field

class Order(Base):
    customer: str = Field(description='Who, "she" or he.')
    tags: list[str] = Field(default_factory=list, alias="t")
    total: float = 0.5

    def double(self) -> float:
        twice: float = 2
        return twice * self.total

class Other:
    x: Nothing

def check(orders: List[Order], first: Optional["Base"] = None):
    """
    Check.

    Args:
        orders (List[Order]): To check.
    """
`, `check|Check.|{"type":"object","properties":{"orders":{"description":"To check.","items":{"properties":{` +
			`"id":{"description":"Of the thing: its number.","type":"integer"},` +
			`"customer":{"description":"Who, \"she\" or he.","type":"string"},` +
			`"tags":{"items":{"type":"string"},"type":"array"},"total":{"type":"number"}},"required":["id","customer"],` +
			`"type":"object"},"type":"array"},"first":{"properties":{` +
			`"id":{"description":"Of the thing: its number.","type":"integer"}},"required":["id"],"type":"object"}},` +
			`"required":["orders"]}`},
		"nothing but a name": {"def f(): return 1", `f||{"type":"object","properties":{},"required":[]}`},
		"windows lines and tabs": {"def f(a: str):\r\n\t\"\"\"One.\r\n\r\n\tArgs:\r\n\t\ta: Two.\r\n\t\"\"\"\r\n\tpass\r\n",
			`f|One.|{"type":"object","properties":{"a":{"description":"Two.","type":"string"}},"required":["a"]}`},
		"the last of several": {"def a(x: int):\n  pass\ndef b(y: int):\n  def c(z): pass\n",
			`b||{"type":"object","properties":{"y":{"type":"integer"}},"required":["y"]}`},
	} {
		s, err := tool.ReadSignature(tt.source, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, s.Parameters); err != nil {
			t.Errorf("%s: %v in %s", name, err, s.Parameters)
		}
		if diff := cmp.Diff(tt.want, s.Name+"|"+s.Description+"|"+compact.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestASourceThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	growing := "class A0(BaseModel):\n  x: int\n"
	for i := range 40 {
		growing += fmt.Sprintf("class A%d(BaseModel):\n  x: A%d\n  y: A%d\n", i+1, i, i)
	}
	for source, want := range map[string]string{
		growing + "def f(x: A40): pass": "bytes; at most 65536 are read",
		"":                              "has no function",
		"class A:\n  def f(x): pass":    "has no function",
		"x = \"\"\"def f():\n":          "line 1",
		"def f(x: int":                  "the function f is cut",
		"def f(x: int)":                 "the function f is cut",
		"def f(x): pass":                "the parameter x of f has no type",
		"def f(*args): pass":            "f takes *args",
		"def f(**kw: int): pass":        "f takes **kw",
		"def f(x: Model): pass":         "the type Model of the parameter x of f",
		"class A(BaseModel):\n  a: A\ndef f(x: A): pass":   "the type A of the field a of A",
		"class A(BaseModel):\n  a: Nil\ndef f(x: A): pass": "the type Nil of the field a of A",
		"class A(Enum):\n  A = 1\ndef f(x: A): pass":       "the type A of the parameter x",
		"def f(x: list[Model]): ..":                        "the type list[Model]",
		"def f(x: list[int): pass":                         "the function f is cut",
		"def f(x: Literal[y]): ...":                        "the literal y",
		"def f(x: int[str]): pass":                         "the type int[str]",
		"def f(x: " + strings.Repeat("list[", 1000) + "int" + strings.Repeat("]", 1000) + "): pass": "at most 2000",
	} {
		if s, err := tool.ReadSignature(source, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %+v, %v, want an error with %q", source, s, err, want)
		}
	}
}

func FuzzReadSignature(f *testing.F) {
	for _, seed := range []string{"def f(x: int = 1) -> str:\n  '''A.\n\n  Args:\n    x: B.\n  '''",
		"def f(a: 'x[', b: \"\\\n", "class A(BaseModel):\n  a: int = Field(..., description='x')\ndef f(x: A): pass",
		"def A(\x90:int ):", "def A(\U000e0001: int):"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		s, err := tool.ReadSignature(source, false)
		if err == nil && (s.Name == "" || !json.Valid(s.Parameters)) {
			t.Errorf("%q: got %+v", source, s)
		}
	})
}
