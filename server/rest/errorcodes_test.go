package rest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

var update = flag.Bool("update", false, "write the table of errors into docs/api.md")

// TestErrorsAreDocumented checks that all codes are words of one form, that each has an explanation, and that
// docs/api.md has the same table.
func TestErrorsAreDocumented(t *testing.T) {
	t.Parallel()
	h := newToys(t, nil)
	var codes []rest.ErrorCode
	if err := json.Unmarshal([]byte(servertest.Send(h, "GET", "/v1/errors", "").Text), &codes); err != nil {
		t.Fatal(err)
	}
	table := "| code | status | type | meaning |\n| --- | --- | --- | --- |\n"
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for i, c := range codes {
		if !form.MatchString(c.Code) || !form.MatchString(c.Type) || !strings.HasSuffix(c.Meaning, ".") || c.Status < 400 ||
			i > 0 && c.Status < codes[i-1].Status {
			t.Errorf("got the code %+v", c)
		}
		var explained rest.ErrorCode
		got := servertest.Send(h, "GET", "/v1/errors/"+c.Code, "")
		if err := json.Unmarshal([]byte(got.Text), &explained); err != nil || explained != c {
			t.Errorf("%s explains itself with %d %s", c.Code, got.Code, got.Text)
		}
		table += fmt.Sprintf("| `%s` | %d | `%s` | %s |\n", c.Code, c.Status, c.Type, c.Meaning)
	}
	servertest.CheckProblem(t, servertest.Send(h, "GET", "/v1/errors/nothing", ""), 404, map[string]any{
		"code": "not_found", "detail": "there is no error with the code 'nothing'; GET /v1/errors lists all"})

	const page = "../../docs/api.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "<!-- errors -->\n")
	old, after, end := strings.Cut(rest, "<!-- end -->")
	if !found || !end {
		t.Fatalf("%s has no place for the table of errors", page)
	}
	if *update {
		err = os.WriteFile(page, []byte(before+"<!-- errors -->\n"+table+"<!-- end -->"+after), 0o600)
	}
	if err != nil || !*update && old != table {
		t.Errorf("%s has another table of errors: run this test with -update (%v)", page, err)
	}
}
