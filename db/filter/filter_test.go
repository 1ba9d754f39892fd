package filter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/filter"
)

var fields = filter.Fields{
	"metadata":   {Kind: filter.JSON, SQL: `$.metadata`},
	"tags":       {Kind: filter.Texts, SQL: `$.tags`},
	"created_at": {Kind: filter.Time, SQL: `$.at`},
	"role":       {Kind: filter.Text, SQL: `$.role`},
	"size":       {Kind: filter.Number, SQL: `$.size`},
}

// rows are what the filters of the tests narrow.
const rows = `(VALUES
	('a', '{"food": "sushi", "price": 12.5, "on": "2026-03-01", "who": {"name": "Ann"}, "list": ["x", 2],
		"ok": true}'::jsonb,
	 '{apollo,urgent}'::text[], '2026-03-01T10:00:00Z'::timestamptz, 'user', 1),
	('b', '{"food": "soup", "price": 9, "on": "2026-03-01T23:30:00+02:00", "who": {"name": null}, "a.b": 1, "ok": false}',
	 '{apollo}', '2026-03-02T00:00:00Z', 'assistant', 20),
	('c', '{"food": 5, "price": "12.5", "on": "2026-02-31", "eq": "x"}', '{}', '2026-04-01T00:00:00Z', NULL, NULL),
	('d', '{}', NULL, NULL, 'tool', 300)
) AS r (id, metadata, tags, at, role, size)`

func TestFiltersSelect(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	for _, row := range []struct{ filter, want string }{
		{``, "abcd"}, {`null`, "abcd"}, {`{}`, "abcd"},
		{`{"metadata.food": "sushi"}`, "a"},
		{`{"metadata": {"food": "sushi"}}`, "a"},
		{`{"metadata": {"food": {"eq": "sushi"}, "price": {"gt": 1}}}`, "a"},
		{`{"metadata.food": 5}`, "c"}, {`{"metadata.food": 5.0}`, "c"}, {`{"metadata.food": "5"}`, ""},
		{`{"metadata.food": ["sushi", 5]}`, "ac"}, {`{"metadata.food": {"in": []}}`, ""},
		{`{"metadata.food": {"nin": ["sushi", 5]}}`, "bd"}, {`{"metadata.food": {"ne": "sushi"}}`, "bcd"},
		{`{"metadata.food": {"prefix": "su"}}`, "a"}, {`{"metadata.food": {"contains": "ou"}}`, "b"},
		{`{"metadata.food": {"gt": "soup"}}`, "a"}, {`{"metadata.food": {"gte": "soup", "lt": "sushi"}}`, "b"},
		{`{"metadata.food": {"exists": true}}`, "abc"}, {`{"metadata.food": {"exists": false}}`, "d"},
		{`{"metadata.who.name": {"exists": true}}`, "a"}, {`{"metadata.who.name": null}`, "bcd"},
		{`{"metadata.who.name": {"ne": null}}`, "a"}, {`{"metadata.who.name": "Ann"}`, "a"},
		{`{"metadata.price": {"gt": 9}}`, "a"}, {`{"metadata.price": {"lte": 12.5}}`, "ab"},
		{`{"metadata.price": 12.5}`, "a"}, {`{"metadata.price": "12.5"}`, "c"},
		{`{"metadata.ok": true}`, "a"}, {`{"metadata.ok": {"in": [false]}}`, "b"},
		{`{"metadata.list": {"contains": "x"}}`, "a"}, {`{"metadata.list": {"contains": 2}}`, "a"},
		{`{"metadata.list": {"contains": "2"}}`, ""}, {`{"metadata.list": "x"}`, ""},
		{`{"metadata": {"a.b": 1}}`, "b"}, {`{"metadata.a.b": 1}`, ""}, {`{"metadata.eq": "x"}`, "c"},
		{`{"metadata.on": "2026-03-01"}`, "ab"}, {`{"metadata.on": {"gt": "2026-03-01"}}`, ""},
		{`{"metadata.on": {"gte": "2026-03-01T21:30:00Z"}}`, "b"}, {`{"metadata.on": {"lt": "2026-03-02"}}`, "ab"},
		{`{"metadata.on": {"lte": "2026-02-28"}}`, ""}, {`{"metadata.on": "2026-02-31"}`, "c"},
		{`{"tags": "apollo"}`, "ab"}, {`{"tags": ["urgent", "x"]}`, "a"}, {`{"tags": {"contains": "urgent"}}`, "a"},
		{`{"tags": {"nin": ["urgent"]}}`, "bcd"}, {`{"tags": {"exists": false}}`, "cd"}, {`{"tags": {"prefix": "ap"}}`, "ab"},
		{`{"created_at": "2026-03-01"}`, "a"}, {`{"created_at": {"gt": "2026-03-01"}}`, "bc"},
		{`{"created_at": {"gte": "2026-03-02", "lte": "2026-04-01"}}`, "bc"}, {`{"created_at": {"exists": false}}`, "d"},
		{`{"created_at": {"ne": "2026-03-01"}}`, "bcd"}, {`{"created_at": ["2026-03-01", "2026-04-01"]}`, "ac"},
		{`{"role": "user"}`, "a"}, {`{"role": {"ne": "user"}}`, "bcd"}, {`{"role": ["user", "tool"]}`, "ad"},
		{`{"size": {"gt": 1}}`, "bd"}, {`{"size": [1, 20.0]}`, "ab"}, {`{"size": {"exists": false}}`, "c"},
		{`{"or": [{"role": "user"}, {"tags": "apollo", "size": 20}]}`, "ab"}, {`{"not": {"role": "user"}}`, "bcd"},
		{`{"and": [{"tags": "apollo"}, {"not": {"or": [{"role": "user"}, {"size": 300}]}}]}`, "b"},
		{`{"not": {"metadata.food": {"gt": 1}}}`, "abd"},
	} {
		f, err := filter.Parse(json.RawMessage(row.filter), fields, nil)
		if err != nil {
			t.Errorf("%s: %v", row.filter, err)
			continue
		}
		args := pgx.StrictNamedArgs{}
		got, err := db.All[string](t.Context(), pool, `SELECT id FROM `+rows+` WHERE `+f.Where(fields, "r", args)+
			` ORDER BY id`, args)
		if all := strings.Join(got, ""); err != nil || all != row.want {
			t.Errorf("%s: got %q %v, want %q", row.filter, all, err, row.want)
		}
	}
}

func TestDatesAreInTheZone(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{`{"created_at": "2026-03-01"}`: "ab", `{"metadata.on": "2026-03-01"}`: "ab",
		`{"metadata.on": {"lt": "2026-03-01T12:00"}}`: "a", `{"created_at": {"lte": "2026-02-28"}}`: ""} {
		f, err := filter.Parse(json.RawMessage(text), fields, zone)
		if err != nil {
			t.Fatal(err)
		}
		args := pgx.StrictNamedArgs{}
		got, err := db.All[string](t.Context(), pool, `SELECT id FROM `+rows+` WHERE `+f.Where(fields, "r", args), args)
		if all := strings.Join(got, ""); err != nil || all != want {
			t.Errorf("%s: got %q %v, want %q", text, all, err, want)
		}
	}
}

func TestFaultsOfFiltersNameTheirPlace(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 12) + `{"role":"x"}` + strings.Repeat(`}`, 12)
	many := `{"or":[` + strings.TrimSuffix(strings.Repeat(`{"role":"x"},`, 101), ",") + `]}`
	long := `{"role":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 1_001), ",") + `]}`
	for _, row := range []struct{ filter, want string }{
		{`[1]`, `filter: it is no JSON object, such as {"metadata.food": "sushi"}`},
		{`{"role": `, `filter: it is no JSON object`},
		{`{"rol": "user"}`, `filter.rol: there is no field 'rol'; did you mean role?`},
		{`{"zzz": "user"}`,
			`filter.zzz: there is no field 'zzz'; there are created_at, metadata, role, size, tags, and, or, not`},
		{`{"meta.food": "x"}`, `filter.meta.food: there is no field 'meta'; did you mean metadata?`},
		{`{"role": {"equals": "user"}}`, `filter.role.equals: there is no operator 'equals'; there are eq, ne, in,`},
		{`{"size": {"gtee": 1}}`, `filter.size.gtee: there is no operator 'gtee'; did you mean gte?`},
		{`{"metadata.food": {"equals": "sushi"}}`, `filter.metadata.food.equals: there is no operator 'equals'`},
		{`{"metadata.food": {"gt": 1, "lesss": 2}}`, `filter.metadata.food.lesss: there is no operator`},
		{`{"role": {}}`, `filter.role: it has no operator`}, {`{"role": 5}`, `filter.role: the field is a text`},
		{`{"role": {"in": "user"}}`, `filter.role.in: in takes a list of values`},
		{`{"role": {"eq": ["user"]}}`, `filter.role.eq: a text, a number, true, false or null is compared here`},
		{`{"role.x": "user"}`, `filter.role.x: role is a text, and has no fields of its own`},
		{`{"tags": {"gt": "a"}}`, `filter.tags.gt: gt does not fit tags, which is a list of texts`},
		{`{"created_at": "yesterday"}`, `filter.created_at: the field is a time, and is compared with one in ISO 8601`},
		{`{"created_at": {"prefix": "2026"}}`, `filter.created_at.prefix: prefix does not fit created_at, which is a time`},
		{`{"size": "1"}`, `filter.size: the field is a number`}, {`{"size": 1e999}`, `filter.size: the number is too long`},
		{`{"metadata": "x"}`, `filter.metadata: it compares a field of metadata: name it, as in metadata.food`},
		{`{"metadata.x": {"gt": true}}`, `filter.metadata.x.gt: gt compares numbers, dates and texts, not true`},
		{`{"metadata.x": {"exists": 1}}`, `filter.metadata.x.exists: exists takes true or false`},
		{`{"metadata.x": {"in": [null]}}`, `filter.metadata.x.in: null is compared by eq and ne alone`},
		{`{"metadata.x": {"prefix": 1}}`, `filter.metadata.x.prefix: prefix takes a text`},
		{`{"role": "a", "role": "b"}`, `filter.role: it is there twice; combine both with and`},
		{`{"or": []}`, `filter.or: it takes a list of conditions`}, {`{"or": [{}]}`, `filter.or[0]: it has no condition`},
		{`{"not": {}}`, `filter.not: it has no condition`}, {`{"not": "x"}`,
			`filter.not: it must be an object of conditions`},
		{deep, `and, or and not nest at most 8 levels`}, {many, `a filter has at most 100 comparisons`},
		{long, `filter.role: a filter has at most 1000 values in its lists`},
		{`{"metadata.a.b.c.d.e.f.g.h.i.j.k": 1}`, `a path has at most 10 names`},
		{`{"role": "` + strings.Repeat("x", 64<<10) + `"}`, `filter: it has 65548 bytes; it may have 65536`},
	} {
		_, err := filter.Parse(json.RawMessage(row.filter), fields, nil)
		if err == nil || !strings.Contains(err.Error(), row.want) || !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%.80s: got %v, want %s", row.filter, err, row.want)
		}
	}
}

func TestWhatEveryRowMustPassIsKnown(t *testing.T) {
	t.Parallel()
	f, err := filter.Parse(json.RawMessage(`{"metadata": {"a": {"b": ["x", 1]}}, "tags": "t", "or": [{"role": "user"}],
		"created_at": {"gte": "2026-03-01"}, "metadata.on": "2026-03-01"}`), fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, test := range f.Must() {
		if test.Field == "tags" {
			tags = test.Texts()
		}
		if start, end := test.Span(); test.Field == "created_at" && (start == nil || end != nil || start.Day() != 1) {
			t.Errorf("got the span %v to %v, want from March 1 on", start, end)
		}
	}
	if diff := cmp.Diff([]string{"t"}, tags); diff != "" {
		t.Error(diff)
	}
	asked := map[string]bool{"metadata": true, "tags": true, "role": true, "created_at": true}
	if diff := cmp.Diff(asked, f.Asks()); diff != "" {
		t.Error(diff)
	}
}

// A filter offers ways to find rows by their values, but none where a row may pass without a value.
func TestTheValuesThatRowsHaveAreKnown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		filter string
		ways   int
	}{
		{`{"metadata.a": 1}`, 1}, {`{"metadata.a": 1, "metadata.b": "x"}`, 2}, {`{"metadata.a": {"gt": 1, "lt": 5}}`, 1},
		{`{"metadata.a": {"gt": 1, "prefix": "x"}}`, 2}, {`{"metadata.a": {"ne": 1}}`, 0}, {`{"not": {"metadata.a": 1}}`, 0},
		{`{"metadata.a": null}`, 0}, {`{"metadata.a": {"exists": false}}`, 0}, {`{"metadata.a": {"exists": true}}`, 1},
		{`{"or": [{"metadata.a": 1}, {"metadata.b": 2}]}`, 1}, {`{"or": [{"metadata.a": 1}, {"tags": "x"}]}`, 0},
		{`{"or": [{"metadata.a": 1}, {"tags": "x"}], "metadata.c": {"contains": "abc"}}`, 1}, {`{"tags": "x"}`, 0},
		{`{"metadata.list.0": 1}`, 0}, {`{"metadata.a": {"in": []}}`, 0}, {`{}`, 0},
		{`{"metadata": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}}`, 4},
	} {
		f, err := filter.Parse(json.RawMessage(row.filter), fields, nil)
		args := pgx.StrictNamedArgs{}
		if ways := f.Indexed(args); err != nil || len(ways) != row.ways || (len(args) == 0) != (row.ways == 0) {
			t.Errorf("%s: got %d ways with %d arguments, %v, want %d ways", row.filter, len(ways), len(args), err, row.ways)
		}
	}
}
